"""
The bytes of metadata, the same for the same content, and the upload that they follow.

XML in UTF-8, indented by two spaces, with the elements of the repository metadata model 1.1.0; what is empty is left
out. Clients read ``release`` and ``latest`` as the versions that ``RELEASE`` and ``LATEST`` mean: the highest that is
no snapshot, and the highest of all.

What the last upload of metadata says beside the stored files is one fragment; the rest of a document follows from the
files. An upload whose meaning is that of the document is served byte for byte, as long as both mean the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape

import msgspec
from attrs import frozen

from pkgrepo.formats.maven.metadata.reading import Other, Plugin, ReadMetadata, SnapshotFile, is_time, meaning
from pkgrepo.formats.maven.names import is_snapshot
from pkgrepo.interfaces import Reader
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents

_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


_BETWEEN_VERSIONS: Final = b"\n      "


POM: Final = ("", "pom")  # classifier and extension


@frozen
class Build:
    """The build of a snapshot that clients take for the newest."""

    timestamp: str
    number: int


def verbatim(content: bytes) -> Spliced:
    """A document that is sent as it was uploaded."""
    return Spliced(head=content, fragments=(), tail=b"", separator=b"")


def newest_of(versions: Sequence[str]) -> tuple[str, str]:
    """``latest`` and ``release`` of versions in their order; empty if there is none."""
    latest = versions[-1] if versions else ""
    return latest, next((each for each in reversed(versions) if not is_snapshot(each)), "")


def artifact_document(
    *,
    group: str,
    artifact: str,
    versions: Sequence[str],
    fragments: Sequence[bytes],
    last_updated: str,
    plugins: Sequence[Plugin] = (),
    others: Sequence[Other] = (),
) -> Spliced:
    """The metadata of an artifact, a group, or both. ``fragments`` are those of the ``versions``, in their order."""
    latest, release = newest_of(versions)
    head = [_DECLARATION, "<metadata>\n", _element("groupId", group, 2), _element("artifactId", artifact, 2)]
    after: list[str] = []
    own = [each for each in others if each.inside]
    if versions or own:
        head += ["  <versioning>\n", _element("latest", latest, 4), _element("release", release, 4)]
        if versions:
            head.append("    <versions>\n      ")
            after.append("\n    </versions>\n")
        after += [_element("lastUpdated", last_updated, 4), *_others(own, 4), "  </versioning>\n"]
    if plugins:
        after += ["  <plugins>\n", *map(_plugin, plugins), "  </plugins>\n"]
    after += [*_others((each for each in others if not each.inside), 2), "</metadata>\n"]
    return Spliced("".join(head).encode(), fragments, "".join(after).encode(), _BETWEEN_VERSIONS)


def plugins_document(plugins: Sequence[Plugin], others: Sequence[Other]) -> Spliced | None:
    """The metadata of a group that has no other ones; None if nothing is in them."""
    if not plugins and not others:
        return None
    return artifact_document(
        group="", artifact="", versions=(), fragments=(), last_updated="", plugins=plugins, others=others
    )


def version_document(*, group: str, artifact: str, version: str) -> Spliced:
    """The metadata of a version that is no snapshot."""
    elements = (_element("groupId", group, 2), _element("artifactId", artifact, 2), _element("version", version, 2))
    return verbatim("".join((_DECLARATION, "<metadata>\n", *elements, "</metadata>\n")).encode())


def empty_document() -> Spliced:
    """Metadata that say nothing."""
    return verbatim(f"{_DECLARATION}<metadata/>\n".encode())


def snapshot_document(
    *,
    group: str,
    artifact: str,
    version: str,
    files: Sequence[SnapshotFile],
    build: Build | None,
    last_updated: str,
    others: Sequence[Other] = (),
) -> Spliced:
    """The metadata of a snapshot, whose newest ``build`` is None if no file has a timestamp."""
    written = [_DECLARATION, '<metadata modelVersion="1.1.0">\n', _element("groupId", group, 2)]
    written += [_element("artifactId", artifact, 2), "  <versioning>\n", _element("lastUpdated", last_updated, 4)]
    if build is not None:
        number = _element("buildNumber", str(build.number), 6)
        written += ["    <snapshot>\n", _element("timestamp", build.timestamp, 6), number, "    </snapshot>\n"]
    if files:
        written += ["    <snapshotVersions>\n", *map(_snapshot_file, files), "    </snapshotVersions>\n"]
    written += [*_others((each for each in others if each.inside), 4), "  </versioning>\n"]
    written.append(_element("version", version, 2))
    written += [*_others((each for each in others if not each.inside), 2), "</metadata>\n"]
    return verbatim("".join(written).encode())


def _snapshot_file(file: SnapshotFile) -> str:
    elements = (
        _element("classifier", file.classifier, 8),
        _element("extension", file.extension, 8),
        _element("value", file.value, 8),
        _element("updated", file.updated, 8),
    )
    return "".join(("      <snapshotVersion>\n", *elements, "      </snapshotVersion>\n"))


def _plugin(plugin: Plugin) -> str:
    name, prefix = _element("name", plugin.name, 6), _element("prefix", plugin.prefix, 6)
    return "".join(("    <plugin>\n", name, prefix, _element("artifactId", plugin.artifact, 6), "    </plugin>\n"))


def _others(others: Iterable[Other], indent: int) -> list[str]:
    return [f"{' ' * indent}{each.xml}\n" for each in others]


def _element(name: str, text: str, indent: int) -> str:
    return f"{' ' * indent}<{name}>{_text(text)}</{name}>\n" if text else ""


def _text(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


UPLOADED: Final = "uploaded"  # the kind of the fragment; its key is empty, or the version whose directory it is of


class Uploaded(msgspec.Struct, array_like=True, frozen=True):
    """
    An upload.

    ``meaning`` and ``content`` (compressed by zlib) are empty if its bytes are not kept.
    """

    claimed: tuple[str, ...] = ()  # of earlier releases: versions without files, which are not listed any more
    plugins: tuple[Plugin, ...] = ()
    others: tuple[Other, ...] = ()
    meaning: bytes = b""
    content: bytes = b""

    def verbatim(self, now: bytes) -> bytes | None:
        """The bytes of the upload if it has this meaning, or None."""
        return zlib.decompress(self.content) if self.content and self.meaning == now else None


_decoder = msgspec.msgpack.Decoder(Uploaded)


def encode(uploaded: Uploaded) -> bytes:
    """The body of the fragment."""
    return msgspec.msgpack.encode(uploaded)


def find_uploaded(reader: Reader, package_id: int, version: str = "") -> Uploaded | None:
    """The upload for the directory of a package, or of one of its snapshots; None if there was none."""
    body = index_documents.find_fragment(reader, package_id, UPLOADED, b"", version)
    return None if body is None else _decoder.decode(body)


def meaning_of_artifact(read: ReadMetadata) -> bytes | None:
    """
    What uploaded metadata of an artifact mean; None if clients would read them differently from generated ones.

    ``LATEST`` is the release to clients if ``latest`` is missing. When they were changed does not matter.
    """
    if not is_time(read.last_updated) or read.version or read.timestamp or read.snapshots:
        return None
    latest = read.latest or read.release
    return artifact_meaning(read.group, read.artifact, read.versions, latest, read.release, read.plugins, read.others)


def meaning_of_snapshot(read: ReadMetadata) -> bytes | None:
    """What uploaded metadata of a snapshot mean; None if they are no such metadata."""
    if read.versions or read.plugins or read.latest or read.release:
        return None
    build = (read.timestamp, read.build_number)
    coordinates = (read.group, read.artifact, read.version)
    return snapshot_meaning(coordinates, build, read.snapshots, read.last_updated, read.others)


def snapshot_meaning(
    coordinates: tuple[str, str, str],
    build: tuple[str, str],
    files: Iterable[SnapshotFile],
    last_updated: str,
    others: tuple[Other, ...],
) -> bytes:
    """A digest of the metadata of a snapshot; ``build`` are timestamp and number, empty if there is none."""
    shown = sorted((each.classifier, each.extension, each.value, each.updated) for each in files)
    return meaning(coordinates, build, shown, last_updated, sorted(others))


def artifact_meaning(
    group: str,
    artifact: str,
    versions: tuple[str, ...],
    latest: str,
    release: str,
    plugins: tuple[Plugin, ...],
    others: tuple[Other, ...],
) -> bytes:
    """A digest of the metadata of an artifact without the time of their last change."""
    return meaning(group, artifact, versions, latest, release, sorted(plugins), sorted(others))
