"""
Normalises metadata of upstreams to the fragments that a hosted artifact has in the catalog.

Clients never get what an upstream wrote around them: ``release``, ``latest`` and the newest builds follow from the
versions and files of all routes. What cannot be the version of an artifact is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.maven.metadata.reading import ReadMetadata, SnapshotFile, read_metadata, version_fragment
from pkgrepo.formats.maven.names import SNAPSHOT, is_part
from pkgrepo.formats.maven.paths import LONGEST_SEGMENT
from pkgrepo.formats.maven.version_order import build_sort, sort_key
from pkgrepo.proxy.parts.values import Context, Entry, Normalised

VERSION: Final = "version"  # kinds of fragments, as hosted artifacts have them
BUILD: Final = "build"

_BUILD = re.compile(r"([0-9]{8}\.[0-9]{6})-([0-9]{1,255})")


def normalise(source: bytes, context: Context) -> Normalised:
    """
    The versions of an artifact, or the files of a snapshot, whose key is the name in the context.

    :raises Invalid: this is no metadata
    """
    _, artifact, *version = context.name.split(":")
    try:
        read = read_metadata(source)
    except TooLarge as error:
        raise Invalid(str(error)) from None
    top = {
        "last_updated_ms": _milliseconds(read.last_updated),
        "plugins": msgspec.to_builtins(read.plugins),
        "others": msgspec.to_builtins(read.others),
    }
    entries = _builds(read, artifact, version[0]) if version else _versions(read)
    return Normalised(top, entries)


def _versions(read: ReadMetadata) -> Iterator[Entry]:
    for each in read.versions:
        if is_part(each) and len(each.encode()) <= LONGEST_SEGMENT:
            yield Entry(sort_key(each), each, each, None, False, {VERSION: version_fragment(each)}, [])


def _builds(read: ReadMetadata, artifact: str, version: str) -> Iterator[Entry]:
    for each in read.snapshots or _implied(read, version):
        if not is_part(each.extension) or (each.classifier and not is_part(each.classifier)):
            continue
        found = _split(each, version)
        if found is None:
            continue
        file, sort = found
        suffix = f"-{file.classifier}" if file.classifier else ""
        name = f"{artifact}-{file.value}{suffix}.{file.extension}"
        yield Entry(sort, name, version, None, False, {BUILD: msgspec.json.encode(file)}, [])


def _implied(read: ReadMetadata, version: str) -> Iterator[SnapshotFile]:
    """The files of metadata of Maven 2, which name the newest build only."""
    if read.timestamp and read.build_number:
        value = f"{version[: -len(SNAPSHOT)]}{read.timestamp}-{read.build_number}"
        for extension in ("jar", "pom"):
            yield SnapshotFile("", extension, value, read.timestamp.replace(".", ""))


def _split(file: SnapshotFile, version: str) -> tuple[SnapshotFile, bytes] | None:
    """The file with its timestamp and build number, and its place in the order; None if it is of another version."""
    if file.value == version:
        return SnapshotFile(file.classifier, file.extension, version, _time(file.updated)), b""
    base = version[: -len(SNAPSHOT)]
    match = _BUILD.fullmatch(file.value.removeprefix(base)) if file.value.startswith(base) else None
    if match is None:
        return None
    timestamp, build = match[1], int(match[2])
    updated = timestamp.replace(".", "")
    made = SnapshotFile(file.classifier, file.extension, file.value, updated, timestamp, build)
    return made, build_sort(updated, build)


def _time(text: str) -> str:
    return text if re.fullmatch(r"[0-9]{14}", text) else ""


def _milliseconds(text: str) -> int:
    try:
        parsed = datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return round(parsed.timestamp() * 1000)
