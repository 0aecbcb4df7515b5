"""
Packuments: the documents of a package, in a full form and in an abbreviated one that suffices to install.

Both are spliced from fragments of versions below a top, which describes the package: a version in the full form, in the
abbreviated one, and its time. A change renders the fragments of the versions that it changes; the others are joined
unchanged.

Fragments do not contain the repository's address: the placeholder L{BASE} is replaced when a document is served. Those
of hosted versions are made from stored manifests, those of an upstream's versions from its own document. A value of a
manifest may be raw JSON (``msgspec.Raw``), which is copied.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from attrs import Factory, evolve, frozen

from pkgrepo.formats.npm import names
from pkgrepo.repositories.clock import format_time
from pkgrepo.repositories.publish.splicing import BASE, Spliced

FULL_TYPE: Final = "application/json"
SHORT_TYPE: Final = "application/vnd.npm.install-v1+json"

# Copied from the latest version to the top of the full form.
TOP_FIELDS: Final = ("description", "author", "contributors", "repository", "homepage", "bugs", "license", "keywords")

_encode = msgspec.json.Encoder().encode

FULL: Final = "npm.full"
SHORT: Final = "npm.short"
TIME: Final = "npm.time"
LONGEST_TIME: Final = 64  # characters
PARTIAL: Final = "-partial"  # ends the revision of a document that does not show all that the package has
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


@frozen
class Top:
    """
    The part of a packument above its versions.

    ``created`` and ``modified`` are times as texts, empty when unknown. ``fields`` are the further members of the full
    form, as JSON. ``revision`` is empty for a package that cannot be written to.

    Versions that are ``restricted`` are not in the document. npm 6 and newer (npm-pick-manifest) do not choose them,
    and print the ``restriction`` to those who ask for one of them; other clients do not read the field.
    """

    name: str
    tags: Mapping[str, str]
    revision: str = ""
    created: str = ""
    modified: str = ""
    fields: Mapping[str, str] = Factory(dict)
    restricted: Sequence[str] = ()
    restriction: str = ""


def splice_full(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The full form, spliced from the sorted fragments of all versions."""
    head: dict[str, Any] = {"_id": top.name, "_rev": top.revision, "name": top.name, "dist-tags": top.tags}
    head |= {key: msgspec.Raw(text.encode()) for key, text in top.fields.items()}
    return Spliced(head=_head(head, top, times), fragments=fragments)


def splice_short(top: Top, times: Sequence[bytes], fragments: Sequence[bytes]) -> Spliced:
    """The abbreviated form. It has ``time``, unlike the public registry's: pnpm's ``minimumReleaseAge`` needs it."""
    head = {"name": top.name, "dist-tags": top.tags, **({"modified": top.modified} if top.modified else {})}
    return Spliced(head=_head(head, top, times), fragments=fragments)


def revision(name: str, serial: int) -> str:
    """The ``_rev`` of a package; each change gives it another one."""
    return f"{serial}-{hashlib.sha256(f'{name}:{serial}'.encode()).hexdigest()[:32]}"


def partial(top: Top) -> Top:
    """The top of a document that does not show all that the package has, so that it cannot be written back."""
    known = top.revision.removesuffix(PARTIAL)
    return evolve(top, revision=f"{known}{PARTIAL}") if known else top


def attestations_document(bundle: bytes, predicate_type: str) -> bytes:
    """The document at ``/-/npm/v1/attestations/<name>@<version>``, with the bundle as it was published."""
    return b'{"attestations":[{"predicateType":%b,"bundle":%b}]}' % (_encode(predicate_type), bundle)


def _head(head: Mapping[str, Any], top: Top, times: Sequence[bytes]) -> bytes:
    bounds = [
        b'"%b":%b' % (key, _encode(text))
        for key, text in ((b"created", top.created), (b"modified", top.modified))
        if text
    ]
    if top.restricted:
        versions = {each: {"name": top.name, "version": each} for each in top.restricted}
        head = {**head, "policyRestrictions": {"message": top.restriction, "versions": versions}}
    return b'%b,"time":{%b},"versions":{' % (_encode(head)[:-1], b",".join((*bounds, *times)))


def full_fragment(manifest: Mapping[str, Any], deprecated: Any = "") -> bytes:
    """
    The fragment of a version in the full form.

    ``manifest`` has ``name`` and ``version`` as texts, and ``dist`` as ``manifest.make_dist`` makes it: an object
    without addresses. ``deprecated`` is the message of a deprecated version.
    """
    return version_fragments(manifest, deprecated)[0]


def short_fragment(manifest: Mapping[str, Any], deprecated: Any = "") -> bytes:
    """The fragment of a version in the abbreviated form."""
    return version_fragments(manifest, deprecated)[1]


def version_fragments(manifest: Mapping[str, Any], deprecated: Any = "") -> tuple[bytes, bytes]:
    """The fragments of a version in the full form and in the abbreviated one, see L{full_fragment}."""
    dist = _dist(manifest["name"], manifest["version"], manifest["dist"])
    full = {key: value for key, value in manifest.items() if key != "dist"}
    return _fragment(full, dist, deprecated), _fragment(_short(manifest), dist, deprecated)


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


def read_time(text: str) -> int | None:
    """A time in milliseconds, as registries write it, in UTC unless it says otherwise; None if the text is no time."""
    try:
        time = datetime.fromisoformat(text) if len(text) <= LONGEST_TIME else None
    except ValueError:
        time = None
    if time is None:
        return None
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def version_document(fragment: bytes) -> bytes:
    """The document of a single version, from its fragment in the full form."""
    return fragment[fragment.index(b":{") + 1 :]


def version_text(fragment: bytes) -> str:
    """The text of the version that a fragment, in either form, is of."""
    return fragment[1 : fragment.index(b'"', 1)].decode()  # versions have no characters that JSON escapes


def _short(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the abbreviated form beside ``dist``."""
    return {key: manifest[key] for key in _SHORT_FIELDS if key in manifest and manifest[key] not in _ABSENT}


def _fragment(chosen: dict[str, Any], dist: bytes, deprecated: Any) -> bytes:
    fields = {**chosen, "deprecated": deprecated} if deprecated else chosen
    return b'%b:%b,"dist":%b}' % (_encode(fields["version"]), _encode(fields)[:-1], dist)


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
