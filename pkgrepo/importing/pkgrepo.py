"""A repository of another pkgrepo, by its address: packages by their protocol, and what its API knows of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote, unquote

from pkgrepo.errors import Invalid
from pkgrepo.importing.described import PROTOCOLS, Described, objects_of, text_of, time_ms
from pkgrepo.importing.images import ImageSource
from pkgrepo.importing.items import Fact, Facts, Source
from pkgrepo.importing.places import Site
from pkgrepo.importing.registry import Registry
from pkgrepo.model import VersionState
from pkgrepo.repositories.upkeep.imports import ImportRequest

PAGE: Final = 500
PLACE: Final = "/repositories/"


def open_repository(format_name: str, site: Site, request: ImportRequest) -> Source:
    """The packages of the repository whose address is that of the site. :raises Invalid: it is no such address"""
    root, place, path = site.url.partition(PLACE)
    path = unquote(path.strip("/"))
    if not place or path.count("/") != 1:
        raise Invalid("the address of a repository is https://host/repositories/STORAGE/REPOSITORY", "/source")
    if format_name == "docker":
        return ImageSource(Registry(site.at(f"{root}/v2/{path}")), request.renamed, request.names)
    inner = PROTOCOLS[format_name](site)
    if format_name == "maven":
        return inner
    api = _Api(site.at(root), path, format_name)
    if format_name == "conda":  # whose packages have their names in several folders
        return Described(inner, lambda name: api.facts(name.partition("/")[2]))
    return Described(inner, api.facts, api.names)


class _Api:
    """The management API of the other server, about one repository."""

    def __init__(self, site: Site, path: str, format_name: str) -> None:
        self._site = site
        self._path = quote(path, safe="")
        self._states = format_name != "npm"  # whose documents have the deprecations

    async def names(self) -> AsyncIterator[str]:
        """The names of all packages."""
        async for each in self._items(f"/api/repository/{self._path}/packages"):
            yield text_of(each.get("key")) or text_of(each.get("name"))

    async def facts(self, name: str) -> Facts:
        """What the API says of the versions of a package."""
        found: dict[str, Fact] = {}
        async for each in self._items(f"/api/package/{self._path}/{quote(name, safe='')}/versions"):
            said, state = text_of(each.get("state")), None
            if self._states and said in (VersionState.YANKED, VersionState.DEPRECATED):
                state = VersionState(said), text_of(each.get("reason"))
            found[text_of(each.get("version"))] = Fact(
                published_ms=time_ms(each.get("published_at")),
                publisher=text_of(each.get("publisher")) or None,
                state=state,
            )
        return found

    async def _items(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The items of a list, page by page."""
        cursor = ""
        while True:
            more = f"&cursor={quote(cursor, safe='')}" if cursor else ""
            page = await self._site.json(f"{self._site.url}{path}?limit={PAGE}{more}")
            for each in objects_of(page.get("items") if isinstance(page, dict) else None):
                yield each
            cursor = text_of(page.get("next")) if isinstance(page, dict) else ""
            if not cursor:
                return
