"""
Answers questions about artifacts in the form of other repository servers, for scripts and badges.

=========================================  =========================================================================
address                                    answer
=========================================  =========================================================================
/api/maven/versions/<repository>/<path>    the versions of an artifact, or the builds of a snapshot
/api/maven/latest/version/...              the latest of them
/api/maven/latest/file/...                 a redirect to its file; ``extension`` and ``classifier`` choose which
/api/maven/latest/details/...              that file's name, type and size
/api/maven/details/...                     the same of the file at a path; of a directory with the names in it
/api/badge/latest/<repository>/<path>      a badge with the latest version
=========================================  =========================================================================

``<repository>`` is storage and name. ``filter`` chooses among the versions; ``type=raw`` asks for text instead of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.maven.listing import folders_of
from pkgrepo.formats.maven.metadata.joining import ARTIFACT, SNAPSHOT_FORM, document_key, read_parts
from pkgrepo.formats.maven.metadata.reading import BUILD, SnapshotFile
from pkgrepo.formats.maven.names import is_snapshot
from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, media_type, parse_text
from pkgrepo.formats.maven.search.query import FORMAT, filter_versions
from pkgrepo.gateway.badges import render_badge
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.folders.pages import Cursor
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response, text_response
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.proxy.format import MemberParts, merge_fragments, merge_versions
from pkgrepo.proxy.trace import Trace

MOST_ENTRIES: Final = 5000  # of a directory
PAGE: Final = 1000
BADGE: Final = ((b"Cache-Control", b"no-cache"), (b"Content-Security-Policy", b"default-src 'none'; sandbox"))

_decode_build = msgspec.json.Decoder(SnapshotFile).decode


async def find_repository(services: Services, request: Request, storage: str, name: str) -> tuple[Repository, Identity]:
    """
    A repository and the caller.

    :raises NotFound, AuthenticationRequired: there is none that the caller may know of
    """
    identity = await services.access.identify(request)
    await services.registry.refresh()
    found = services.registry.find(storage, name)
    if found is None or found.format != FORMAT or not await services.access.authorizer.knows(identity, found):
        raise unknown(identity, f"{storage}/{name}")
    return found, identity


async def versions(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """The versions at a path. :raises NotFound: there are none"""
    found = await _versions(services, request, repository, identity, path)
    if request.parameter(b"type") == "raw":
        return text_response("\n".join(found) + "\n", headers=NO_STORE)
    return json_response({"isSnapshot": _is_snapshot(path), "versions": found}, headers=NO_STORE)


async def latest_version(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """The latest version at a path. :raises NotFound: there is none"""
    latest = _latest(await _versions(services, request, repository, identity, path), path)
    if request.parameter(b"type") == "raw":
        return text_response(latest, headers=NO_STORE)
    return json_response({"isSnapshot": _is_snapshot(path), "version": latest}, headers=NO_STORE)


async def latest_file(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """A redirect to the file of the latest version. :raises NotFound: there is no version"""
    found = await _latest_path(services, request, repository, identity, path)
    address = f"{services.repository_url(request, repository)}/{quote(found)}"
    return Response(302, headers=((b"Location", address.encode("ascii")), *NO_STORE))


async def latest_details(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """What the file of the latest version is. :raises NotFound: there is no version, or it is not stored"""
    found = await _latest_path(services, request, repository, identity, path)
    return await details(services, request, repository, identity, found)


async def details(
    services: Services, _request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """What is stored at a path. :raises NotFound: nothing is"""
    await services.access.require(identity, Action.READ, repository, _package_of(path))
    parent, _, name = path.rpartition("/")
    for entry in await _entries(services, repository, parent):
        if entry["name"] == name and entry["type"] == "FILE":
            return json_response(entry, headers=NO_STORE)
    return json_response(
        {"name": name, "type": "DIRECTORY", "files": await _entries(services, repository, path, strict=True)},
        headers=NO_STORE,
    )


async def badge(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> Response:
    """A badge with the latest version at a path. :raises NotFound: there is none"""
    latest = _latest(await _versions(services, request, repository, identity, path), path)
    name = request.parameter(b"name") or path.rpartition("/")[2]
    value = (request.parameter(b"prefix") or "") + latest
    svg = render_badge(name, value, request.parameter(b"color"))
    return text_response(svg, content_type=b"image/svg+xml; charset=utf-8", headers=BADGE)


async def _versions(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> list[str]:
    parts, form = await _parts(services, repository, identity, path)
    if form == ARTIFACT:
        found = merge_versions(parts)
    else:
        found = list(dict.fromkeys(_decode_build(body).value for body in merge_fragments(parts, BUILD)))
    return filter_versions(found, request.parameter(b"filter"))


async def _parts(
    services: Services, repository: Repository, identity: Identity, path: str
) -> tuple[Sequence[MemberParts], str]:
    target = parse_text(f"{path}/{METADATA_NAME}")
    if not isinstance(target, Metadata) or target.package_key is None:
        raise NotFound("artifact", path)
    await services.access.require(identity, Action.READ, repository, target.package_key)
    key, form = document_key(target, target.package_key)
    if services.proxy.resolver.reads_catalog(repository, target.package_key):
        parts, _ = await services.catalog.scan(read_parts, repository.id, key, form)
        return [parts], form
    members = await services.proxy.resolver.members(repository, key, Trace())
    join = partial(services.proxy.resolver.parts, members, key, form)
    return await services.view_turns.make(repository, join, package=target.package_key), form


async def _latest_path(
    services: Services, request: Request, repository: Repository, identity: Identity, path: str
) -> str:
    extension = request.parameter(b"extension") or "jar"
    classifier = request.parameter(b"classifier") or ""
    ending = (f"-{classifier}" if classifier else "") + f".{extension}"
    if "/" in ending:
        raise Invalid("extension and classifier are parts of the name of a file", "extension")
    if not _is_snapshot(path):
        latest = _latest(await _versions(services, request, repository, identity, path), path)
        directory = f"{path}/{latest}"
        if not is_snapshot(latest):
            return _checked(f"{directory}/{path.rpartition('/')[2]}-{latest}{ending}")
    else:
        directory = path
    parts, form = await _parts(services, repository, identity, directory)
    builds = [_decode_build(body) for body in merge_fragments(parts, BUILD)] if form == SNAPSHOT_FORM else []
    values = [each.value for each in builds if (each.classifier, each.extension) == (classifier, extension)]
    artifact = directory.split("/")[-2]
    return _checked(f"{directory}/{artifact}-{_latest(values, directory)}{ending}")


async def _entries(
    services: Services, repository: Repository, path: str, *, strict: bool = False
) -> list[dict[str, Any]]:
    """The entries of a directory without checksums. :raises NotFound: it does not exist, with ``strict``"""
    folders = folders_of(services, repository)
    directory = await folders.find(path)
    if directory is None:
        if strict:
            raise NotFound("path", path)
        return []
    found: list[dict[str, Any]] = []
    cursor: Cursor | None = Cursor()
    while cursor is not None and len(found) < MOST_ENTRIES:
        entries, cursor = await folders.read(directory, cursor, PAGE, list)
        for entry in entries:
            if entry.folder:
                found.append({"name": entry.name, "type": "DIRECTORY"})
            elif entry.name.rpartition(".")[2] not in ALGORITHMS:
                shown = {"name": entry.name, "type": "FILE", "contentType": media_type(entry.name)}
                found.append(shown if entry.size is None else {**shown, "contentLength": entry.size})
    return found


def _latest(versions: Sequence[str], path: str) -> str:
    """The last version, or the last release if there is one. :raises NotFound: there is none"""
    if not versions:
        raise NotFound("version of", path)
    if _is_snapshot(path):
        return versions[-1]
    return next((each for each in reversed(versions) if not is_snapshot(each)), versions[-1])


def _is_snapshot(path: str) -> bool:
    return is_snapshot(path.rpartition("/")[2])


def _checked(path: str) -> str:
    """The path of a file. :raises Invalid: a parameter makes it none"""
    return parse_text(path).path


def _package_of(path: str) -> str:
    """The name by which the permission for a path is asked."""
    found = parse_text(path)
    key = getattr(getattr(found, "coordinates", None), "package_key", None)
    return key or path.replace("/", ".")
