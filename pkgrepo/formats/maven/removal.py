"""
Deletions: what a path means, its removal from a hosted repository, and its eviction from the cache of a proxy.

======================  ===============================================================================================
path                    what is removed
======================  ===============================================================================================
a file                  the file with its signatures; checksums go with it, since they are computed
``g/a/v``               the version with all its files
``g/a/v/<number>``      the files of one build of a snapshot
``g/a``                 the artifact with all its versions
======================  ===============================================================================================

A path that is a version and an artifact at once means the version. The path of metadata means, in a proxy, what
upstreams said of the artifact; after an eviction they are asked again. In a hosted repository metadata follow in the
same transaction; a plugin without versions is dropped from those of its group in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.metadata.joining import index_artifact
from pkgrepo.formats.maven.metadata.plugins import change_plugins
from pkgrepo.formats.maven.paths import (
    LONGEST_SEGMENT,
    ROLES,
    Checksum,
    Directory,
    FilePath,
    Metadata,
    Path,
    coordinates_of,
    package_key_of,
)
from pkgrepo.formats.maven.push_rules import check_token
from pkgrepo.gateway.callers.access import actor_of, require_plain_removal
from pkgrepo.gateway.publishing import removals
from pkgrepo.gateway.publishing.removals import Removal
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Actor, File
from pkgrepo.repositories.publish.package_changes import EVICTED, remove_files
from pkgrepo.repositories.publish.plain_files import remove_plain_file
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

PLAIN: Final = Removal("")  # of a file that belongs to no package


async def remove(context: MavenContext, request: Request, target: Path) -> Response:
    """
    Remove what is at a path.

    :raises NotFound: there is nothing; :raises Refusal: the repository does not allow it (``yanking_allowed``)
    """
    services = context.services
    repository = context.repository
    access = services.access
    identity = await access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired
    await check_token(services, identity, repository)
    await access.require(identity, Action.DELETE, repository)
    if not PushRules.of(repository).yanking_allowed:
        raise Refusal(403, "Deleting is disabled in this repository (yanking_allowed)", "yanking_disabled")
    if isinstance(target, Checksum):
        raise _computed("checksums are")
    found: Removal | None = await services.catalog.scan(find_removal, repository.id, target)
    if isinstance(target, Metadata) and found != PLAIN:  # metadata of other directories is stored as it came
        raise _computed("metadata is")
    if found is None:
        raise NotFound("path", target.path)
    actor = actor_of(request, identity)
    if found == PLAIN:
        tree = services.formats[repository.format].tree
        await require_plain_removal(access, services.catalog, tree, identity, repository, target.path)
        await services.content.change(remove_plain_file, repository, target.path, actor)
        return Response(204)
    await access.require(identity, Action.DELETE, repository, found.package)
    # Tombstones keep deleted versions out of metadata that clients upload. Uploads may use their paths again where
    # overwriting is allowed; elsewhere a path would get other content by way of a deletion.
    await removals.remove(services, repository, found, actor, index_artifact, burn=True)
    await _drop_plugin(context, found.package, actor)
    return Response(204)


async def _drop_plugin(context: MavenContext, package: str, actor: Actor) -> None:
    """Drop a plugin whose last version was removed from the metadata of its group."""
    if await context.services.catalog.look(packages.package_serial, context.repository.id, package) is None:
        group, _, artifact = package.partition(":")
        listed = admit_server(Road.LISTS, context.repository, actor)
        await change_plugins(context.services, context.repository, group, listed, gone=frozenset([artifact]))


def _computed(what: str) -> Refusal:
    why = f"{what} computed from the stored files; delete these"
    return Refusal(405, why, "method_not_allowed", headers=((b"Allow", b"GET, HEAD, PUT"),))


def find_removal(r: Reader, repository_id: int, target: FilePath | Directory) -> Removal | None:
    """What is removed by a DELETE of this path; None if there is nothing."""
    file = None if isinstance(target, Directory) else files.find_file(r, repository_id, target.path)
    if file is not None:
        return _file_removal(r, file)
    segments = target.path.split("/")
    return (
        _version_removal(r, repository_id, segments)
        or _build_removal(r, repository_id, segments)
        or _package_removal(r, repository_id, segments)
    )


def _file_removal(r: Reader, file: File) -> Removal:
    """The removal of a file with its signatures, which may be signed in turn."""
    coordinates = None if file.package_id is None else coordinates_of(file.path.split("/")[:-1])
    if coordinates is None:
        return PLAIN
    endings = (*ROLES, *(first + second for first in ROLES for second in ROLES))
    found = (files.find_file(r, file.repository_id, file.path + each) for each in endings)
    signatures = (each.path for each in found if each is not None and each.role is not None)
    return Removal(coordinates.package_key, coordinates.version, (file.path, *signatures))


def _version_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    coordinates = coordinates_of(segments)
    if coordinates is None:
        return None
    package = packages.find_package(r, repository_id, coordinates.package_key)
    if package is None or versions.find_version(r, package.id, coordinates.version) is None:
        return None
    return Removal(package.key, coordinates.version)


def _build_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    *directory, number = segments
    coordinates = coordinates_of(directory)
    if coordinates is None or not (number.isascii() and number.isdigit() and len(number) <= LONGEST_SEGMENT):
        return None
    package = packages.find_package(r, repository_id, coordinates.package_key)
    version = None if package is None else versions.find_version(r, package.id, coordinates.version)
    if version is None:
        return None
    held = files.files_of_version(r, version.id)
    paths = tuple(each.path for each in held if each.attrs.get("build") == int(number))
    return Removal(coordinates.package_key, coordinates.version, paths) if paths else None


def _package_removal(r: Reader, repository_id: int, segments: list[str]) -> Removal | None:
    key = package_key_of(segments)
    return None if key is None or packages.find_package(r, repository_id, key) is None else Removal(key)


async def evict(context: MavenContext, request: Request, target: Path) -> Response:
    """Evict what is kept of a path. :raises NotFound: nothing is kept; :raises Forbidden: others may do it"""
    services = context.services
    access, repository = services.access, context.repository
    identity = await access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired
    await access.require(identity, Action.ADMIN, repository)
    await services.proxy.settle()
    file = target.of if isinstance(target, Checksum) else target
    keys = await services.catalog.look(_document_keys, repository.id, file)
    if keys:
        await services.proxy.documents.kept.forget(repository, keys)
    removal = None
    if not isinstance(file, Metadata):
        removal = await services.catalog.look(find_removal, repository.id, file)
    if removal is None and not keys:
        raise NotFound("path", target.path)
    services.proxy.package_files.forget(repository)
    if removal is not None and removal != PLAIN:
        await _evict_versions(context, removal, actor_of(request, identity))
    return Response(204)


async def _evict_versions(context: MavenContext, removal: Removal, actor: Actor) -> None:
    package = removal.package
    keys: Sequence[str] = () if removal.version is None else (removal.version,)
    for key in keys or await context.services.catalog.look(_version_keys, context.repository.id, package):
        with suppress(NotFound):  # it was removed meanwhile
            await context.services.content.change(
                partial(remove_files, kind=EVICTED),
                context.repository,
                package,
                key,
                removal.paths,
                actor,
                index_artifact,
                False,
            )


def _document_keys(reader: Reader, repository_id: int, target: Path) -> list[str]:
    """The keys of the responses of upstreams about a path: metadata of all routes, or a file that may change."""
    if isinstance(target, Metadata) and target.package_key is not None:
        found = upstream_documents.documents_of_package(reader, repository_id, target.package_key)
        name = f"{target.package_key}:{target.version}" if target.version else target.package_key
        return [each.key for each in found if each.key.startswith(f"metadata/{name}@")]
    key = f"file/{target.path}"
    return [] if upstream_documents.find_document(reader, repository_id, key) is None else [key]


def _version_keys(reader: Reader, repository_id: int, package_key: str) -> list[str]:
    package = packages.find_package(reader, repository_id, package_key)
    return [] if package is None else [each.key for each in versions.list_versions(reader, package.id)]
