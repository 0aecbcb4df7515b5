"""The JSON documents of a channel as pieces of text, joined from what the channel has in memory of each package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from pkgrepo.formats.conda.names import CONDA, SUBDIRS, TAR_BZ2
from pkgrepo.repositories.publish.package_lists import PackageList

from .packages import FolderRecords, PackageRecords

Text = Callable[[FolderRecords, str], bytes]  # of the files with an ending
Packages = PackageList[PackageRecords]

CHANNELDATA_VERSION: Final = 1
CHANNELDATA_HEAD: Final = b'{"channeldata_version":%d,"packages":{' % CHANNELDATA_VERSION
TAIL: Final = b'},"removed":[],"repodata_version":1}'  # of repodata
EXPORTS_TAIL: Final = b"}}"  # of run exports


def folder_head(subdir: str) -> bytes:
    """The head of a document of a folder, up to its records of the older kind of files."""
    return b'{"info":{"subdir":%b},"packages":{' % msgspec.json.encode(subdir)


def folder_text(packages: Packages, subdir: str, text: Text, tail: bytes) -> list[bytes]:
    """A document of a folder: an object for each kind of file, and a ``tail`` after the last one."""
    return [
        folder_head(subdir),
        *_members(packages, subdir, TAR_BZ2, text),
        b'},"packages.conda":{',
        *_members(packages, subdir, CONDA, text),
        tail,
    ]


def repodata_text(packages: Packages, subdir: str) -> list[bytes]:
    """``repodata.json`` of a folder."""
    return folder_text(packages, subdir, lambda folder, ending: folder.records[ending], TAIL)


def exports_text(packages: Packages, subdir: str) -> list[bytes]:
    """``run_exports.json`` of a folder (CEP 12)."""
    return folder_text(packages, subdir, lambda folder, ending: folder.exports[ending], EXPORTS_TAIL)


def channeldata_text(packages: Packages) -> list[bytes]:
    """``channeldata.json`` of the channel (CEP 38)."""
    entries = [channeldata_entry(package) for package in packages.values()]
    found = {subdir for package in packages.values() for subdir in package.folders}
    subdirs = msgspec.json.encode([subdir for subdir in SUBDIRS if subdir in found or subdir == SUBDIRS[0]])
    return [CHANNELDATA_HEAD, *_without_first_comma(entries), b'},"subdirs":', subdirs, b"}"]


def _members(packages: Packages, subdir: str, ending: str, text: Text) -> list[bytes]:
    chunks = (
        b"".join(text(package.folders[subdir], ending) for package in chunk if subdir in package.folders)
        for chunk in packages.chunks()
    )
    return _without_first_comma(chunks)


def _without_first_comma(texts: Iterable[bytes]) -> list[bytes]:
    found = [each for each in texts if each]
    return [found[0][1:], *found[1:]] if found else []


def channeldata_entry(package: PackageRecords) -> bytes:
    """The entry of a package in ``channeldata.json``, with a comma before it."""
    subdirs = msgspec.json.encode(sorted(package.folders))
    about = package.about[1:-1]
    return b',"%b":{%b%b"subdirs":%b}' % (package.name.encode(), about, b"," if about else b"", subdirs)
