"""
Writes metadata: XML in UTF-8, indented by two spaces, the same bytes for the same content.

The elements are those of the repository metadata model 1.1.0; what is empty is left out. Clients read C{release} and
C{latest} as the versions that C{RELEASE} and C{LATEST} mean: the highest that is no snapshot, and the highest of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape

from attrs import frozen

from pkgrepo.formats.maven.names import is_snapshot
from pkgrepo.repositories.publish.index import Spliced

from .values import Other, Plugin, SnapshotFile

_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_BETWEEN_VERSIONS: Final = b"\n      "
POM: Final = ("", "pom")  # classifier and extension


@frozen
class Build:
    """The build of a snapshot that clients take for the newest."""

    timestamp: str
    number: int


def version_fragment(version: str) -> bytes:
    """The element of one version in the list of an artifact."""
    return f"<version>{_text(version)}</version>".encode()


def verbatim(content: bytes) -> Spliced:
    """A document that is sent as it was uploaded."""
    return Spliced(head=content, fragments=(), tail=b"", separator=b"")


def newest_of(versions: Sequence[str]) -> tuple[str, str]:
    """C{latest} and C{release} of versions in their order; empty if there is none."""
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
