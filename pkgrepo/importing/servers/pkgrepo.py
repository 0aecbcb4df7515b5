"""A repository of another pkgrepo, by its address: packages by their protocol, and what its API knows of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote, unquote

from attrs import evolve

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.container.imported.images import ImageSource
from pkgrepo.formats.container.imported.registry import Registry
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import Described, count_of, objects_of, text_of
from pkgrepo.gateway.imported.items import Fact, Facts, Source
from pkgrepo.gateway.imported.kinds import Imported
from pkgrepo.gateway.imported.places import Site
from pkgrepo.model import VersionState
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.storage.catalog.imported_downloads import Downloads
from pkgrepo.untrusted.text import time_ms

PAGE: Final = 500
PLACE: Final = "/repositories/"


def open_repository(format_: Format, site: Site, request: ImportRequest) -> Source:
    """The packages of the repository whose address is that of the site. :raises Invalid: it is no such address"""
    root, place, path = site.url.partition(PLACE)
    path = unquote(path.strip("/"))
    if not place or path.count("/") != 1:
        raise Invalid("the address of a repository is https://host/repositories/STORAGE/REPOSITORY", "/source")
    imported = format_.imported
    api = _Api(site.at(root), path, imported)
    if format_.images is not None:
        return ImageSource(Registry(site.at(f"{root}/v2/{path}")), request.renamed, request.names, api.pulls)
    source = imported.address(site, evolve(request, names=()))
    return Described(source, api.facts_of_name, None if imported.named is not None else api.names)


class _Api:
    """The management API of the other server, about one repository."""

    def __init__(self, site: Site, path: str, imported: Imported) -> None:
        self._site = site
        self._path = quote(path, safe="")
        self._states = not imported.states
        self._named = imported.named
        self._totals: dict[str, int] = {}  # the downloads of packages that were listed

    async def names(self) -> AsyncIterator[str]:
        """The names of all packages."""
        async for each in self._items(f"/api/repository/{self._path}/packages"):
            name = text_of(each.get("key")) or text_of(each.get("name"))
            self._totals[name] = count_of(each.get("downloads"))
            yield name

    async def pulls(self, name: str) -> Downloads | None:
        """The pulls of an image, and of its manifests; None if the API does not show it."""
        path = f"/api/package/{self._path}/{quote(name, safe='')}"
        try:
            record = await self._site.json(f"{self._site.url}{path}")
            versions = [each async for each in self._items(f"{path}/versions")]
        except NotFound:
            return None
        total = count_of(record.get("downloads")) if isinstance(record, dict) else 0
        counts = {text_of(each.get("digest")): count_of(each.get("downloads")) for each in versions}
        return Downloads(total, manifests={digest: count for digest, count in counts.items() if count})

    async def facts_of_name(self, name: str) -> Facts:
        """What the API says of what a name of the source stands for."""
        if self._named is None:
            return await self.facts(name)
        found = self._named(name)
        if found is None:
            return {}
        try:
            return await self.facts(*found)
        except NotFound:
            if not found[1]:
                raise
            return {}  # it is no directory of a version

    async def facts(self, name: str, version: str = "") -> Facts:
        """What the API says of a package and its versions, or only of one with this text."""
        found = {"": Fact(downloads=self._totals.pop(name, 0))}
        path = f"/api/package/{self._path}/{quote(name, safe='')}/versions"
        async for each in self._items(path, f"&q={quote(version, safe='')}" if version else ""):
            text, said, state = text_of(each.get("version")), text_of(each.get("state")), None
            if version and text != version:  # which only has that text in its own
                continue
            if self._states and said in (VersionState.YANKED, VersionState.DEPRECATED):
                state = VersionState(said), text_of(each.get("reason"))
            found[text] = Fact(
                published_ms=time_ms(each.get("published_at")),
                publisher=text_of(each.get("publisher")) or None,
                state=state,
                downloads=count_of(each.get("downloads")),
            )
        return found

    async def _items(self, path: str, query: str = "") -> AsyncIterator[dict[str, Any]]:
        """The items of a list, page by page."""
        cursor = ""
        while True:
            more = f"&cursor={quote(cursor, safe='')}" if cursor else ""
            page = await self._site.json(f"{self._site.url}{path}?limit={PAGE}{query}{more}")
            for each in objects_of(page.get("items") if isinstance(page, dict) else None):
                yield each
            cursor = text_of(page.get("next")) if isinstance(page, dict) else ""
            if not cursor:
                return
