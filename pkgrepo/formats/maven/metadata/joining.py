"""
Documents of metadata as fragments, which each change of a version maintains, and which are joined into documents.

==========  ===============  ========  ======================================================================
form        key              kind      a fragment for
==========  ===============  ========  ======================================================================
artifact    group:artifact   version   each version that has files and is not yanked, in their order
snapshot    group:artifact:  build     each file of a snapshot; the kind ends with ``:`` and the version
            version
both                         uploaded  what the last upload of the document said, see ``uploaded``
==========  ===============  ========  ======================================================================

A change of a version writes its own fragments alone, whatever the number of versions. An artifact of several
repositories has the versions of all, and a snapshot the newest files of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.formats.maven.metadata.document import (
    POM,
    UPLOADED,
    Build,
    Uploaded,
    artifact_document,
    artifact_meaning,
    encode,
    find_uploaded,
    newest_of,
    snapshot_document,
    snapshot_meaning,
    verbatim,
    version_document,
)
from pkgrepo.formats.maven.metadata.reading import (
    BUILD,
    VERSION,
    Other,
    Plugin,
    SnapshotFile,
    build_kind,
    merge_others,
    merge_plugins,
    time_of,
    time_of_ms,
    version_fragment,
)
from pkgrepo.formats.maven.names import SNAPSHOT, is_literal_snapshot, package_directory
from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, parse_text
from pkgrepo.formats.maven.version_order import build_sort
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Actor, File, Fragment, Package, Repository, Version, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts
from pkgrepo.repositories.past import package_past, published_times
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.plain_files import remove_plain_file
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.server import repositories

ARTIFACT: Final = "artifact"
SNAPSHOT_FORM: Final = "snapshot"
KINDS: Final = {ARTIFACT: (VERSION,), SNAPSHOT_FORM: (BUILD,)}
CONTENT_TYPE: Final = "application/xml"
CONTENT_TYPES: Final = dict.fromkeys(KINDS, CONTENT_TYPE)
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of documents; one of 5,000 versions has 200 KiB

_decode_file = msgspec.json.Decoder(SnapshotFile).decode


def make_documents() -> SplicedDocuments:
    """The cache of the documents of all repositories; it renders those that are missing."""
    return SplicedDocuments(CONTENT_TYPES, cache_size=CACHE_SIZE, algorithms=ALGORITHMS)


def read_parts(reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
    """
    What a repository has for the document with this key, and the package, from one snapshot.

    :raises NotFound: no such package, or it has no files that the document shows
    """
    package_key, version = split_key(key)
    package = existing(packages.find_package(reader, repository_id, package_key), "artifact", package_key)
    stored = _stored(reader, package, form, version)
    parts = _parts(package, form, stored, find_uploaded(reader, package.id, version) or Uploaded())
    if not any(parts.fragments.values()):
        raise NotFound("artifact", key)
    return parts, package


def rewind(reader: Reader, package: Package, parts: MemberParts, form: str, at_ms: int) -> MemberParts:
    """
    The same parts without the versions that were yanked at a time, and with those that were yanked since.

    :raises NotFound: there was no build of a snapshot yet
    """
    plugins = msgspec.convert(parts.top["plugins"], tuple[Plugin, ...])
    repository = repositories.get_repository(reader, package.repository_id)
    then = plugins_then(reader, repository, package.key.replace(":", "."), plugins, at_ms)
    changed = {"last_updated_ms": min(parts.top["last_updated_ms"], at_ms), "plugins": msgspec.to_builtins(then)}
    parts = evolve(parts, top={**parts.top, **changed})
    if form == SNAPSHOT_FORM:
        if not any(parts.fragments.values()):
            raise NotFound("snapshot", package.key)
        return parts
    there = [each for each in versions.list_versions(reader, package.id) if each.text not in parts.hidden]
    past = package_past(reader, package.id, at_ms, present={each.key: (each.state, each.reason) for each in there})
    listed = {each.key: each for each in parts.fragments[VERSION]}
    for each in there:
        if each.key not in past.states:
            continue
        if past.states[each.key][0] is VersionState.YANKED:
            listed.pop(each.text, None)
        elif each.text not in listed:
            listed[each.text] = Fragment(each.sort, each.text, version_fragment(each.text))
    found = sorted(listed.values())
    return evolve(parts, fragments={VERSION: found}, versions=[(each.sort, each.key) for each in found])


def plugins_then(
    reader: Reader, repository: Repository, group: str, plugins: Sequence[Plugin], at_ms: int
) -> tuple[Plugin, ...]:
    """
    The plugins of a group of a hosted repository without those whose artifacts came after a time.

    Of artifacts that are not here nothing is known.
    """

    def there(plugin: Plugin) -> bool:
        package = packages.find_package(reader, repository.id, f"{group}:{plugin.artifact}")
        times = [] if package is None else published_times(reader, repository, package.id).values()
        return not times or min(times) <= at_ms

    return tuple(each for each in plugins if there(each))


def said_beside(reader: Reader, repository_id: int, key: str, form: str, said: Uploaded) -> tuple[Uploaded, bytes]:
    """
    What an upload says beside the stored files and with earlier uploads, and the meaning that the document then has.

    :raises NotFound: no such package
    """
    package_key, version = split_key(key)
    package = existing(packages.find_package(reader, repository_id, package_key), "artifact", package_key)
    before = find_uploaded(reader, package.id, version) or Uploaded()
    stored = _stored(reader, package, form, version)
    said = Uploaded(
        plugins=merge_plugins((said.plugins, before.plugins)), others=merge_others((said.others, before.others))
    )
    parts = _parts(package, form, stored, said)
    return said, _snapshot(key, [parts]).meaning if form == SNAPSHOT_FORM else _artifact(key, [parts]).meaning


def splice(key: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """A document from what one or more repositories have for it; the first one is used where they differ."""
    content: _Artifact | _Snapshot = (_snapshot if form == SNAPSHOT_FORM else _artifact)(key, members)
    uploaded: Uploaded | None = members[0].top.get("uploaded") if len(members) == 1 else None
    same = None if uploaded is None or not uploaded.content else uploaded.verbatim(content.meaning)
    return content.render() if same is None else verbatim(same)


def latest(_key: str, members: Sequence[MemberParts]) -> Latest | None:
    """The release that clients choose for a package, or its highest snapshot if it has no release."""
    highest, release = newest_of([fragment.key for fragment in _merged(members, VERSION)])
    return Latest(release or highest, LatestReason.HIGHEST) if highest else None


def render_directory(reader: Reader, repository_id: int, directory: str) -> bytes | None:
    """The metadata of a directory whose files are stored; None if it has none, or they are a plain file."""
    try:
        target = parse_text(f"{directory}/{METADATA_NAME}")
    except Invalid:  # too long for having metadata
        return None
    assert isinstance(target, Metadata)
    if target.package_key is not None:
        key, form = document_key(target, target.package_key)
        try:
            parts, _ = read_parts(reader, repository_id, key, form)
        except NotFound:
            pass
        else:
            return splice(key, form, 0, [parts]).joined()
    made = of_version(reader, repository_id, target)
    return None if made is None else made.joined()


def of_version(reader: Reader, repository_id: int, target: Metadata) -> Spliced | None:
    """The metadata of a version that has no document of its own, as a release; None if there is no such version."""
    at = target.coordinates
    package = None if at is None else packages.find_package(reader, repository_id, at.package_key)
    if at is None or package is None or versions.find_version(reader, package.id, at.version) is None:
        return None
    return version_document(group=at.group, artifact=at.artifact, version=at.version)


def document_key(target: Metadata, package_key: str) -> tuple[str, str]:
    """The key and the form of the document at a path."""
    if target.version is None:
        return package_key, ARTIFACT
    return f"{package_key}:{target.version}", SNAPSHOT_FORM


def split_key(key: str) -> tuple[str, str]:
    """The key of the package, and the version (empty for none), from the key of a document."""
    group, artifact, *version = key.split(":")
    return f"{group}:{artifact}", version[0] if version else ""


@frozen
class _Artifact:
    """What the metadata of an artifact say; ``fragments`` are those of its versions."""

    group: str
    artifact: str
    fragments: Sequence[Fragment]
    last_updated_ms: int
    plugins: tuple[Plugin, ...]
    others: tuple[Other, ...]

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(fragment.key for fragment in self.fragments)

    @property
    def meaning(self) -> bytes:
        latest, release = newest_of(self.versions)
        return artifact_meaning(self.group, self.artifact, self.versions, latest, release, self.plugins, self.others)

    def render(self) -> Spliced:
        return artifact_document(
            group=self.group,
            artifact=self.artifact,
            versions=self.versions,
            fragments=[fragment.body for fragment in self.fragments],
            last_updated=time_of_ms(self.last_updated_ms),
            plugins=self.plugins,
            others=self.others,
        )


@frozen
class _Snapshot:
    """What the metadata of a snapshot say: the newest files, and the newest build."""

    group: str
    artifact: str
    version: str
    files: Sequence[SnapshotFile]
    build: Build | None
    last_updated: str
    others: tuple[Other, ...]

    @property
    def meaning(self) -> bytes:
        build = ("", "") if self.build is None else (self.build.timestamp, str(self.build.number))
        coordinates = (self.group, self.artifact, self.version)
        return snapshot_meaning(coordinates, build, self.files, self.last_updated, self.others)

    def render(self) -> Spliced:
        return snapshot_document(
            group=self.group,
            artifact=self.artifact,
            version=self.version,
            files=self.files,
            build=self.build,
            last_updated=self.last_updated,
            others=self.others,
        )


def _stored(reader: Reader, package: Package, form: str, version: str) -> list[Fragment]:
    """The fragments of the stored files that a document shows."""
    kind = build_kind(version) if form == SNAPSHOT_FORM else VERSION
    return index_documents.list_fragments(reader, package.id, kind)


def _parts(package: Package, form: str, stored: list[Fragment], uploaded: Uploaded) -> MemberParts:
    top: dict[str, Any] = {
        "last_updated_ms": round(package.updated_at.timestamp() * 1000),
        "plugins": msgspec.to_builtins(uploaded.plugins),
        "others": msgspec.to_builtins(uploaded.others),
        "uploaded": uploaded,
    }
    if form == SNAPSHOT_FORM:
        return MemberParts(top, {BUILD: stored})
    return MemberParts(top, {VERSION: stored}, [(fragment.sort, fragment.key) for fragment in stored])


def _artifact(key: str, members: Sequence[MemberParts]) -> _Artifact:
    group, _, artifact = key.partition(":")
    changed_ms = max(member.top.get("last_updated_ms", 0) for member in members)
    return _Artifact(group, artifact, _merged(members, VERSION), changed_ms, _plugins(members), _others(members))


def _snapshot(key: str, members: Sequence[MemberParts]) -> _Snapshot:
    package_key, version = split_key(key)
    group, _, artifact = package_key.partition(":")
    newest: dict[tuple[str, str], SnapshotFile] = {}
    build: tuple[bool, bytes, Build] | None = None  # the greatest, of builds with a POM if there are any
    last_updated = ""
    gil = GilReleaser()
    for fragment in _merged(members, BUILD):  # from the oldest to the newest
        gil.release_if_due()
        file = _decode_file(fragment.body)
        kind = (file.classifier, file.extension)
        newest[kind] = file
        last_updated = max(last_updated, file.updated)
        if file.timestamp is not None and file.build is not None:
            found = (kind == POM, fragment.sort, Build(file.timestamp, file.build))
            build = found if build is None or found[:2] > build[:2] else build
    shown = [newest[kind] for kind in sorted(newest)]
    chosen = None if build is None else build[2]
    return _Snapshot(group, artifact, version, shown, chosen, last_updated, _others(members))


def _merged(members: Sequence[MemberParts], kind: str) -> Sequence[Fragment]:
    if len(members) == 1:
        return members[0].fragments[kind]
    chosen: dict[str, Fragment] = {}
    for member in members:
        for fragment in member.fragments[kind]:
            chosen.setdefault(fragment.key, fragment)
    return sorted(chosen.values())


def _plugins(members: Sequence[MemberParts]) -> tuple[Plugin, ...]:
    return merge_plugins(msgspec.convert(member.top.get("plugins", ()), list[Plugin]) for member in members)


def _others(members: Sequence[MemberParts]) -> tuple[Other, ...]:
    return merge_others(msgspec.convert(member.top.get("others", ()), list[Other]) for member in members)


FOLDED: Final = "metadata"  # the attribute of a plain file of metadata that has what a fragment needs of it


def index_artifact(index: PackageIndex, change: Change) -> None:
    """Bring the fragments up to date: see L{Indexer}."""
    version = change.version
    if version is None:
        return
    snapshot = is_literal_snapshot(version.text)
    if snapshot:
        for file in change.removed:
            fragment = _build_fragment(file, version)
            index.remove_fragment(build_kind(version.text), fragment.sort, fragment.key)
        for file in change.added:
            index.put_fragment(build_kind(version.text), *_build_fragment(file, version))
    if version.state is VersionState.YANKED or (change.removed and not change.added and not index.files(version)):
        index.remove_fragment(VERSION, version.sort, version.text)
        if snapshot and version.state is not VersionState.YANKED:
            index.remove_fragment(UPLOADED, b"", version.text)
    elif index_documents.find_fragment(index.tx, index.package.id, VERSION, version.sort, version.text) is None:
        index.put_fragment(VERSION, version.sort, version.text, version_fragment(version.text))
        _fold(index, "")
        if snapshot:
            _fold(index, version.text)


def _build_fragment(file: File, version: Version) -> Fragment:
    """The fragment of a file of a snapshot. Files with the literal version sort before all builds."""
    attrs = file.attrs
    timestamp, build = attrs.get("timestamp"), attrs.get("build")
    if timestamp is None or build is None:
        value, updated, sort = version.text, time_of(file.created_at), b""
    else:
        value = f"{version.text[: -len(SNAPSHOT)]}{timestamp}-{build}"
        updated = timestamp.replace(".", "")
        sort = build_sort(updated, build)
    listed = SnapshotFile(attrs.get("classifier", ""), attrs.get("extension", ""), value, updated, timestamp, build)
    return Fragment(sort, file.path.rpartition("/")[2], msgspec.json.encode(listed))


def _fold(index: PackageIndex, version: str) -> None:
    """
    Make metadata that are a plain file the upload of a document, since files of the directory are stored now.

    Its bytes are not kept: the document has versions of its own.
    """
    directory = package_directory(index.package.key)
    path = f"{directory}/{version}/{METADATA_NAME}" if version else f"{directory}/{METADATA_NAME}"
    file = files.find_file(index.tx, index.package.repository_id, path)
    if file is None or file.package_id is not None:
        return
    said = file.attrs.get(FOLDED)
    if said is not None:
        index.put_fragment(UPLOADED, b"", version, encode(msgspec.convert(said, Uploaded)))
    repository = repositories.get_repository(index.tx, index.package.repository_id)
    remove_plain_file(index.tx, repository, path, Actor(), index.now_ms)
