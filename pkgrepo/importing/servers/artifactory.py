"""
A repository of Artifactory, by the address of the server (with ``/artifactory``, if it has that).

Its API lists all files with their checksums (``api/storage/REPOSITORY?list&deep=1``), and clients' protocols are below
``api/pypi``, ``api/npm`` and so on. That list has no downloads: one query in its own language (AQL) has those of all
files. Written from its documentation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote

import msgspec
from attrs import evolve
from twisted.logger import Logger

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import (
    Described,
    Once,
    count_of,
    digests_of,
    objects_of,
    text_of,
)
from pkgrepo.gateway.imported.items import Fact, Facts, Source
from pkgrepo.gateway.imported.places import Site
from pkgrepo.gateway.imported.sources import Read
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.untrusted.text import time_ms

log = Logger()

SUMS: Final = {"sha1": "sha1", "sha2": "sha256", "md5": "md5"}
PROTOCOL: Final = {  # below api/, by our names
    "cargo": "cargo/{}/index",
    "conda": "conda/{}",
    "docker": "docker/{}",
    "npm": "npm/{}",
    "python": "pypi/{}",
    "ruby": "gems/{}",
}
# Charts and modules are at their paths: clients resolve them in virtual repositories alone.
FORMATS: Final = (*PROTOCOL, "go", "helm", "maven", "raw")
LIST: Final = "?list&deep=1&listFolders=0&mdTimestamps=1"


def open_artifactory(format_: Format, site: Site, request: ImportRequest) -> Source:
    """The packages of one repository."""
    imported = format_.imported
    files = _Files(site, request.repositories[0], imported.read)
    repository = quote(request.repositories[0])
    if imported.assets is not None:
        return imported.assets(site.at(f"{site.url}/{repository}"), files.paths)
    inner = site.at(f"{site.url}/api/{PROTOCOL[format_.name].format(repository)}")
    if format_.images is not None:
        return imported.address(inner, request)
    source = imported.address(inner, evolve(request, names=()))
    return Described(source, files.facts, None if imported.listed else files.names)


class _Files:
    """The files of a repository, and what the list of them says."""

    def __init__(self, site: Site, repository: str, read: Read) -> None:
        self._site = site
        self._repository = repository
        self._read_path = read
        self._once: Once[Mapping[str, dict[str, Fact]]] = Once()

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages that have files."""
        for name in await self._read():
            if name:
                yield name

    async def facts(self, name: str) -> Facts:
        """What the list says of the files of a package, by their names."""
        found = await self._read()
        return found.get(name, found.get("", {}))

    async def paths(self) -> AsyncIterator[tuple[str, Fact]]:
        """The paths of all files, and what the list says of each."""
        counts = await self._count()
        listed = await self._site.json(f"{self._site.url}/api/storage/{quote(self._repository)}{LIST}")
        for each in objects_of(listed.get("files") if isinstance(listed, dict) else None):
            path = text_of(each.get("uri")).lstrip("/")
            yield path, _fact(each, counts.get(path, 0))

    async def _count(self) -> Mapping[str, int]:
        """The downloads of the files that were downloaded, by path; none if these credentials may not query them."""
        criteria = msgspec.json.encode({"repo": self._repository, "stat.downloads": {"$gt": 0}})
        query = b"items.find(" + criteria + b').include("repo","path","name","stat.downloads")'
        url = f"{self._site.url}/api/search/aql"
        try:
            listed = await self._site.json(url, body=query, body_type="text/plain")
        except (NotFound, UpstreamFailed) as error:
            log.warn("downloads at {url} are not known: {error}", url=url, error=error)
            return {}
        found: dict[str, int] = {}
        for each in objects_of(listed.get("results") if isinstance(listed, dict) else None):
            folder, name = text_of(each.get("path")), text_of(each.get("name"))
            path = name if folder == "." else f"{folder}/{name}"
            found[path] = sum(count_of(stat.get("downloads")) for stat in objects_of(each.get("stats")))
        return found

    async def _read(self) -> Mapping[str, dict[str, Fact]]:
        """The facts of all files, by package and name; under an empty name those whose path tells no package."""
        return await self._once.get(self._make)

    async def _make(self) -> Mapping[str, dict[str, Fact]]:
        found: dict[str, dict[str, Fact]] = {}
        async for path, fact in self.paths():
            try:
                package, version = self._read_path(path)
            except Invalid:
                package = version = ""
            of_package = found.setdefault(package, {})
            of_package[path.rpartition("/")[2]] = fact
            if version:
                of_package[version] = fact
        return found


def _fact(file: Mapping[str, object], downloads: int) -> Fact:
    return Fact(published_ms=time_ms(file.get("lastModified")), digests=digests_of(file, SUMS), downloads=downloads)
