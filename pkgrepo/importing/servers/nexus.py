"""
A repository of Nexus 3, by the address of the server: its REST API lists components, its repositories serve them.

Written from the documentation of its API (``service/rest/v1/components``). Images are behind an address of their own
there, the connector of the repository: it is a source of kind container.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import Described, Once, digests_of, objects_of, text_of
from pkgrepo.gateway.imported.items import Fact, Facts, Source
from pkgrepo.gateway.imported.places import Site
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.untrusted.text import time_ms

SUMS: Final = {"sha512": "sha512", "sha256": "sha256", "sha1": "sha1", "md5": "md5"}


FORMATS: Final = ("cargo", "go", "helm", "maven", "npm", "python", "raw", "ruby")  # of those that it has, by our names


def open_nexus(format_: Format, site: Site, request: ImportRequest) -> Source:
    """The packages of one repository."""
    repository, imported = request.repositories[0], format_.imported
    components = _Components(site, repository, imported.normal)
    inner = site.at(f"{site.url}/repository/{quote(repository)}")
    if imported.assets is not None:
        return imported.assets(inner, components.paths)
    source = imported.address(inner, evolve(request, names=()))
    return Described(source, components.facts, None if imported.listed else components.names)


class _Components:
    """The list of components of a repository, and what it says of their files."""

    def __init__(self, site: Site, repository: str, normal: Callable[[str], str]) -> None:
        self._site = site
        self._repository = repository
        self._normal = normal  # of names, which may have several spellings
        self._once: Once[Mapping[str, dict[str, Fact]]] = Once()

    async def names(self) -> AsyncIterator[str]:
        """The names of all packages."""
        for name in await self._read():
            yield name

    async def facts(self, name: str) -> Facts:
        """What the list says of the files of a package, by their names."""
        return (await self._read()).get(self._normal(name), {})

    async def paths(self) -> AsyncIterator[tuple[str, Fact]]:
        """The paths of all files."""
        async for component in self._components():
            for asset in objects_of(component.get("assets")):
                yield text_of(asset.get("path")).lstrip("/"), _fact(asset)

    async def _read(self) -> Mapping[str, dict[str, Fact]]:
        """The facts of all files, by package and name; kept for the whole import, since the list has its own order."""
        return await self._once.get(self._make)

    async def _make(self) -> Mapping[str, dict[str, Fact]]:
        found: dict[str, dict[str, Fact]] = {}
        async for component in self._components():
            group, name = text_of(component.get("group")), text_of(component.get("name"))
            of_package = found.setdefault(self._normal(f"@{group}/{name}" if group else name), {})
            # Files of some formats are called otherwise there: what is known of the version is so of each.
            facts = [_fact(each) for each in objects_of(component.get("assets"))]
            if facts and (version := text_of(component.get("version"))):
                of_package.setdefault(version, evolve(facts[0], digests={}))
            for asset in objects_of(component.get("assets")):
                of_package[text_of(asset.get("path")).rpartition("/")[2]] = _fact(asset)
        return found

    async def _components(self) -> AsyncIterator[dict[str, Any]]:
        """All components, page by page."""
        token = ""
        while True:
            more = f"&continuationToken={quote(token, safe='')}" if token else ""
            address = f"/service/rest/v1/components?repository={quote(self._repository, safe='')}{more}"
            try:
                page = await self._site.json(f"{self._site.url}{address}")
            except NotFound:
                raise Invalid(
                    "it has no such repository, or is no Nexus 3: of Nexus 2 take the address of the repository (maven)"
                ) from None
            for each in objects_of(page.get("items") if isinstance(page, dict) else None):
                yield each
            token = text_of(page.get("continuationToken")) if isinstance(page, dict) else ""
            if not token:
                return


def _fact(asset: Mapping[str, Any]) -> Fact:
    return Fact(
        published_ms=time_ms(asset.get("blobCreated")) or time_ms(asset.get("lastModified")),
        publisher=text_of(asset.get("uploader")) or None,
        digests=digests_of(asset.get("checksum"), SUMS),
    )
