"""
What is kept of a published version: the manifest that came, cleaned, with what the registry itself knows.

Clients put local junk into what they send, and old ones know nothing of what clients want today. Everything here that
can be computed is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.limits import LONGEST_INTEGRITY
from pkgrepo.untrusted.quoting import quoted

from .tarball import TarballContents

README_LENGTH: Final = 64 * 1024  # characters; what the public registry keeps, and packuments should not be larger for

ALGORITHMS: Final = ("sha1", "sha512")  # digests that the registry tells of a tarball, beside the store's own sha256

# Keys that begin with "_" are a client's notes to itself, these apart.
_KEPT: Final = frozenset({"_nodeVersion", "_npmVersion"})
_DROPPED: Final = frozenset(
    {"integrity", "shasum", "dist", "readme", "readmeFilename", "deprecated", "hasInstallScript"}
)
_MAPS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "scripts")
_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")


@frozen
class CleanManifest:
    """
    A version as it is stored, with what is kept apart from it.

    ``manifest`` has no ``dist`` yet. ``deprecated`` is the message of a version that is born deprecated, else empty.
    """

    manifest: Mapping[str, Any]
    readme: str
    readme_filename: str
    deprecated: str


def clean(sent: Mapping[str, Any], *, name: str, version: semver.Version, packed: TarballContents) -> CleanManifest:
    """
    The version object of a publish document, fit to be stored.

    :raises Invalid: it is private, or a part that clients work with has another shape than they expect
    """
    if sent.get("private") is True:
        raise Invalid(f"{name} is marked as private: remove 'private' from package.json to publish it", "private")
    for field in _MAPS:
        _check_map(field, sent.get(field))
    manifest = {
        key: value
        for key, value in sent.items()
        if key not in _DROPPED and (key in _KEPT or not key.startswith("_")) and value is not None
    }
    manifest |= {"name": name, "version": version.text, "_id": f"{name}@{version.text}"}
    if has_install_script(sent, packed):
        manifest["hasInstallScript"] = True
    manifest["_hasShrinkwrap"] = packed.has_shrinkwrap
    return CleanManifest(
        manifest=manifest,
        readme=_text(sent.get("readme"))[:README_LENGTH],
        readme_filename=_text(sent.get("readmeFilename")),
        deprecated=_text(sent.get("deprecated")),
    )


def has_install_script(manifest: Mapping[str, Any], packed: TarballContents) -> bool:
    """Whether installing runs something: clients skip looking for scripts where this is not said."""
    scripts = manifest.get("scripts") or {}
    return packed.has_gyp or any(scripts.get(script) for script in _INSTALL_SCRIPTS)


def make_dist(
    digests: Mapping[str, str],
    packed: TarballContents,
    signatures: Sequence[Mapping[str, str]] = (),
    provenance: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    The ``dist`` object of a version, all but its addresses, which are put in when a document is rendered.

    ``digests`` are hex and have L{ALGORITHMS}. ``provenance`` tells of an attestation (``predicateType``).
    """
    dist: dict[str, Any] = {
        "integrity": integrity_of(digests),
        "shasum": digests["sha1"],
        "fileCount": packed.file_count,
        "unpackedSize": packed.unpacked_size,
    }
    if signatures:
        dist["signatures"] = list(signatures)
    if provenance is not None:
        dist["attestations"] = {"provenance": dict(provenance)}
    return dist


def integrity_of(digests: Mapping[str, str]) -> str:
    """A tarball's digest as the web writes it (Subresource Integrity)."""
    return f"sha512-{base64.b64encode(bytes.fromhex(digests['sha512'])).decode('ascii')}"


def check_announced(sent: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """
    Hold what a publish document says of its tarball against the bytes that came.

    Old clients say nothing, or only ``shasum``; digests of algorithms that were not computed are passed over.

    :raises DigestMismatch: they are other bytes; :raises Invalid: it is said in a way that nobody can read
    """
    dist = sent.get("dist")
    if not isinstance(dist, dict):
        return
    shasum, integrity = _text(dist.get("shasum")), _text(dist.get("integrity"))
    if len(integrity) > LONGEST_INTEGRITY:
        raise Invalid(f"the integrity is longer than {LONGEST_INTEGRITY} characters", "dist.integrity")
    if shasum and shasum.lower() != digests["sha1"]:
        raise DigestMismatch("sha1", shasum.lower()[:80], digests["sha1"])
    for each in integrity.split():
        algorithm, _, rest = each.partition("-")
        actual = digests.get(algorithm)
        if actual is None:
            continue
        try:
            expected = base64.b64decode(rest.partition("?")[0], validate=True).hex()
        except binascii.Error:
            raise Invalid(f"the integrity {quoted(each)} is not base64", "dist.integrity") from None
        if expected != actual:
            raise DigestMismatch(algorithm, expected[:128], actual)


def _check_map(field: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Invalid(f"{field!r} in the manifest must map names to texts", field)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
