"""
The stored manifest of a published version: the sent one, cleaned, with values that the registry computes.

Clients send keys that only matter on their own machine, and old clients do not send all keys that today's clients
need. Whatever can be computed from the tarball is computed here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.npm.limits import LONGEST_INTEGRITY, README_LENGTH
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.text import quoted

from .tarball import TarballContents

ALGORITHMS: Final = ("sha1", "sha512")  # digests in ``dist``; the blob store computes sha256 besides

# Keys that begin with "_" are private to the client, except these.
_KEPT: Final = frozenset({"_nodeVersion", "_npmVersion"})
_DROPPED: Final = frozenset(
    {"integrity", "shasum", "dist", "readme", "readmeFilename", "deprecated", "hasInstallScript"}
)
MAPS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "scripts")
# Further objects, in whose place an empty list is written by languages in which both are the same: PHP, Lua.
_OBJECTS: Final = (*MAPS, "acceptDependencies", "bin", "directories", "engines", "peerDependenciesMeta")
_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")


@frozen
class StoredManifest:
    """
    The manifest of a version as it is stored, and the parts that are stored outside of it.

    ``fields`` has no ``dist`` yet. ``deprecated`` is the message of a version that is published deprecated, else
    empty.
    """

    fields: Mapping[str, Any]
    readme: str
    readme_filename: str
    deprecated: str


def clean_manifest(
    sent: Mapping[str, Any], *, name: str, version: Version, contents: TarballContents
) -> StoredManifest:
    """
    The cleaned manifest for the version object of a publish document.

    :raises Invalid: it is private, or a field that clients read has the wrong type
    """
    if sent.get("private") is True:
        raise Invalid(f"{name} is marked as private: remove 'private' from package.json to publish it", "private")
    sent = {**sent, **{key: {} for key in _OBJECTS if sent.get(key) == []}}
    for key in MAPS:
        if key in sent and not is_map(sent[key]) and sent[key] is not None:
            raise Invalid(f"{key!r} in the manifest must map names to texts", key)
    fields = {
        key: value
        for key, value in sent.items()
        if key not in _DROPPED and (key in _KEPT or not key.startswith("_")) and value is not None
    }
    fields |= {"name": name, "version": version.text, "_id": f"{name}@{version.text}"}
    scripts = sent.get("scripts") or {}
    # Clients look for install scripts only where this is set.
    if contents.has_gyp or any(scripts.get(script) for script in _INSTALL_SCRIPTS):
        fields["hasInstallScript"] = True
    fields["_hasShrinkwrap"] = contents.has_shrinkwrap
    return StoredManifest(
        fields=fields,
        readme=_text(sent.get("readme"))[:README_LENGTH],
        readme_filename=_text(sent.get("readmeFilename")),
        deprecated=_text(sent.get("deprecated")),
    )


def with_packed_fields(
    sent: Mapping[str, Any], contents: TarballContents, names: Sequence[str], package: str
) -> Mapping[str, Any]:
    """The sent manifest with some fields as the package.json in the tarball has them."""
    kept = {key: value for key, value in sent.items() if key not in names}
    packed = {key: contents.manifest[key] for key in names if key in contents.manifest}
    if isinstance(packed.get("bin"), str):
        packed["bin"] = {package.rpartition("/")[2]: packed["bin"]}
    return {**kept, **packed}


def make_dist(
    digests: Mapping[str, str], contents: TarballContents, provenance: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """
    The ``dist`` object of a version without its addresses and signatures, which are added when it is indexed.

    ``digests`` are hex and have L{ALGORITHMS}. ``provenance`` describes an attestation (``predicateType``).
    """
    integrity = base64.b64encode(bytes.fromhex(digests["sha512"])).decode("ascii")
    dist: dict[str, Any] = {
        "integrity": f"sha512-{integrity}",  # as the W3C's Subresource Integrity writes it
        "shasum": digests["sha1"],
        "fileCount": contents.file_count,
        "unpackedSize": contents.unpacked_size,
    }
    if provenance is not None:
        dist["attestations"] = {"provenance": dict(provenance)}
    return dist


def check_announced(sent: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """
    Compare the digests in the sent manifest with those of the received tarball.

    Old clients send none, or only ``shasum``. Digests of algorithms that were not computed are ignored.

    :raises DigestMismatch: a digest differs; :raises Invalid: a digest is malformed
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


def is_map(value: Any) -> bool:
    """Whether a value has the form of L{MAPS}: texts by name."""
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
