"""
What metadata say (Maven repository metadata model 1.1.0), read from what clients send: bounded in time and memory.

Elements are read by their local names, in any namespace. Elements of the root and of ``versioning`` that the model does
not have are kept as XML, since extensions of build tools write such.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.maven.xml_reading import DEEPEST, parse_xml
from pkgrepo.untrusted.text import quoted

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

    ``inside`` is the known element that it is in: empty for the root, or ``versioning``.
    """

    inside: str
    name: str
    xml: str


class SnapshotFile(msgspec.Struct, array_like=True, frozen=True, order=True):
    """
    The newest file of one kind in the directory of a snapshot.

    ``value`` is the version in the file's name; ``updated`` is ``yyyyMMddHHmmss``. ``timestamp`` and ``build`` are
    those of a build, and None if the file has the literal version in its name.
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


def version_fragment(version: str) -> bytes:
    """The element of one version in the list of an artifact."""
    return f"<version>{escape(version)}</version>".encode()


def is_time(text: str) -> bool:
    """Whether a text is a time as metadata have it, ``yyyyMMddHHmmss``."""
    return _TIME.fullmatch(text) is not None


def time_of(at: datetime) -> str:
    """A time as metadata have it, in UTC."""
    return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def time_of_ms(time_ms: int) -> str:
    """A time of metadata, from milliseconds since the epoch."""
    return time_of(datetime.fromtimestamp(time_ms // 1000, UTC))


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


LARGEST: Final = 4 * 1024 * 1024  # bytes; 5,000 versions have 200 KiB
TEXT_SIZE: Final = 1024  # characters of a name, version or time
OTHERS_SIZE: Final = 256 * 1024  # characters of the elements that are kept as XML
MOST_ELEMENTS: Final = 100_000  # half a second of work; more than ten times the versions of any artifact
MOST_ENTRIES: Final = 10_000  # plugins of a group, of which the largest public ones have 100; files of a snapshot

_WHAT: Final = "the metadata"
_POINTER: Final = "metadata"
_MODEL: Final = "http://maven.apache.org/METADATA/"  # all namespaces of the model begin with this
_XML: Final = "http://www.w3.org/XML/1998/namespace"  # is declared everywhere
_SNAPSHOT_VERSION: Final = "versioning/snapshotVersions/snapshotVersion"
_PLUGIN: Final = "plugins/plugin"
_VERSION: Final = "versioning/versions/version"
_ENTRIES: Final = {
    _SNAPSHOT_VERSION: frozenset({"classifier", "extension", "value", "updated"}),
    _PLUGIN: frozenset({"name", "prefix", "artifactId"}),
}
_TEXTS: Final = frozenset(
    {
        "groupId", "artifactId", "version",
        "versioning/latest", "versioning/release", "versioning/lastUpdated",
        "versioning/snapshot/timestamp", "versioning/snapshot/buildNumber",
    }
)  # fmt: skip
_PARENTS: Final = frozenset(
    {
        "",
        "versioning",
        "versioning/versions",
        "versioning/snapshot",
        "versioning/snapshotVersions",
        "plugins",
        *_ENTRIES,
    }
)
_LEAVES: Final = _TEXTS | {_VERSION} | {f"{place}/{name}" for place, names in _ENTRIES.items() for name in names}
_KEEPING: Final = frozenset({"", "versioning"})  # elements whose unknown children are kept


def read_metadata(content: bytes) -> ReadMetadata:
    """
    What metadata say. Takes up to a second for the largest, so call it in a thread.

    :raises Invalid: they are malformed, or no metadata; :raises TooLarge: the whole or a part is larger than allowed
    """
    if len(content) > LARGEST:
        raise TooLarge(LARGEST, "metadata")
    target = _Target()
    refused = parse_xml(content, target, _WHAT, _POINTER)
    if refused is not None:
        raise Invalid(refused, _POINTER)
    texts = target.texts
    return ReadMetadata(
        group=texts.get("groupId", ""),
        artifact=texts.get("artifactId", ""),
        version=texts.get("version", ""),
        latest=texts.get("versioning/latest", ""),
        release=texts.get("versioning/release", ""),
        versions=tuple(dict.fromkeys(each for each in target.versions if each)),
        last_updated=texts.get("versioning/lastUpdated", ""),
        timestamp=texts.get("versioning/snapshot/timestamp", ""),
        build_number=texts.get("versioning/snapshot/buildNumber", ""),
        snapshots=tuple(_snapshot_file(each) for each in target.entries[_SNAPSHOT_VERSION]),
        plugins=tuple(_plugins(target.entries[_PLUGIN])),
        others=tuple(target.others),
    )


@define(slots=False)
class _Target:
    """
    Receives the elements as they are parsed.

    ``place`` is the path of the current element below the root, as far as the model has it. Of others only the number
    (``unknown``) and the namespaces (``spaces``) are known; their XML is written to ``xml`` if it is kept. ``parts`` is
    the text of the element that is being read, None outside of those that have one.
    """

    texts: dict[str, str] = Factory(dict)
    versions: list[str] = Factory(list)
    entries: dict[str, list[dict[str, str]]] = Factory(lambda: {place: [] for place in _ENTRIES})
    others: list[Other] = Factory(list)
    place: str = ""
    opened: bool = False
    count: int = 0
    unknown: int = 0
    spaces: list[str] = Factory(lambda: [""])
    xml: list[str] | None = None
    others_size: int = 0
    parts: list[str] | None = None
    length: int = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        name = tag.rpartition("}")[2]
        self.count += 1
        if self.count > MOST_ELEMENTS:
            raise Invalid(f"{_WHAT} have more than {MOST_ELEMENTS} elements", _POINTER)
        if not self.opened:
            if name != "metadata":
                raise Invalid(f"the root element of metadata is metadata, and here it is {quoted(name)}", _POINTER)
            self.opened = True
            return
        if not self.unknown and self.parts is None:
            path = f"{self.place}/{name}" if self.place else name
            if path in _LEAVES:
                self.place, self.parts, self.length = path, [], 0
                return
            if path in _PARENTS:
                self._enter(path)
                return
            if self.place in _KEEPING:
                self.xml = []
        self.unknown += 1
        if self.unknown > DEEPEST:
            raise Invalid(f"{_WHAT} have more than {DEEPEST} elements within each other", _POINTER)
        if self.xml is not None:
            namespace = _namespace(tag)
            declared = "" if namespace == self.spaces[-1] else f" xmlns={quoteattr(namespace)}"
            self._write(self.xml, _opening(name, declared, attributes))
            self.spaces.append(namespace)

    def end(self, tag: str) -> None:
        """An element ends."""
        name = tag.rpartition("}")[2]
        if self.unknown:
            self.unknown -= 1
            if self.xml is not None:
                self._write(self.xml, f"</{name}>")
                self.spaces.pop()
                if not self.unknown:
                    self.others.append(Other(self.place, name, "".join(self.xml)))
                    self.xml = None
        elif self.place:
            if self.parts is not None:
                self._keep(self.place, "".join(self.parts).strip())
                self.parts = None
            self.place = self.place.rpartition("/")[0]

    def data(self, text: str) -> None:
        """A part of the text of the current element."""
        if self.xml is not None:
            self._write(self.xml, escape(text, {"\r": "&#13;"}))
        elif self.unknown:
            return
        elif self.parts is not None:
            self.length += len(text)
            if self.length > TEXT_SIZE:
                raise Invalid(
                    f"the {self.place.rpartition('/')[2]} of {_WHAT} is longer than {TEXT_SIZE} characters", _POINTER
                )
            self.parts.append(text)

    def close(self) -> None:
        """The document ends."""

    def _enter(self, path: str) -> None:
        self.place = path
        if path in _ENTRIES:
            if len(self.entries[path]) >= MOST_ENTRIES:
                raise Invalid(f"{_WHAT} have more than {MOST_ENTRIES} elements {path.rpartition('/')[2]}", _POINTER)
            self.entries[path].append({})

    def _write(self, written: list[str], xml: str) -> None:
        self.others_size += len(xml)
        if self.others_size > OTHERS_SIZE:
            raise TooLarge(OTHERS_SIZE, "the part of the metadata that the model does not have")
        written.append(xml)

    def _keep(self, path: str, text: str) -> None:
        if path == _VERSION:
            self.versions.append(text)
        elif path in _TEXTS:
            self.texts.setdefault(path, text)
        else:
            place, _, name = path.rpartition("/")
            self.entries[place][-1].setdefault(name, text)


def _namespace(tag: str) -> str:
    """The namespace of an element; that of the model counts as none, since documents are written without it."""
    namespace = tag[1:].rpartition("}")[0] if tag[0] == "{" else ""
    return "" if namespace.startswith(_MODEL) else namespace


def _opening(name: str, declared: str, attributes: Mapping[str, str]) -> str:
    written = [f"<{name}{declared}"]
    for number, (key, value) in enumerate(attributes.items()):
        space, _, key_name = key[1:].rpartition("}") if key[0] == "{" else ("", "", key)
        if space == _XML:
            key_name = f"xml:{key_name}"
        elif space:
            written.append(f" xmlns:n{number}={quoteattr(space)}")
            key_name = f"n{number}:{key_name}"
        written.append(f" {key_name}={_quoted(value)}")
    return "".join((*written, ">"))


def _quoted(value: str) -> str:
    return quoteattr(value, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _snapshot_file(entry: Mapping[str, str]) -> SnapshotFile:
    return SnapshotFile(
        classifier=entry.get("classifier", ""),
        extension=entry.get("extension", ""),
        value=entry.get("value", ""),
        updated=entry.get("updated", ""),
    )


def _plugins(entries: list[dict[str, str]]) -> list[Plugin]:
    named = (each for each in entries if each.get("prefix") and each.get("artifactId"))
    return [Plugin(each["prefix"], each["artifactId"], each.get("name", "")) for each in named]
