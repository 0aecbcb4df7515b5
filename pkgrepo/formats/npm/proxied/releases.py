"""How a tarball of an upstream is kept: as a file of a version with the upstream's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pkgrepo.formats.npm.packument.version_fragments import FULL, SHORT, version_document
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.repositories.publish.index import BASE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.untrusted.strict_json import ERRORS

LARGEST_MANIFEST: Final = 256 * 1024  # bytes; nearly all have less than 20 KiB


def make_release(name: str, entry: Entry, source: FileSource, blob: BlobInfo) -> Release:
    """The release of a tarball that was fetched from an upstream, in the package ``name``."""
    manifest = _read_manifest(entry)
    return Release(
        package_key=name,
        package_name=name,
        version_key=entry.key,
        version_text=entry.version,
        sort=entry.sort,
        files=(NewFile(path=source.path, blob=blob, media_type=source.media_type),),
        meta={**manifest, "name": name, "version": entry.version},
        package_meta={"maintainers": _people(manifest.get("maintainers"))},
    )


def _read_manifest(entry: Entry) -> Mapping[str, Any]:
    """
    The upstream's manifest of a version, in the form of a hosted one.

    Of a large one only the fields of the abbreviated form are kept, of one that cannot be decoded nothing.
    """
    for kind in (FULL, SHORT):
        fragment = entry.fragments[kind]
        if len(fragment) <= LARGEST_MANIFEST:
            try:
                manifest: dict[str, Any] = msgspec.json.decode(version_document(fragment).replace(BASE, b""))
                msgspec.json.encode(manifest)
            except ERRORS:  # a number or a depth that clients can read, and this server cannot
                break
            manifest["dist"] = {key: value for key, value in manifest["dist"].items() if key != "tarball"}
            return manifest
    return {}


def _people(value: Any) -> list[Any]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
