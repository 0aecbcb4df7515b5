"""The page of a project as far as it is kept: the fetched distributions, with what the upstream said of them then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.formats.python.index.indexing import file_entry
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE, file_fragment_html, file_fragment_json
from pkgrepo.formats.python.layout import COMPANIONS, METADATA, PROVENANCE, SIGNATURE
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Origin, Package, Version
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages import files, versions


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
        yanked=file.attrs.get("yanked", False),
        core_metadata={"sha256": companions[METADATA].sha256} if METADATA in companions else False,
        has_sig=SIGNATURE in companions,
        provenance=f"{entry.url}{PROVENANCE}" if PROVENANCE in companions else None,
    )
    return Entry(
        sort=version.sort,
        key=entry.filename,
        version=version.text,
        published_ms=origin.fetched_ms if origin.published_ms is None else origin.published_ms,
        first_seen=origin.published_ms is None,
        fragments={JSON_PAGE: file_fragment_json(listed), HTML_PAGE: file_fragment_html(listed)},
        files=[_source(each, each.origin) for each in (file, *companions.values()) if each.origin is not None],
    )


def _source(file: File, origin: Origin) -> FileSource:
    return FileSource(file.path, origin.url, file.size, dict(file.digests), file.media_type, {})
