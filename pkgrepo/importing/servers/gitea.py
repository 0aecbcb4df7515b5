"""
Packages of an owner in Gitea or Forgejo, by the address of the server: its API lists what its registries serve.

The repository that is named is the owner. Written from the documentation of its API (``/api/v1/packages``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.container.imported.images import ImageSource
from pkgrepo.formats.container.imported.registry import Registry
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import Described, Once, digests_of, objects_of, text_of
from pkgrepo.gateway.imported.items import Fact, Facts, Source
from pkgrepo.gateway.imported.places import Site
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.untrusted.text import time_ms

PAGE: Final = 50  # the server's own limit
SUMS: Final = {"sha512": "sha512", "sha256": "sha256", "sha1": "sha1", "md5": "md5"}
TYPES: Final = {  # by our names of formats
    "cargo": "cargo",
    "docker": "container",
    "go": "go",
    "helm": "helm",
    "maven": "maven",
    "npm": "npm",
    "python": "pypi",
    "raw": "generic",
    "ruby": "rubygems",
}


def _maven_path(name: str, version: str, file: str) -> str:
    group, _, artifact = name.partition(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{file}" if artifact else ""


# Of the files of types whose lists of files tell everything: below the address of the type, by package and version.
PATHS: Final[Mapping[str, Callable[[str, str, str], str]]] = {
    "generic": lambda name, version, file: f"{name}/{version}/{file}",
    "go": lambda name, _version, file: f"{name}/@v/{file}",  # upper-case letters as they are: escaped it finds none
    "helm": lambda _name, _version, file: file,
    "maven": _maven_path,
}


def open_gitea(format_: Format, site: Site, request: ImportRequest) -> Source:
    """The packages of one owner."""
    owner, imported, kind = quote(request.repositories[0]), format_.imported, TYPES[format_.name]
    if format_.images is not None:
        listed = _Packages(site, owner, kind, imported.normal)
        images = _Images(site.at(f"{site.url}/v2/{owner}"), listed)
        return ImageSource(images, request.renamed, request.names)
    packages = _Packages(site, owner, kind, imported.normal)
    inner = site.at(f"{site.url}/api/packages/{owner}/{kind}")
    if imported.assets is not None:
        return imported.assets(inner, packages.paths)
    return Described(imported.address(inner, evolve(request, names=())), packages.facts, packages.names)


class _Images(Registry):
    """The images of an owner, with credentials by the API: the catalog leaves out what these may not read."""

    def __init__(self, site: Site, listed: _Packages) -> None:
        super().__init__(site)
        self._listed = listed
        self._anonymous = site.upstream.route.credentials is None

    async def names(self) -> AsyncIterator[str]:
        """The names of the images, without that of the owner. :raises Invalid: none can be seen without credentials"""
        if not self._anonymous:
            async for name in self._listed.names():
                yield name
            return
        any_found = False
        async for name in super().names():
            any_found = True
            yield name
        if not any_found:
            raise Invalid("it shows no image of this owner without credentials (--username, --password-file)")


class _Packages:
    """The packages of an owner, of one type."""

    def __init__(self, site: Site, owner: str, kind: str, normal: Any) -> None:
        self._site = site
        self._owner = owner
        self._kind = kind
        self._normal = normal
        self._once: Once[Mapping[str, list[Mapping[str, Any]]]] = Once()

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages."""
        for name in await self._read():
            yield name

    async def facts(self, name: str) -> Facts:
        """What the API says of the files of a package, by their names, and of its versions."""
        found: dict[str, Fact] = {}
        for version in (await self._read()).get(self._normal(name), ()):
            about = _fact(version)
            found[text_of(version.get("version"))] = about
            for file in await self._files(version):
                found[text_of(file.get("name"))] = evolve(about, digests=digests_of(file, SUMS))
        return found

    async def paths(self) -> AsyncIterator[tuple[str, Fact]]:
        """The paths of all files, of a type that is in ``PATHS``."""
        for versions in (await self._read()).values():
            for version in versions:
                about, name, text = _fact(version), text_of(version.get("name")), text_of(version.get("version"))
                for file in await self._files(version):
                    if path := PATHS[self._kind](name, text, text_of(file.get("name"))):
                        yield path, evolve(about, digests=digests_of(file, SUMS))

    async def _files(self, version: Mapping[str, Any]) -> list[dict[str, Any]]:
        name, text = (quote(text_of(version.get(each)), safe="") for each in ("name", "version"))
        try:
            listed = await self._site.json(
                f"{self._site.url}/api/v1/packages/{self._owner}/{self._kind}/{name}/{text}/files"
            )
        except NotFound:
            return []
        return objects_of(listed)

    async def _read(self) -> Mapping[str, list[Mapping[str, Any]]]:
        """The versions of all packages, by name: the list has one entry for each version."""
        return await self._once.get(self._make)

    async def _make(self) -> Mapping[str, list[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = {}
        for page in count(1):
            address = f"/api/v1/packages/{self._owner}?type={self._kind}&limit={PAGE}&page={page}"
            listed = objects_of(await self._site.json(f"{self._site.url}{address}"))
            if not listed:
                break
            for each in listed:
                found.setdefault(self._normal(text_of(each.get("name"))), []).append(each)
        return found


def _fact(version: Mapping[str, Any]) -> Fact:
    creator = version.get("creator")
    login = text_of(creator.get("login")) if isinstance(creator, dict) else ""
    return Fact(published_ms=time_ms(version.get("created_at")), publisher=login or None)
