"""Go modules: a module proxy by its address, and folders as it or the go command's download cache has them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import Site
from pkgrepo.gateway.imported.sources import DocumentSource, PathFolder, PathSite
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.parts.values import Context
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged

from .archive import read_module
from .facts import NAME
from .names import INFO, KINDS, LIST, check_module, escape, file_path, parse_path
from .normaliser import normalise_list, read_info
from .proxied import question
from .publishing import info_of, make_release, release_of

_AT: Final = "at_ms"  # in the metadata of the release of a ``.info`` alone: the time in it


class ModuleProxy(DocumentSource):
    """A module proxy, whose address is that which clients have in ``GOPROXY``."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, question)
        self._site = site

    async def package(self, name: str) -> SourcePackage:
        """The files of the versions of a module that are listed."""
        url = self._site.url
        content, _ = await self._site.read(f"{url}/{escape(check_module(name))}/@v/{LIST}")
        items = []
        for version in (each.version for each in normalise_list(content, Context(name, url)).entries):
            for kind in KINDS:
                path = file_path(name, version, kind)
                place = self._site.file(f"{url}/{quote(path)}")
                items.append(Item(name=f"{version}.{kind}", path=path, version=version, place=place))
        return SourcePackage(name=name, key=name, fingerprint=hashlib.sha256(content).hexdigest(), items=items)


def _read(path: str) -> tuple[str, str]:
    """The module and the version of a file in a folder. :raises Invalid: it is of none, with a reason for a zip"""
    try:
        found = parse_path(path)
    except Invalid:
        raise Invalid("it is not at MODULE/@v/VERSION.zip" if path.endswith(".zip") else "") from None
    if found.kind not in KINDS:
        raise Invalid("")
    return found.module, found.version


async def take(_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file of a version; see L{pkgrepo.gateway.imported.items.Take}."""
    found = parse_path(item.path)
    if found.kind == "zip":
        module = await staged.inspect(pools.cpu, blob, read_module)
        if (module.module, module.version) != (found.module, found.version):
            raise Invalid(f"it says of itself that it is {module.module}@{module.version}")
        return await make_release(staged, blob, module, info_of(item.version, item.published_ms or 0))
    release = release_of(found.module, found.version, {found.kind: blob})
    if found.kind != INFO:
        return release
    version, at_ms = await staged.inspect(pools.cpu, blob, lambda content: read_info(content, found.module))
    return evolve(release, meta={_AT: at_ms} if version == found.version else {})


def join(releases: Sequence[Release]) -> Release:
    """The release of a version: its ``.mod`` is that of its zip if that is there, its time that of the ``.info``."""
    main = max(releases, key=lambda each: len(each.files))
    at_ms = next((each.meta[_AT] for each in releases if _AT in each.meta), None) or main.published_ms
    files = {file.path: file for each in (*releases, main) for file in each.files}
    files |= {each.files[0].path: each.files[0] for each in releases if _AT in each.meta}
    held = tuple(evolve(each, created_ms=at_ms) for each in files.values())
    return evolve(main, files=held, meta={} if _AT in main.meta else main.meta, published_ms=at_ms)


IMPORTED: Final = Imported(
    kind=NAME,
    about="Go modules: of a module proxy by their names, or of a folder (as go's cache/download has them).",
    address=lambda site, request: with_names(ModuleProxy(site), request.names),
    folder=lambda folder, _: PathFolder(folder, _read),
    # Some servers have upper-case letters in their paths, which are not escaped twice here.
    assets=lambda site, paths: PathSite(site, paths, lambda path: _read(escape(path)), path_of=escape),
    taker=take_files(Taking(take=take, join=join)),
    listed=False,
)
