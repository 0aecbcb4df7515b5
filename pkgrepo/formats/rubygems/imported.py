"""Ruby gems: a gem server by its address (compact or legacy index), and folders of gems (geminabox, gemstash)."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.rubygems.index.info import HEAD
from pkgrepo.formats.rubygems.legacy import read_rows
from pkgrepo.formats.rubygems.names import full_name, is_full_version, is_name
from pkgrepo.formats.rubygems.paths import GEM, gem_path, hidden_path
from pkgrepo.formats.rubygems.proxied.normaliser import normalise_info
from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem
from pkgrepo.formats.rubygems.push.requests import make_release, read_gem
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site, open_file
from pkgrepo.gateway.imported.sources import entry_items
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.parts.values import Context
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files

LISTS: Final = ("specs.4.8.gz", "prerelease_specs.4.8.gz")  # of the legacy index; together they have all gems
LARGEST_INFO: Final = 64 * 1024 * 1024  # bytes
LARGEST_SPECS: Final = 512 * 1024 * 1024  # bytes, inflated
IN_TURN: Final = 200  # names of files that are read in one turn of the reactor
GEMSTASH: Final = "gem"  # the name of each gem's file in its storage, whose folders end with an MD5
_GEMSTASH_FOLDER: Final = re.compile(r"\w+-[0-9a-f]{32}")
_FILE: Final = re.compile(r"(?P<name>.+?)-(?P<version>[0-9][^-]*(?:-.+)?)\.gem")


class GemServer:
    """A gem server, whose address is that which clients have as source."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._legacy: dict[str, list[str]] | None = None  # versions by name, of a server without a compact index

    async def names(self) -> AsyncIterator[str]:
        """The names of the gems. :raises NotFound: the server has no index"""
        try:
            content, _ = await self._site.read(f"{self._site.url}/versions")
        except NotFound:
            self._legacy = await self._read_legacy()
            for name in sorted(self._legacy):
                yield name
            return
        for name in await self._site.pools.cpu(_names_in, content):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The versions of a gem."""
        if self._legacy is not None:
            return self._of_legacy(name, self._legacy[name])
        content, url = await self._site.read(f"{self._site.url}/info/{quote(name)}", largest=LARGEST_INFO)
        return await self._site.pools.cpu(self._of_info, name, content, url)

    def _of_info(self, name: str, content: bytes, url: str) -> SourcePackage:
        entries = normalise_info(content, Context(name, url)).entries
        items = entry_items(self._site, entries, lambda path: path.endswith(GEM))
        return SourcePackage(name=name, key=name, fingerprint=hashlib.sha256(content).hexdigest(), items=items)

    def _of_legacy(self, name: str, versions: Sequence[str]) -> SourcePackage:
        items = []
        for version in versions:
            path = gem_path(full_name(name, version))
            place = self._site.file(f"{self._site.url}/{quote(path)}")
            items.append(Item(name=path.rpartition("/")[2], path=path, place=place, version=version))
        mark = hashlib.sha256("\n".join(versions).encode()).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items)

    async def _read_legacy(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in LISTS:
            content, _ = await self._site.read(f"{self._site.url}/{path}")
            for name, version in await self._site.pools.cpu(_rows, content):
                found.setdefault(name, []).append(version)
        return found


class GemFolder:
    """A folder of gems, also in folders below it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._found: dict[str, dict[str, FoundFile]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The names of the gems, as far as the names of files tell."""
        for number, file in enumerate(await self._folder.files()):
            if number % IN_TURN == 0:
                await self._folder.pools.cpu(int)  # lets the reactor do other work
            try:
                filename = await self._file_name(file)
            except (Invalid, OSError) as error:
                self._folder.left_out[file.path] = str(error)
                continue
            if filename is None:
                continue
            parts = _FILE.fullmatch(filename)
            if parts is None or not is_name(parts["name"]) or not is_full_version(parts["version"]):
                self._folder.left_out[file.path] = "its name is not <name>-<version>.gem"
                continue
            known = self._found.setdefault(parts["name"], {})
            if filename in known:
                self._folder.left_out[file.path] = f"{known[filename].path} has the same name"
            known.setdefault(filename, file)
        for name in sorted(self._found):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The versions of a gem."""
        files = self._found.pop(name)
        items = [
            Item(
                name=filename,
                path=gem_path(filename.removesuffix(GEM)),
                place=self._folder.file(each),
                size=each.size,
                published_ms=each.modified_ns // 1_000_000,
            )
            for filename, each in sorted(files.items(), key=lambda pair: pair[1].modified_ns)
        ]
        mark = hashlib.sha256("\n".join(each.mark for each in files.values()).encode()).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items)

    async def _file_name(self, file: FoundFile) -> str | None:
        """
        What a gem is called, None for another file; in the storage of gemstash only the gem itself says it.

        :raises Invalid: the file is no gem, or was yanked there
        """
        if file.name.endswith(GEM):
            return file.name
        folder = file.path.rpartition("/")[0]
        if file.name != GEMSTASH or not _GEMSTASH_FOLDER.fullmatch(folder.rpartition("/")[2]):
            return None
        with suppress(NotFound):
            if b":indexed: false" in await self._folder.read(f"{folder}/properties.yaml", 64 * 1024):
                raise Invalid("it was yanked there")
        return await self._folder.pools.cpu(_name_in, self._folder.at(file.path).path)


async def take(_source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a gem; see L{pkgrepo.gateway.imported.items.Take}."""
    gem = await staged.inspect(pools.cpu, blob, read_gem)
    if gem_path(gem.spec.full_name) != item.path:
        raise Invalid(f"it says of itself that it is {gem.spec.full_name}")
    return await make_release(staged, blob, gem)


def settle(reader: Reader, repository_id: int, source_package: SourcePackage) -> SourcePackage:
    """The package with the places of gems that were yanked here, which stay so."""

    def place(item: Item) -> Item:
        hidden = hidden_path(item.path)
        return item if files.find_file(reader, repository_id, hidden) is None else evolve(item, path=hidden)

    return evolve(source_package, items=[place(each) for each in source_package.items])


TAKING: Final = Taking(take=take, settle=settle)


def _name_in(place: str) -> str:
    """The name of the file of a gem, as the gem has it. :raises Invalid: it is no gem; :raises OSError: no file"""
    descriptor = open_file(place)
    try:
        return f"{inspect_gem(descriptor).full_name}{GEM}"
    finally:
        os.close(descriptor)


def _names_in(content: bytes) -> list[str]:
    """The names in the list of a compact index, in its order. :raises Invalid: the file is no such list"""
    _, mark, lines = content.partition(HEAD)
    if not mark:
        raise Invalid("its /versions is no list of a compact index")
    said = dict.fromkeys(line.partition(b" ")[0] for line in lines.split(b"\n") if line)
    return [name for raw in said if is_name(name := raw.decode("utf-8", "replace"))]


def _rows(content: bytes) -> list[tuple[str, str]]:
    """The gems of a list of the legacy index. :raises Invalid: the file is no such list"""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            data = file.read(LARGEST_SPECS)
    except (OSError, EOFError, zlib.error):
        raise Invalid("its list of gems is no gzip file") from None
    return list(read_rows(data))


IMPORTED: Final = Imported(
    kind="ruby",
    about="Ruby gems: a gem server (compact or legacy index), or a folder of gems (geminabox, gemstash).",
    address=lambda site, request: with_names(GemServer(site), request.names),
    folder=lambda folder, _: GemFolder(folder),
    taker=take_files(TAKING),
)
