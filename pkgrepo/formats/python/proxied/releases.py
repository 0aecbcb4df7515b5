"""
How files of upstreams are kept: distributions and their companions, as files of a version.

What the upstream serves is kept although a publish would refuse it; then it has no metadata. The METADATA of a wheel is
kept beside it, so that it can be had when the upstream is down. Of a wheel that is not kept it is read by itself, from
upstreams that do not offer it, or offer it and do not have it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import JSON_PAGE
from pkgrepo.formats.python.layout import METADATA, split_companion
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import FileName, parse_filename
from pkgrepo.formats.python.upload.metadata import check_identity, meta_json, parse_metadata
from pkgrepo.formats.python.upload.wheel import read_metadata, read_metadata_alone
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.proxy.parts.values import FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.pools import Pools


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream; see L{IProxiedFormat.make_release}."""
    distribution, role = split_companion(file.source.path.rsplit("/", 1)[-1])
    name = parse_filename(distribution, project=file.key)
    kept: list[NewFile] = []
    attrs: dict[str, Any] = {"role": role} if role else _attributes(file, name)
    meta: Mapping[str, Any] = {}
    if role == METADATA:
        meta = await staged.inspect(pools.cpu, blob, partial(_read_meta, filename=name))
    elif not role and name.kind == "bdist_wheel":
        metadata, meta = await staged.inspect(pools.cpu, blob, partial(_read_wheel, filename=name))
        if metadata and _may_keep(file, metadata):
            companion = await staged.store(metadata)
            attrs["core_metadata"] = companion.sha256
            kept.append(NewFile(path=file.source.path + METADATA, blob=companion, attrs={"role": METADATA}))
    kept.append(NewFile(path=file.source.path, blob=blob, media_type=file.source.media_type, attrs=attrs))
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=name.version_key,
        version_text=file.entry.version,
        sort=file.entry.sort,
        files=tuple(kept),
        meta=meta,
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


def _read_wheel(content: int | bytes, filename: FileName) -> tuple[bytes, Mapping[str, Any]]:
    """The METADATA of a wheel, empty if there is none that can be read, and its fields."""
    try:
        metadata = read_metadata(Source(content, filename.filename), filename)
    except Invalid:
        return b"", {}
    return metadata, read_fields(metadata, filename)


def _read_meta(content: int | bytes, filename: FileName) -> Mapping[str, Any]:
    source = Source(content, METADATA)
    return read_fields(source.read(0, source.size), filename) if source.size <= METADATA_SIZE else {}


def read_fields(metadata: bytes, filename: FileName) -> Mapping[str, Any]:
    """The fields of METADATA as hosted versions have them; none if they cannot be read, or are of another release."""
    try:
        parsed = parse_metadata(metadata, "METADATA")
        check_identity(parsed, filename, "METADATA")
    except Invalid:
        return {}
    return meta_json(parsed)
