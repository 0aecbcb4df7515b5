"""
Requests for the JSON metadata of projects.

In proxies and virtual repositories the files are those of the project's page. The metadata of the version that the
document describes are those that are stored, or else come from a METADATA that an upstream offers. Without any there is
only what the page says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from attrs import evolve

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.formats.python.facts import ECOSYSTEM
from pkgrepo.formats.python.index.pages import JSON_PAGE
from pkgrepo.formats.python.index.project_json import newest, project_json, read_document, read_listed
from pkgrepo.formats.python.names import METADATA, file_path, parse_filename, project_key, split_companion
from pkgrepo.formats.python.proxied.upstream import read_fields
from pkgrepo.formats.python.versions import version_key
from pkgrepo.gateway.responses.content import choose_encoding, document_cache_control, document_response, is_private
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Document, File
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.repositories.publish.splicing import Spliced, render
from pkgrepo.storage.catalog.packages import versions


async def project_metadata(context: Context[object], request: Request, project: str) -> Response:
    """JSON metadata of a project."""
    return await _answer(context, request, project, None, simple=False)


async def version_metadata(context: Context[object], request: Request, project: str, version: str) -> Response:
    """JSON metadata of one version."""
    return await _answer(context, request, project, version, simple=False)


async def project_metadata_with_files(context: Context[object], request: Request, project: str) -> Response:
    """JSON metadata of a project with the files of its simple page."""
    return await _answer(context, request, project, None, simple=True)


async def _answer(
    context: Context[object], request: Request, project: str, version: str | None, *, simple: bool
) -> Response:
    key = project_key(project)
    await context.admit(request, Action.READ, key)
    read = _read_hosted if context.services.proxy.resolver.reads_catalog(context.repository, key) else _make
    try:
        document = await read(
            context, key, None if version is None else version_key(version), context.url(request), simple=simple
        )
    except NotFound:
        return json_response({"message": "Not Found"}, 404, headers=NO_STORE)
    headers: Fields = (
        (b"Cache-Control", document_cache_control(context.repository)),
        (b"X-PyPI-Last-Serial", b"%d" % document.serial),
        (b"Vary", b"Accept-Encoding"),
    )
    if not is_private(context.repository):  # pages of other origins may read it
        headers += ((b"Access-Control-Allow-Origin", b"*"),)
    return document_response(document, choose_encoding(request.header(b"accept-encoding")), headers)


async def _read_hosted(
    context: Context[object], project: str, key: str | None, base_url: str, *, simple: bool
) -> Document:
    """
    The document of a project, as of its newest version or of the one named; with ``simple`` also its page's files.

    :raises NotFound: no such project or version
    """
    body, serial = await context.services.catalog.scan(
        read_document,
        context.repository.id,
        project,
        key,
        base_url,
        simple=simple,
        known=await context.services.advisories.on_package(ECOSYSTEM, project),
    )
    return render("application/json", body, serial)


async def _make(context: Context[object], project: str, key: str | None, base_url: str, *, simple: bool) -> Document:
    """
    The document of L{_read_hosted}, in a repository that is not hosted.

    :raises NotFound: no such project or version; :raises UpstreamFailed: that is not known
    :raises RuleRefused: a rule hides the version
    """
    cpu, turns = context.services.pools.cpu, context.services.view_turns
    state = await context.services.proxy.resolver.state(context.repository, project)
    spliced, state = await turns.make(context.repository, partial(state.load, JSON_PAGE), package=project)
    releases = await cpu(read_listed, spliced.fragments, project, base_url)
    if key is None:
        chosen = newest(releases.values())
        key = None if chosen is None else version_key(chosen.version)
    elif key not in releases:
        refused = state.refusal_of(lambda text: version_key(text) == key)
        raise refused or NotFound("version", f"{project} {key}")
    if key is not None:
        meta = await _meta(context, project, key, spliced)
        releases[key] = evolve(releases[key], meta={**releases[key].meta, **meta})

    known = await context.services.advisories.on_package(ECOSYSTEM, project)

    def make() -> Document:
        body = project_json(
            list(releases.values()),
            name=project,
            project_key=project,
            base_url=base_url,
            serial=state.serial,
            selected=None if key is None else releases[key],
            simple_files=spliced.fragments if simple else None,
            known=known,
        )
        return render("application/json", body, state.serial)

    return await cpu(make)


async def _meta(context: Context[object], project: str, version_key: str, spliced: Spliced) -> Mapping[str, Any]:
    services = context.services
    # Others may have stored another package of this name before a hosted repository had it.
    members = await services.proxy.resolver.members(context.repository, project, Trace())
    serving = [member.repository.id for member in members.serving]
    stored: Mapping[str, Any] = await services.catalog.look(_find_meta, serving, project, version_key)
    if stored:
        return stored
    path = await services.pools.cpu(_find_metadata_path, spliced, project, version_key)
    try:
        found = path and await services.proxy.package_files.find(context.repository.live, project, path)
        if not path or not found:
            return {}
        remote = found.file  # or the row of one that another request has fetched since the look-up above
        content = (
            await services.proxy.fetching.content(remote, takes_whole=False)
            if isinstance(remote, RemoteFile)
            else remote
        )
        if isinstance(content, ArrivingBody):
            content.close()  # it is stored for the next time
            return {}
        if isinstance(content, File):
            return await services.catalog.look(_find_meta, serving, project, version_key)
        filename = parse_filename(split_companion(path.rpartition("/")[2])[0], project=project)
        return await services.pools.cpu(read_fields, content, filename) or {}
    except PkgrepoError:  # the upstream fails, or its file cannot be used: the page is enough
        return {}


def _find_meta(reader: Reader, repository_ids: list[int], project: str, version_key: str) -> Mapping[str, Any]:
    """The metadata of a version in the first repository that has any."""
    for each in repository_ids:
        version = versions.find_by_keys(reader, each, project, version_key)
        if version is not None and version.meta:
            return version.meta
    return {}


def _find_metadata_path(spliced: Spliced, project: str, version_key: str) -> str | None:
    """The path of a METADATA that is offered for a version."""
    for body in spliced.fragments:
        listed = msgspec.json.decode(body)
        if listed["core-metadata"] is not False:
            name = parse_filename(listed["filename"], project=project)
            if name.version_key == version_key:
                return file_path(project, name.version_text, name.filename) + METADATA
    return None
