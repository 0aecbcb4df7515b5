"""
Answers requests for the JSON metadata of projects in proxies and virtual repositories.

The files are those of the project's page. The metadata of the version that the document describes are those that are
kept, or else come from a METADATA that an upstream offers. Without any there is only what the page says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from attrs import evolve

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.formats.python.index.pages import JSON_PAGE
from pkgrepo.formats.python.index.project_json import newest, project_json, read_listed
from pkgrepo.formats.python.names import METADATA, file_path, parse_filename, parse_version, split_companion
from pkgrepo.formats.python.proxied.upstream import read_fields
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, File, Repository
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.repositories.publish.splicing import Spliced, render
from pkgrepo.storage.catalog.packages import packages, versions


class ProjectDocuments:
    """Makes the documents of one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def get(self, project: str, version: str | None, base_url: str, *, simple: bool) -> Document:
        """
        The document of a project, as of its newest version or of the one named; with ``simple`` also its page's files.

        :raises NotFound: no such project or version; :raises UpstreamFailed: that is not known
        """
        cpu = self._services.pools.cpu
        state = await self._services.proxy.resolver.state(self._repository, project)
        spliced, state = await state.load(JSON_PAGE)
        releases = await cpu(read_listed, spliced.fragments, project, base_url)
        chosen = newest(releases.values())
        key = (
            (None if chosen is None else parse_version(chosen.version)[0])
            if version is None
            else parse_version(version)[0]
        )
        if version is not None and key not in releases:
            raise NotFound("version", f"{project} {version}")
        if key is not None:
            meta = await self._meta(project, key, spliced)
            releases[key] = evolve(releases[key], meta={**releases[key].meta, **meta})

        def make() -> Document:
            body = project_json(
                list(releases.values()),
                name=project,
                project_key=project,
                base_url=base_url,
                serial=state.serial,
                selected=None if key is None else releases[key],
                simple_files=spliced.fragments if simple else None,
            )
            return render("application/json", body, state.serial)

        return await cpu(make)

    async def _meta(self, project: str, version_key: str, spliced: Spliced) -> Mapping[str, Any]:
        # Others may have kept another package of this name before a hosted repository had it.
        members = await self._services.proxy.resolver.members(self._repository, project, Trace())
        serving = [member.repository.id for member in members.serving]
        kept: Mapping[str, Any] = await self._services.catalog.look(_find_meta, serving, project, version_key)
        if kept:
            return kept
        path = await self._services.pools.cpu(_find_metadata_path, spliced, project, version_key)
        try:
            found = path and await self._services.proxy.package_files.find(self._repository, project, path)
            if not path or not found:
                return {}
            remote = found.file  # or the row of one that another request has fetched since the look-up above
            content = (
                await self._services.proxy.fetching.content(remote, takes_whole=False)
                if isinstance(remote, RemoteFile)
                else remote
            )
            if isinstance(content, ArrivingBody):
                content.close()  # it is kept for the next time
                return {}
            if isinstance(content, File):
                return await self._services.catalog.look(_find_meta, serving, project, version_key)
            filename = parse_filename(split_companion(path.rpartition("/")[2])[0], project=project)
            return await self._services.pools.cpu(read_fields, content, filename)
        except PkgrepoError:  # the upstream fails, or its file cannot be used: the page is enough
            return {}


def _find_meta(reader: Reader, repository_ids: list[int], project: str, version_key: str) -> Mapping[str, Any]:
    """The metadata of a version in the first repository that has any."""
    for each in repository_ids:
        package = packages.find_package(reader, each, project)
        version = None if package is None else versions.find_version(reader, package.id, version_key)
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
