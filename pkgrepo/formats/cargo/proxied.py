"""
What is asked of an upstream registry, and how its crates are kept.

The URL of a route is that of the upstream's index. Where its crates are is told by ``config.json`` of the index. Lines
are passed on byte for byte: lock files have their checksums, and clients read what this program does not know. A crate
that an upstream serves is kept although a publish would refuse it; then nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.changes import CRATE_TYPE
from pkgrepo.formats.cargo.index import INDEX
from pkgrepo.formats.cargo.names import crate_path, prefix
from pkgrepo.model import BlobInfo, File, NewFile, Origin, Version
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.caching.questions import DocumentRequest, restored_entry
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import find_version, parse_version
from pkgrepo.untrusted.strict_json import ERRORS, describe

from .crate import read_crate

LONGEST_LINE: Final = 1024 * 1024  # bytes; the longest of the public registry has some 100 KiB
RAW: Final = "line"  # in the metadata of a kept version: its line in the upstream's index
_MARKERS: Final = ("{crate}", "{version}", "{prefix}", "{lowerprefix}", "{sha256-checksum}")


class _Config(msgspec.Struct):
    dl: str
    api: Any = None  # of searches alone


class _Line(msgspec.Struct):
    name: str = ""
    vers: str = ""
    cksum: str = ""
    pubtime: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def config_question() -> DocumentRequest:
    """Where an upstream has its crates."""
    return DocumentRequest(
        key="config.json",
        package_key="",
        name="config.json",
        urls=lambda url: [f"{url}/config.json"],
        accept="application/json",
        normaliser=f"{__name__}:read_config",
    )


def index_question(key: str) -> DocumentRequest:
    """The versions of a crate."""
    return DocumentRequest(
        key=f"index/{key}",
        package_key=key,
        name=key,
        urls=lambda url: [f"{url}/{prefix(key)}/{key}"],
        accept="text/plain",
        normaliser=f"{__name__}:normalise_index",
        service=config_question(),
    )


def read_config(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The configuration of an index. :raises Invalid: it is none"""
    try:
        config = msgspec.json.decode(source, type=_Config)
        parse_url(config.dl.partition("{")[0])
    except ERRORS as error:
        raise Invalid(f"it is no configuration of an index with dl: {describe(source, error)}") from None
    api = config.api if isinstance(config.api, str) else None
    return Normalised(top={"dl": config.dl, "api": api}, entries=iter(()))


def normalise_index(source: bytes, context: Context) -> Normalised:
    """
    The parts of the document of a crate; see L{pkgrepo.proxy.parts.values.NormaliserFunction}.

    :raises Invalid: it is no such document, or that of another crate
    """
    return Normalised(top={}, entries=iter(list(_entries(source, context))))


def _entries(source: bytes, context: Context) -> Iterator[Entry]:
    for number, raw in enumerate(source.split(b"\n")):
        if len(raw) > LONGEST_LINE:
            raise Invalid(f"it has a line of more than {LONGEST_LINE} bytes")
        if not raw.strip():
            continue
        try:
            line = _decode(raw)
            raw.decode()
        except ERRORS as error:
            raise Invalid(f"a line of it is no object of JSON: {describe(raw, error)}") from None
        if line.name.lower() != context.name:
            raise Invalid(f"it is not the document of {context.name} but of {line.name[:100]!a}")
        version = find_version(line.vers)
        if version is None or len(line.cksum) != 64:  # of a form that is not known: clients ignore it, too
            continue
        yield Entry(
            sort=number.to_bytes(8, "big"),
            key=version.key,
            version=version.text,
            published_ms=_read_time(line.pubtime),
            first_seen=False,
            fragments={INDEX: raw},
            files=[_source(line, context)],
        )


def _source(line: _Line, context: Context) -> FileSource:
    name, key = line.name, context.name
    values = (name, line.vers, prefix(name), prefix(key), line.cksum.lower())
    url = context.service["dl"]
    if not any(each in url for each in _MARKERS):
        url += "/{crate}/{version}/download"
    for marker, value in zip(_MARKERS, values, strict=True):
        url = url.replace(marker, value)
    digests = {"sha256": line.cksum.lower()}
    return FileSource(crate_path(key, line.vers), url, None, digests, CRATE_TYPE, {"name": name})


def _read_time(text: str | None) -> int | None:
    try:
        return None if text is None else int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a crate that was fetched from an upstream."""
    meta = await staged.inspect(pools.cpu, blob, _read_meta)
    version = parse_version(file.entry.version)
    return Release(
        package_key=file.key,
        package_name=file.source.meta.get("name", file.key),
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=(NewFile(path=file.source.path, blob=blob, media_type=file.source.media_type),),
        meta={**meta, RAW: file.entry.fragments[INDEX].decode()},
    )


def _read_meta(content: int | bytes) -> Mapping[str, Any]:
    try:
        return read_own(content, "")
    except Invalid:
        return {UNREADABLE: True}


def read_own(content: int | bytes, _path: str) -> Mapping[str, Any]:
    """The metadata in a crate. :raises Invalid: they cannot be read"""
    return read_crate(content).meta


def restored_line(version: Version, origin: Origin, stored: Sequence[File]) -> Entry | None:
    """The entry of a version that is kept."""
    if RAW not in version.meta:
        return None
    return restored_entry(version, version.key, origin, {INDEX: version.meta[RAW].encode()}, stored)
