"""
Fragments of packuments: a version in the full form, in the abbreviated one, and its time.

Fragments do not contain the repository's address: the placeholder L{BASE} is replaced when a document is served. Those
of hosted versions are made from stored manifests, those of an upstream's versions from its own document. A value of a
manifest may be raw JSON (``msgspec.Raw``), which is copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.rendering import format_time
from pkgrepo.repositories.publish.index import BASE

FULL: Final = "npm.full"
SHORT: Final = "npm.short"
TIME: Final = "npm.time"

# The fields of the abbreviated form. "bundledDependencies" is a second spelling in manifests, which clients know.
_SHORT_FIELDS: Final = (
    "name",
    "version",
    "dependencies",
    "optionalDependencies",
    "devDependencies",
    "bundleDependencies",
    "bundledDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "acceptDependencies",
    "bin",
    "directories",
    "engines",
    "funding",
    "cpu",
    "os",
    "libc",
    "_hasShrinkwrap",
    "hasInstallScript",
)
# Clients read a missing field as null or false, so that these would only make the document longer.
_ABSENT: Final = (None, False, msgspec.Raw(b"null"), msgspec.Raw(b"false"))

# The parts of a fragment behind the version's own fields. The second occurs only once, since it contains L{BASE}.
_DEPRECATED: Final = b',"deprecated":'
_DIST: Final = b',"dist":{"tarball":"%b' % BASE
_STRING: Final = re.compile(rb"\"(?:[^\"\\]++|\\.)*+\"")

_encode = msgspec.json.Encoder().encode


def full_fragment(manifest: Mapping[str, Any], deprecated: Any = "") -> bytes:
    """
    The fragment of a version in the full form.

    ``manifest`` has ``name`` and ``version`` as texts, and ``dist`` as ``manifest.make_dist`` makes it: an object
    without addresses. ``deprecated`` is the message of a deprecated version.
    """
    return _fragment(manifest, {key: value for key, value in manifest.items() if key != "dist"}, deprecated)


def short_fragment(manifest: Mapping[str, Any], deprecated: Any = "") -> bytes:
    """The fragment of a version in the abbreviated form."""
    chosen = {key: manifest[key] for key in _SHORT_FIELDS if manifest.get(key) not in _ABSENT}
    return _fragment(manifest, chosen, deprecated)


def time_fragment(version_text: str, published_at: datetime) -> bytes:
    """The fragment with the time when a version was published, for both forms."""
    return b"%b:%b" % (_encode(version_text), _encode(format_time(published_at)))


def with_deprecation(fragment: bytes, deprecated: str) -> bytes:
    """The fragment of a version, in either form, with another deprecation message; an empty one removes it."""
    end = fragment.index(_DIST)
    begin = fragment.rfind(_DEPRECATED, 0, end)
    if begin < 0 or not _STRING.fullmatch(fragment, begin + len(_DEPRECATED), end):
        begin = end  # the fragment has none: the match is inside of a nested value
    member = b"%b%b" % (_DEPRECATED, _encode(deprecated)) if deprecated else b""
    return b"".join((fragment[:begin], member, fragment[end:]))


def version_document(fragment: bytes) -> bytes:
    """The document of a single version, from its fragment in the full form."""
    return fragment[fragment.index(b":{") + 1 :]


def _fragment(manifest: Mapping[str, Any], chosen: Mapping[str, Any], deprecated: Any) -> bytes:
    name, version = manifest["name"], manifest["version"]
    fields = {**chosen, "deprecated": deprecated} if deprecated else chosen
    return b'%b:%b,"dist":%b}' % (_encode(version), _encode(fields)[:-1], _dist(name, version, manifest["dist"]))


def _dist(name: str, version: str, dist: Mapping[str, Any]) -> bytes:
    plain = {key: value for key, value in dist.items() if key != "attestations"}
    parts = [b'"tarball":%b' % _url(f"/{name}/-/{names.tarball_name(name, version)}")]
    if plain:
        parts.append(_encode(plain)[1:-1])
    if dist.get("attestations"):
        url = _url(f"/-/npm/v1/attestations/{name}@{version}")
        parts.append(b'"attestations":{"url":%b,%b' % (url, _encode(dist["attestations"])[1:]))
    return b"{%b}" % b",".join(parts)


def _url(path: str) -> bytes:
    """
    A URL below the repository's address, as JSON.

    The ``@`` and ``/`` of a scope are not encoded: npm's unpublish removes the registry's path by its length.
    """
    return b'"%b%b' % (BASE, _encode(path)[1:])
