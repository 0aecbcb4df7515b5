"""What metadata say (Maven repository metadata model 1.1.0), as values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from attrs import frozen

VERSION: Final = "version"  # kinds of fragments: a version of an artifact
BUILD: Final = "build"  # a file of a snapshot; the kind goes on with its version

_TIME = re.compile(r"[0-9]{14}")


class Plugin(msgspec.Struct, array_like=True, frozen=True, order=True):
    """A plugin of a group: the prefix by which it is called, its artifact, and a name for people."""

    prefix: str
    artifact: str
    name: str = ""


class Other(msgspec.Struct, array_like=True, frozen=True, order=True):
    """
    An element that is kept as it is: its XML, by its name.

    ``inside`` is the known element that it is in: empty for the root, or C{versioning}.
    """

    inside: str
    name: str
    xml: str


class SnapshotFile(msgspec.Struct, array_like=True, frozen=True, order=True):
    """
    The newest file of one kind in the directory of a snapshot.

    ``value`` is the version in the file's name; ``updated`` is C{yyyyMMddHHmmss}. ``timestamp`` and ``build`` are those
    of a build, and None if the file has the literal version in its name.
    """

    classifier: str
    extension: str
    value: str
    updated: str
    timestamp: str | None = None
    build: int | None = None


@frozen
class ReadMetadata:
    """
    Metadata as a client sent them; what is missing is empty.

    ``build_number`` is text, since clients write what they like. ``snapshots`` are in the order of the document.
    """

    group: str = ""
    artifact: str = ""
    version: str = ""
    latest: str = ""
    release: str = ""
    versions: tuple[str, ...] = ()
    last_updated: str = ""
    timestamp: str = ""
    build_number: str = ""
    snapshots: tuple[SnapshotFile, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    others: tuple[Other, ...] = ()


def build_kind(version: str) -> str:
    """The kind of the fragments of the files of a snapshot."""
    return f"{BUILD}:{version}"


def is_time(text: str) -> bool:
    """Whether a text is a time as metadata have it, C{yyyyMMddHHmmss}."""
    return _TIME.fullmatch(text) is not None


def time_of(moment: datetime) -> str:
    """A time as metadata have it, in UTC."""
    return moment.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def time_of_ms(moment_ms: int) -> str:
    """The same for milliseconds since the epoch."""
    return time_of(datetime.fromtimestamp(moment_ms // 1000, UTC))


def merge_plugins(lists: Iterable[Sequence[Plugin]]) -> tuple[Plugin, ...]:
    """The plugins of all lists, by prefix; of several with one prefix that of the first list."""
    chosen: dict[str, Plugin] = {}
    for plugins in lists:
        for plugin in plugins:
            chosen.setdefault(plugin.prefix, plugin)
    return tuple(sorted(chosen.values()))


def merge_others(lists: Iterable[Sequence[Other]]) -> tuple[Other, ...]:
    """The other elements of all lists; those of one name are from the first list that has it."""
    chosen: dict[tuple[str, str], tuple[Other, ...]] = {}
    for others in lists:
        own: dict[tuple[str, str], list[Other]] = {}
        for other in others:
            own.setdefault((other.inside, other.name), []).append(other)
        for place, elements in own.items():
            chosen.setdefault(place, tuple(elements))
    return tuple(other for place in sorted(chosen) for other in chosen[place])


def meaning(*values: Any) -> bytes:
    """A digest that is the same for documents that say the same."""
    return hashlib.sha256(msgspec.msgpack.encode(values)).digest()
