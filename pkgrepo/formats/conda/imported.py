"""Conda packages: a channel by its address, and the folder of a channel."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.conda.files import DIGESTS, Upload, make_release
from pkgrepo.formats.conda.names import SUBDIRS, FileName, parse_file_name
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.conda.paths import package_path
from pkgrepo.gateway.imported.items import Item, Place, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import LARGEST_LIST, Folder, FoundFile, Site
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish_policy import PublishPolicy

REPODATA: Final = "repodata.json"
PATCHED: Final = ("depends", "constrains", "license", "license_family", "track_features", "features")
FOLDERS: Final = 4  # whose records are in memory: as many as packages are taken in at a time
_SECONDS: Final = 253_402_300_799  # a larger timestamp is in milliseconds, as conda has it


@frozen
class About:
    """A package in a folder of the channel, with the record that the channel has of it; empty if there is none."""

    subdir: str
    name: FileName
    record: Mapping[str, Any]


class _Repodata(msgspec.Struct):
    packages: dict[str, msgspec.Raw] = {}
    conda: dict[str, msgspec.Raw] = msgspec.field(name="packages.conda", default_factory=dict)


Records = dict[str, list[tuple[str, bytes]]]  # file names and records, by the name of the package


class Channel:
    """A channel; packages of each folder are taken in by themselves."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._records: dict[str, Records] = {}

    async def names(self) -> AsyncIterator[str]:
        """The folders and names of the packages, with a slash between."""
        found = False
        for subdir in SUBDIRS:
            try:
                content, _ = await self._site.read(f"{self._site.url}/{subdir}/{REPODATA}")
            except NotFound:
                continue
            found = True
            _remember(self._records, subdir, await self._site.pools.cpu(_read_records, content))
            for name in list(self._records[subdir]):
                yield f"{subdir}/{name}"
        if not found:
            raise NotFound("document", REPODATA)

    async def package(self, name: str) -> SourcePackage:
        """The files of a package in a folder."""
        subdir, _, package = name.partition("/")
        return _source_package(
            name, self._records[subdir][package], lambda file: self._site.file(f"{self._base(subdir)}{file}")
        )

    def _base(self, subdir: str) -> str:
        return f"{self._site.url}/{subdir}/"


class ChannelFolder:
    """The folder of a channel, with or without its documents; packages lie in folders of their platforms."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._records: dict[str, Records] = {}
        self._files: dict[str, dict[str, FoundFile]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The folders and names of the packages, with a slash between."""
        subdirs, _ = await self._folder.list()
        for subdir in subdirs:
            if subdir not in SUBDIRS:
                continue
            _, files = await self._folder.list(subdir)
            try:
                content = await self._folder.read(f"{subdir}/{REPODATA}", LARGEST_LIST)
                known = await self._folder.pools.cpu(_read_records, content)
            except NotFound:
                known = {}
            records = await self._folder.pools.cpu(_join, known, files)
            _remember(self._records, subdir, records)
            _remember(self._files, subdir, {each.name: each for each in files})
            for name in list(records):
                yield f"{subdir}/{name}"

    async def package(self, name: str) -> SourcePackage:
        """The files of a package in a folder."""
        subdir, _, package = name.partition("/")
        files, found = self._files[subdir], self._records[subdir][package]
        source_package = _source_package(name, found, lambda file: self._folder.file(files[file]))
        marks = "\n".join([source_package.fingerprint, *(files[file].mark for file, _ in found)])
        items = [
            each if each.published_ms else evolve(each, published_ms=files[each.name].modified_ns // 1_000_000)
            for each in source_package.items
        ]
        return evolve(source_package, items=items, fingerprint=hashlib.sha256(marks.encode()).hexdigest())


async def take(_source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a package, with the requirements that the channel's record has; see ``items``."""
    about: About = item.about
    description = await staged.inspect(pools.cpu, blob, partial(read_package, name=about.name))
    # channels repair the records of packages whose requirements have turned out to be wrong
    patched = {key: about.record[key] for key in PATCHED if key in about.record}
    index = {**description.index, **patched}
    upload = Upload(name=about.name, subdir=about.subdir, blob=blob)
    return make_release(upload, evolve(description, index=index), PublishPolicy())


TAKING: Final = Taking(take=take, algorithms=DIGESTS)


def _source_package(name: str, found: list[tuple[str, bytes]], place: Callable[[str], Place]) -> SourcePackage:
    subdir, _, package = name.partition("/")
    items, left_out = [], []
    for file, raw in sorted(found):
        try:
            parsed, record = parse_file_name(file), _object(raw)
        except Invalid as error:
            left_out.append((file[:255], error.message))
            continue
        digests = {key: each.lower() for key in ("sha256", "md5") if isinstance(each := record.get(key), str)}
        size = record.get("size")
        items.append(
            Item(
                name=file,
                path=package_path(subdir, parsed),
                place=place(file),
                version=parsed.version,
                size=size if isinstance(size, int) else None,
                digests=digests,
                published_ms=_time_ms(record.get("indexed_timestamp") or record.get("timestamp")),
                about=About(subdir, parsed, record),
            )
        )
    said = b"\n".join(file.encode() + raw for file, raw in sorted(found))
    return SourcePackage(
        name=name, key=package, fingerprint=hashlib.sha256(said).hexdigest(), items=items, left_out=left_out
    )


def _read_records(content: bytes) -> Records:
    """The records of a folder, by the name of the package. :raises Invalid: it is no ``repodata.json``"""
    try:
        data = msgspec.json.decode(content, type=_Repodata)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid(f"its {REPODATA} cannot be read") from None
    found: Records = {}
    for listed in (data.packages, data.conda):
        for file, record in listed.items():
            found.setdefault(file.rsplit("-", 2)[0], []).append((file, bytes(record)))
    return found


def _join(known: Records, files: Sequence[FoundFile]) -> Records:
    """The records of the packages that are there, which are empty where none is known."""
    listed = {file: record for some in known.values() for file, record in some}
    records: Records = {}
    for each in files:
        if each.name.endswith((".conda", ".tar.bz2")):
            record = listed.get(each.name, b"{}")
            records.setdefault(each.name.rsplit("-", 2)[0], []).append((each.name, record))
    return records


def _remember(known: dict[str, Any], subdir: str, value: Any) -> None:
    known[subdir] = value
    if len(known) > FOLDERS:
        del known[next(iter(known))]


def _object(raw: bytes) -> dict[str, Any]:
    """:raises Invalid: the record is no object"""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid("its record cannot be read") from None


def _time_ms(value: Any) -> int | None:
    if not isinstance(value, (int, float)) or value <= 0:
        return None
    return round(value if value > _SECONDS else value * 1000)


IMPORTED: Final = Imported(
    kind="conda",
    about="Conda packages: a channel, by its address or its folder.",
    address=lambda site, _: Channel(site),
    folder=lambda folder, _: ChannelFolder(folder),
    taker=take_files(TAKING),
    named=lambda name: (name.partition("/")[2], ""),  # packages have their names in several folders
)
