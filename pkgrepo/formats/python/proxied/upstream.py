"""
What is requested from an upstream index, how its files are stored, and its pages as far as their files are stored.

The URL of a route is that of the simple index, or the one above it: a URL that ends in ``simple`` (devpi: ``+simple``)
is used as it is, another one is requested with ``/simple/`` first.

A file that an upstream serves is stored although a publish would refuse it; then it has no metadata. The METADATA of a
wheel is stored beside it, for times when the upstream is down. METADATA of a wheel that is not stored is read by
itself, from upstreams that do not offer it, or offer it and do not have it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.indexing import file_entry
from pkgrepo.formats.python.index.pages import (
    FIRST_SEEN,
    HTML_PAGE,
    JSON_PAGE,
    file_fragment_html,
    file_fragment_json,
    hide_metadata_html,
    hide_metadata_json,
)
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import (
    COMPANIONS,
    METADATA,
    PROVENANCE,
    SIGNATURE,
    FileName,
    parse_filename,
    split_companion,
)
from pkgrepo.formats.python.proxied.normaliser import LIST_NORMALISER, NORMALISER
from pkgrepo.formats.python.upload.inspection import find_pkg_info, read_metadata, read_metadata_alone
from pkgrepo.formats.python.upload.metadata import check_identity, meta_json, parse_metadata
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, File, NewFile, Origin, Package, Version
from pkgrepo.proxy.caching.questions import DocumentRequest, restored_entry
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions

# As pip asks: what HTML cannot express is lost.
ACCEPT: Final = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01, */*;q=0.001"
)

ANY_PROJECT: Final = "pip"  # whose page is asked for if there is no list
INDEXES: Final = ("simple", "+simple", "%2bsimple")


def page_question(project: str) -> DocumentRequest:
    """The page of a project, by its key."""
    return DocumentRequest(
        key=f"simple/{project}",
        package_key=project,
        name=project,
        urls=lambda url: [f"{index}{project}/" for index in indexes(url)],
        accept=ACCEPT,
        normaliser=NORMALISER,
    )


def list_question() -> DocumentRequest:
    """The list of all projects."""
    return DocumentRequest(
        key="simple",
        package_key="",
        name="list of projects",
        urls=indexes,
        accept=ACCEPT,
        normaliser=LIST_NORMALISER,
    )


def index_probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """
    Requests that check an upstream. The body, which is large at some indexes, is not read.

    Gitea has pages of projects, but no list of them: a page tells whether it wants credentials, and at the address
    above only uploads are allowed (405).
    """
    index, *above = indexes(url)
    last = (above[0], (200, 405)) if above else (f"{url.rstrip('/').rpartition('/')[0]}/", (405,))
    return [(index, (200,)), (f"{index}{ANY_PROJECT}/", (200,)), last]


def indexes(url: str) -> Sequence[str]:
    """The URLs, with a slash at the end, at which the simple index of a route may be."""
    base = url.rstrip("/")
    if base.rpartition("/")[2].lower() in INDEXES:
        return [f"{base}/"]
    return [f"{base}/simple/", f"{base}/"]


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream."""
    distribution, role = split_companion(file.source.path.rsplit("/", 1)[-1])
    name = parse_filename(distribution, project=file.key)
    kept: list[NewFile] = []
    attrs: dict[str, Any] = {"role": role} if role else _attributes(file, name)
    meta: Mapping[str, Any] | None = {}
    if role == METADATA:
        meta = await staged.inspect(pools.cpu, blob, partial(_read_meta, filename=name))
    elif not role and name.kind == "bdist_wheel":
        metadata, meta = await staged.inspect(pools.cpu, blob, partial(_read_wheel, filename=name))
        if metadata and _may_keep(file, metadata):
            companion = await staged.store(metadata)
            attrs["core_metadata"] = companion.sha256
            kept.append(NewFile(path=file.source.path + METADATA, blob=companion, attrs={"role": METADATA}))
    elif not role:
        meta = await staged.inspect(pools.cpu, blob, partial(_read_sdist, filename=name))
    if meta is None:
        attrs[UNREADABLE] = True
    kept.append(NewFile(path=file.source.path, blob=blob, media_type=file.source.media_type, attrs=attrs))
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=name.version_key,
        version_text=file.entry.version,
        sort=file.entry.sort,
        files=tuple(kept),
        meta=meta or {},
    )


def _attributes(file: RemoteFile, name: FileName) -> dict[str, Any]:
    listed = msgspec.json.decode(file.entry.fragments[JSON_PAGE])
    attrs = {
        "packagetype": name.kind,
        "python_version": name.python_version,
        "requires_python": listed.get("requires-python"),
    }
    yanked = listed.get("yanked", False)
    return attrs if yanked is False else {**attrs, "yanked": "" if yanked is True else yanked}


def _may_keep(file: RemoteFile, metadata: bytes) -> bool:
    """Whether these may be the bytes that the upstream offers as metadata, or it offers none."""
    offered = next((each for each in file.entry.files if each.path == file.source.path + METADATA), None)
    announced = None if offered is None else offered.digests.get("sha256")
    return announced is None or announced == hashlib.sha256(metadata).hexdigest()


def container_of(file: RemoteFile) -> FileSource | None:
    """The wheel that has the METADATA beside it, too."""
    distribution, role = split_companion(file.source.path)
    if role != METADATA or parse_filename(distribution.rsplit("/", 1)[-1], project=file.key).kind != "bdist_wheel":
        return None
    return next((each for each in file.entry.files if each.path == distribution), None)


def read_out(wheel: Source, file: RemoteFile) -> bytes:
    """The METADATA of a wheel. :raises PartMissing: it lacks a part; :raises Invalid: it has none"""
    distribution, _ = split_companion(file.source.path.rsplit("/", 1)[-1])
    return read_metadata_alone(wheel, parse_filename(distribution, project=file.key))


def without_metadata(entry: Entry, paths: Collection[str]) -> Entry:
    """An entry that does not offer the METADATA at some paths, nor list it: clients read it in the wheel."""
    if not any(split_companion(each)[1] == METADATA for each in paths):
        return entry
    hide = {JSON_PAGE: hide_metadata_json, HTML_PAGE: hide_metadata_html}
    fragments = {kind: hide[kind](body) for kind, body in entry.fragments.items()}
    listed = [each for each in entry.files if each.path not in paths]
    return msgspec.structs.replace(entry, fragments=fragments, files=listed)


def _read_wheel(content: int | bytes, filename: FileName) -> tuple[bytes, Mapping[str, Any] | None]:
    """The METADATA of a wheel, empty if there is none that can be read, and its fields; see ``read_fields``."""
    try:
        metadata = read_metadata(Source(content, filename.filename), filename)
    except Invalid:
        return b"", None
    return metadata, read_fields(metadata, filename)


def _read_sdist(content: int | bytes, filename: FileName) -> Mapping[str, Any] | None:
    """The fields of the metadata in a source distribution; none if it has none; see ``read_fields``."""
    try:
        found = find_pkg_info(Source(content, filename.filename))
    except Invalid:
        return None
    return {} if found is None else read_fields(found, filename)


def _read_meta(content: int | bytes, filename: FileName) -> Mapping[str, Any] | None:
    source = Source(content, METADATA)
    return read_fields(source.read(0, source.size), filename) if source.size <= METADATA_SIZE else None


def main_of(path: str) -> str:
    """The path of the distribution that a file is beside, or of itself."""
    return split_companion(path)[0]


def described_by(path: str) -> Sequence[str]:
    """The paths of the files that have the metadata of a distribution, the smallest first."""
    return (path + METADATA, path) if path.endswith(".whl") else (path,)


def read_own(content: int | bytes, path: str) -> Mapping[str, Any]:
    """
    The fields of the metadata in a distribution, or of its METADATA alone; none if a source distribution has none.

    :raises Invalid: they cannot be read
    """
    filename, role = split_companion(path.rpartition("/")[2])
    source = Source(content, filename)
    if role == METADATA:
        data: bytes | None = source.read(0, source.size) if source.size <= METADATA_SIZE else None
        if data is None:
            raise source.refuse(f"has metadata of more than {METADATA_SIZE} bytes")
    elif filename.endswith(".whl"):
        data = read_metadata(source, parse_filename(filename))
    else:
        data = find_pkg_info(source)
    return {} if data is None else meta_json(parse_metadata(data, "the metadata"))


def read_fields(metadata: bytes, filename: FileName) -> Mapping[str, Any] | None:
    """The fields of METADATA as hosted versions have them; None if they cannot be read, or are of another release."""
    try:
        parsed = parse_metadata(metadata, "METADATA")
        check_identity(parsed, filename, "METADATA")
    except Invalid:
        return None
    return meta_json(parsed)


def restore_page(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """The parts of the page, and the origin of the file that was fetched last; None if no file is kept."""
    entries: list[Entry] = []
    origins: list[Origin] = []
    for version in versions.list_versions(reader, package.id):
        kept = {each.path: each for each in files.files_of_version(reader, version.id)}
        for file in kept.values():
            origin = file.origin
            if file.role is None and origin is not None:
                entries.append(_entry(version, file, origin, kept))
                origins.append(origin)
    if not origins:
        return None
    top: dict[str, Any] = {"status": "active", "reason": None, "tracks": [], "alternate_locations": []}
    return max(origins, key=lambda each: each.fetched_ms), Normalised(top, iter(entries))


def _entry(version: Version, file: File, origin: Origin, kept: Mapping[str, File]) -> Entry:
    companions = {suffix: kept[file.path + suffix] for suffix in COMPANIONS if file.path + suffix in kept}
    entry = file_entry(file, version)
    listed = evolve(
        entry,
        upload_time=None if origin.published_ms is None else from_ms(origin.published_ms),
        other={FIRST_SEEN: True} if origin.first_seen and origin.published_ms is not None else {},
        yanked=file.attrs.get("yanked", False),
        core_metadata={"sha256": companions[METADATA].sha256} if METADATA in companions else False,
        has_sig=SIGNATURE in companions,
        provenance=f"{entry.url}{PROVENANCE}" if PROVENANCE in companions else None,
    )
    fragments = {JSON_PAGE: file_fragment_json(listed), HTML_PAGE: file_fragment_html(listed)}
    return restored_entry(version, entry.filename, origin, fragments, (file, *companions.values()))
