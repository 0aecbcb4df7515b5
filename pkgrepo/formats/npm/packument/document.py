"""
Packuments: the documents of a package, in a full form and in an abbreviated one that suffices to install.

Both are spliced from fragments. A version has one fragment in each form, and one for its time. A change renders the
fragments of the versions that it changes; the others are joined unchanged. Fragments do not contain the repository's
address: the placeholder L{BASE} is replaced when a document is served.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from attrs import Factory, frozen

from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.rendering import format_time
from pkgrepo.model import Version, VersionState
from pkgrepo.repositories.publish.splicing import BASE, Spliced
from pkgrepo.storage.catalog.packages.version_batches import VersionRow

FULL: Final = "npm.full"
SHORT: Final = "npm.short"
TIME: Final = "npm.time"

FULL_TYPE: Final = "application/json"
SHORT_TYPE: Final = "application/vnd.npm.install-v1+json"

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
# Copied from the latest version to the top of the full form.
_TOP_FIELDS: Final = ("description", "author", "contributors", "repository", "homepage", "bugs", "license", "keywords")

# The parts of a fragment behind the version's own fields. The second occurs only once, since it contains L{BASE}.
_DEPRECATED: Final = b',"deprecated":'
_DIST: Final = b',"dist":{"tarball":"%b' % BASE
_STRING: Final = re.compile(rb"\"(?:[^\"\\]++|\\.)*+\"")

_README_FIELDS: Final = frozenset({"readme", "readmeFilename"})

WITHDRAWN: Final = "this version was withdrawn"

_encode = msgspec.json.Encoder().encode


@frozen
class Top:
    """
    The part of a packument above its versions.

    ``latest`` is the manifest of the version with that tag, empty when there is none. ``maintainers`` are objects of
    ``name`` and ``email``; ``users`` are the names of users who starred the package.
    """

    name: str
    serial: int
    created_at: datetime
    modified_at: datetime
    tags: Mapping[str, str]
    latest: Mapping[str, Any] = Factory(dict)
    readme: str = ""
    readme_filename: str = ""
    maintainers: Sequence[Mapping[str, str]] = ()
    users: Sequence[str] = ()


def full_fragment(manifest: Mapping[str, Any], deprecated: str = "") -> bytes:
    """
    The fragment of a version in the full form.

    ``manifest`` is the stored manifest, with ``dist`` as ``manifest.make_dist`` makes it.
    """
    return _fragment(manifest, {key: value for key, value in manifest.items() if key != "dist"}, deprecated)


def short_fragment(manifest: Mapping[str, Any], deprecated: str = "") -> bytes:
    """The fragment of a version in the abbreviated form."""
    # Clients read a missing field as false, so that "false" would only make the document longer.
    chosen = {key: manifest[key] for key in _SHORT_FIELDS if manifest.get(key) not in (None, False)}
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


def splice_full(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The full form, spliced from the sorted fragments of all versions."""
    head: dict[str, Any] = {
        "_id": top.name,
        "_rev": revision(top.name, top.serial),
        "name": top.name,
        "dist-tags": top.tags,
        "maintainers": list(top.maintainers),
    }
    head |= {key: top.latest[key] for key in _TOP_FIELDS if top.latest.get(key) is not None}
    head |= {"readme": top.readme, "readmeFilename": top.readme_filename}
    if top.users:
        head["users"] = dict.fromkeys(top.users, True)
    return Spliced(head=_head(head, top, times), fragments=fragments)


def splice_short(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The abbreviated form. It has ``time``, unlike the public registry's: pnpm's ``minimumReleaseAge`` needs it."""
    head = {"name": top.name, "dist-tags": top.tags, "modified": format_time(top.modified_at)}
    return Spliced(head=_head(head, top, times), fragments=fragments)


def revision(name: str, serial: int) -> str:
    """The ``_rev`` of a package; each change gives it another one."""
    return f"{serial}-{hashlib.sha256(f'{name}:{serial}'.encode()).hexdigest()[:32]}"


def attestations_document(bundle: bytes, predicate_type: str) -> bytes:
    """The document at ``/-/npm/v1/attestations/<name>@<version>``, with the bundle as it was published."""
    return b'{"attestations":[{"predicateType":%b,"bundle":%b}]}' % (_encode(predicate_type), bundle)


def manifest_of(version: Version) -> dict[str, Any]:
    """The manifest of a version, without the readme, which only the top of the document has."""
    return {key: value for key, value in version.meta.items() if key not in _README_FIELDS}


def deprecation(version: Version | VersionRow) -> str:
    """The message that clients print when they install the version; empty when it is not deprecated."""
    if version.state is VersionState.LIVE:
        return ""
    return version.reason or (WITHDRAWN if version.state is VersionState.YANKED else "deprecated")


def _head(head: Mapping[str, Any], top: Top, times: Sequence[bytes]) -> bytes:
    bounds = b'"created":%b,"modified":%b' % (
        _encode(format_time(top.created_at)),
        _encode(format_time(top.modified_at)),
    )
    return b'%b,"time":{%b},"versions":{' % (_encode(head)[:-1], b",".join((bounds, *times)))


def _fragment(manifest: Mapping[str, Any], chosen: Mapping[str, Any], deprecated: str) -> bytes:
    name, version = manifest["name"], manifest["version"]
    fields = {**chosen, "deprecated": deprecated} if deprecated else chosen
    return b'%b:%b,"dist":%b}' % (_encode(version), _encode(fields)[:-1], _dist(name, version, manifest["dist"]))


def _dist(name: str, version: str, dist: Mapping[str, Any]) -> bytes:
    plain = {key: value for key, value in dist.items() if key != "attestations"}
    parts = [b'{"tarball":', _url(f"/{name}/-/{names.tarball_name(name, version)}"), b",", _encode(plain)[1:-1]]
    if dist.get("attestations"):
        url = _url(f"/-/npm/v1/attestations/{name}@{version}")
        parts += [b',"attestations":{"url":', url, b",", _encode(dist["attestations"])[1:]]
    return b"".join((*parts, b"}"))


def _url(path: str) -> bytes:
    """
    A URL below the repository's address, as JSON.

    The ``@`` and ``/`` of a scope are not encoded: npm's unpublish removes the registry's path by its length.
    """
    return b'"%b%b' % (BASE, _encode(path)[1:])
