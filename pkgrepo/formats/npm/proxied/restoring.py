"""The packument of a package as far as it is kept: of the fetched versions, as their upstream described them then."""

from __future__ import annotations

from typing import Any

import msgspec
from attrs import evolve

from pkgrepo.formats.npm.layout import tarball_path
from pkgrepo.formats.npm.packument.loading import read_top
from pkgrepo.formats.npm.packument.stored_versions import manifest_of
from pkgrepo.formats.npm.packument.version_fragments import (
    FULL,
    SHORT,
    TIME,
    full_fragment,
    short_fragment,
    time_fragment,
)
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Origin, Package, Version
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages import files, versions


def restore_packument(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """
    The parts of the packument, and the origin of the tarball that was fetched last; None if nothing can be told.

    A version whose manifest was too large to be kept is left out.
    """
    entries: list[Entry] = []
    origins: list[Origin] = []
    for version in versions.list_versions(reader, package.id):
        path = tarball_path(package.name, version.text)
        file = next((each for each in files.files_of_version(reader, version.id) if each.path == path), None)
        origin = None if file is None else file.origin
        if file is not None and origin is not None and isinstance(version.meta.get("dist"), dict):
            entries.append(_entry(version, file, origin))
            origins.append(origin)
    if not origins:
        return None
    top = evolve(read_top(reader, package, whole=True), revision="")
    return max(origins, key=lambda each: each.fetched_ms), Normalised(msgspec.to_builtins(top), iter(entries))


def _entry(version: Version, file: File, origin: Origin) -> Entry:
    manifest = manifest_of(version)
    deprecated = manifest.pop("deprecated", "") or ""
    manifest["dist"] = _without_address(manifest["dist"])
    fragments = {FULL: full_fragment(manifest, deprecated), SHORT: short_fragment(manifest, deprecated)}
    if origin.published_ms is not None:
        fragments[TIME] = time_fragment(version.text, from_ms(origin.published_ms))
    return Entry(
        sort=version.sort,
        key=version.text,
        version=version.text,
        published_ms=origin.fetched_ms if origin.published_ms is None else origin.published_ms,
        first_seen=origin.published_ms is None,
        fragments=fragments,
        files=[FileSource(file.path, origin.url, file.size, dict(file.digests), file.media_type, {})],
    )


def _without_address(dist: dict[str, Any]) -> dict[str, Any]:
    attestations = dist.get("attestations")
    if not isinstance(attestations, dict):
        return dist
    return {**dist, "attestations": {key: value for key, value in attestations.items() if key != "url"}}
