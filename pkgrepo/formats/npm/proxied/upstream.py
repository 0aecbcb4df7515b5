"""
What is requested from an upstream registry, how its tarballs are stored, and packuments as far as tarballs are stored.

The scope of a name is sent as clients send it, with its slash encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.packument.document import (
    FULL,
    FULL_TYPE,
    SHORT,
    TIME,
    full_fragment,
    short_fragment,
    time_fragment,
    version_document,
)
from pkgrepo.formats.npm.packument.splicing import manifest_of, read_top
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.formats.npm.proxied.normaliser import ATTESTATIONS_NORMALISER, KEYS_NORMALISER, NORMALISER
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, File, NewFile, Origin, Package, Version
from pkgrepo.proxy.caching.questions import DocumentRequest, restored_entry
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import BASE
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.untrusted.strict_json import ERRORS, describe

KEYS: Final = "-/npm/v1/keys"

LARGEST_MANIFEST: Final = 256 * 1024  # bytes; nearly all have less than 20 KiB


def packument_question(name: str) -> DocumentRequest:
    """The document of a package, in the full form: some mirrors have no other."""
    return DocumentRequest(
        key=f"packument/{name}",
        package_key=name,
        name=name,
        urls=lambda url: (f"{url}/{_encoded(name)}",),
        accept=FULL_TYPE,
        normaliser=NORMALISER,
    )


def attestations_question(name: str, version_text: str) -> DocumentRequest:
    """The attestations of a version."""
    version = f"{name}@{version_text}"
    return DocumentRequest(
        key=f"attestations/{version}",
        package_key=name,
        name=version,
        urls=lambda url: (f"{url}/-/npm/v1/attestations/{_encoded(version)}",),
        accept=FULL_TYPE,
        normaliser=ATTESTATIONS_NORMALISER,
        kind="attestations",
    )


def keys_question() -> DocumentRequest:
    """The keys that the upstream signs packages with."""
    return DocumentRequest(
        key="keys",
        package_key="",
        name="keys",
        urls=lambda url: (f"{url}/{KEYS}",),
        accept=FULL_TYPE,
        normaliser=KEYS_NORMALISER,
        kind="keys",
    )


def _encoded(name: str) -> str:
    return name.replace("/", "%2f")


async def release_of(file: RemoteFile, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    """The release of a tarball that was fetched from an upstream, which is not read."""
    return make_release(file.key, file.entry, file.source, blob)


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
        meta={**manifest, **_declared(entry), "name": name, "version": entry.version},
        package_meta={"maintainers": _people(manifest.get("maintainers"))},
    )


class _Dist(msgspec.Struct):
    attestations: Any = None
    unpackedSize: Any = None


class _Declared(msgspec.Struct):
    """What rules ask of a manifest. Its other fields are not decoded: they may be more than this server can read."""

    license: Any = None
    licenses: Any = None
    hasInstallScript: Any = None
    npmUser: Any = msgspec.field(default=None, name="_npmUser")
    dist: _Dist | None = None
    dependencies: Any = None
    optionalDependencies: Any = None
    peerDependencies: Any = None
    peerDependenciesMeta: Any = None
    repository: Any = None
    maintainers: Any = None
    os: Any = None
    cpu: Any = None


# The fields, beside the account, of what is compared between versions.
_COMPARED: Final = (
    *("dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta"),
    *("repository", "maintainers", "os", "cpu"),
)
_decode_declared = msgspec.json.Decoder(_Declared).decode


def read_declared(fragments: Mapping[str, bytes]) -> Mapping[str, Any]:
    """
    What a fragment in the full form says of the licence of a version, of scripts at its installation, of who published
    it, and of what is compared between versions.

    :raises Invalid: it cannot be decoded
    """
    body = version_document(fragments[FULL]).replace(BASE, b"")
    try:
        found = _decode_declared(body)
    except ERRORS as error:
        raise Invalid(f"a manifest cannot be read: {describe(body, error)}") from error
    declared = {
        "license": found.license,
        "licenses": found.licenses,
        "hasInstallScript": found.hasInstallScript,
        "_npmUser": found.npmUser,
        "dist": None if found.dist is None else msgspec.structs.asdict(found.dist),
        **{name: getattr(found, name) for name in _COMPARED},
    }
    return {"hasInstallScript": False, **{key: value for key, value in declared.items() if value is not None}}


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


def _declared(entry: Entry) -> Mapping[str, Any]:
    """What rules ask of a manifest, of which it may be all that is kept."""
    try:
        declared = read_declared(entry.fragments)
        return {key: value for key, value in declared.items() if value is not False and key not in ("dist", *_COMPARED)}
    except Invalid:
        return {UNREADABLE: True}


def _people(value: Any) -> list[Any]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


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
    times = [each.published_ms for each in entries if each.published_ms is not None]
    created = format_time(min(package.created_at, *map(from_ms, times)))  # the first tarball may have been kept later
    top = evolve(read_top(reader, package, whole=True), revision="", created=created)
    return max(origins, key=lambda each: each.fetched_ms), Normalised(msgspec.to_builtins(top), iter(entries))


def _entry(version: Version, file: File, origin: Origin) -> Entry:
    manifest = manifest_of(version)
    deprecated = manifest.pop("deprecated", "") or ""
    manifest["dist"] = _without_address(manifest["dist"])
    fragments = {FULL: full_fragment(manifest, deprecated), SHORT: short_fragment(manifest, deprecated)}
    if origin.published_ms is not None:
        fragments[TIME] = time_fragment(version.text, from_ms(origin.published_ms))
    return restored_entry(version, version.text, origin, fragments, (file,))


def _without_address(dist: dict[str, Any]) -> dict[str, Any]:
    attestations = dist.get("attestations")
    if not isinstance(attestations, dict):
        return dist
    return {**dist, "attestations": {key: value for key, value in attestations.items() if key != "url"}}
