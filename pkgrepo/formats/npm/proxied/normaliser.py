"""
The normalisers of packuments, and of documents that are passed on as they are. They run in a child process.

A packument of an upstream becomes its top, and an entry with fragments for each version. Values are not decoded but
copied as JSON, so that what this program does not know arrives at clients unchanged, and a version costs only the
parsing of its text. What a client would take for an address is replaced by one of ours. A version that cannot be
installed is left out.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.limits import LONGEST_INTEGRITY, README_LENGTH
from pkgrepo.formats.npm.packument.document import FULL, SHORT, TIME, Top, read_time, version_fragments
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.outbound.urls import Target, parse_url, resolve_reference
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.strict_json import ERRORS, describe
from pkgrepo.untrusted.text import quoted

NORMALISER: Final = f"{__name__}:normalise"

LARGEST_FIELD: Final = 256 * 1024  # bytes of a field of the top; the stars of popular packages have 100 KiB

_CHUNK: Final = 1024 * 1024  # bytes that are decoded at once to check that they are UTF-8
_OBJECT: Final = dict[str, msgspec.Raw]
_TRUE: Final = msgspec.Raw(b"true")
_EMPTY: Final = (msgspec.Raw(b"null"), msgspec.Raw(b"false"), msgspec.Raw(b'""'))

# Members of a document that are read here, or that only the upstream itself understands.
_READ: Final = frozenset(
    {"_id", "_rev", "_attachments", "name", "dist-tags", "versions", "time", "modified", "readme", "__proto__"}
)
# Members of a version that are written in a place of their own, and a readme for each version, which no client reads.
_SEPARATE: Final = frozenset({"deprecated", "readme"})
_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")
_MAY_INSTALL: Final = (b"install", b"\\")  # in the text of scripts, of which few are for that; names may be escaped
# The length of hexadecimal digests by algorithm, the strongest first.
_DIGESTS: Final = {"sha512": 128, "sha384": 96, "sha256": 64, "sha1": 40}

# An escape sequence in JSON; of those for surrogates (RFC 8259 section 7) the pairs come first.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|[^u]|u)"
)
_REPLACEMENT: Final = rb"\ufffd"

_decode_object = msgspec.json.Decoder(_OBJECT).decode
_encode = msgspec.json.Encoder().encode

KEYS_NORMALISER: Final = f"{__name__}:keep_keys"
ATTESTATIONS_NORMALISER: Final = f"{__name__}:keep_attestations"
LARGEST: Final = 8 * 1024 * 1024  # bytes; the attestations of a version have some 10 KiB
_BODY: Final = "body"  # the key of the text in the top


def normalise(source: bytes, context: Context) -> Normalised:
    """
    The parts of a packument in the full form; see L{pkgrepo.proxy.parts.values.NormaliserFunction}.

    :raises Invalid: it is no packument, or that of another package
    """
    _check_utf8(source)
    document = _parse(source)
    name = _text(document.get("name"))
    if name != context.name:
        raise Invalid(f"it is not the document of {quoted(context.name)} but of {names.quoted_or_nothing(name)}")
    versions = _members(document.get("versions"))
    if versions is None:
        # The public registry answers so for a package whose versions were all removed.
        if "versions" in document:
            raise Invalid("its versions are no object")
        versions = {}
    times = _members(document.get("time")) or {}
    entries = list(_entries(versions, times, context))
    top = _top(name, document, entries, times)
    return Normalised(top=msgspec.to_builtins(top), entries=iter(entries))


def _parse(source: bytes) -> Mapping[str, msgspec.Raw]:
    try:
        return _decode_object(source)
    except ERRORS as error:
        # Registries cut long texts, and so leave half of a surrogate pair, which JavaScript reads.
        mended = _ESCAPE.sub(lambda match: _REPLACEMENT if match[1] else match[0], source)
        if mended == source:
            raise Invalid(f"it is not a JSON object: {describe(source, error)}") from None
    try:
        return _decode_object(mended)
    except ERRORS as error:
        raise Invalid(f"it is not a JSON object: {describe(mended, error)}") from None


def _check_utf8(source: bytes) -> None:
    """Check the encoding, which is not checked of what is copied. :raises Invalid: it is not UTF-8"""
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(source)
    try:
        for at in range(0, len(view), _CHUNK):
            decoder.decode(view[at : at + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise Invalid("it is not UTF-8") from None


def _top(
    name: str,
    document: Mapping[str, msgspec.Raw],
    entries: Sequence[Entry],
    times: Mapping[str, msgspec.Raw],
) -> Top:
    fields = {
        key: bytes(value).decode()
        for key, value in document.items()
        if key not in _READ and len(bytes(value)) <= LARGEST_FIELD
    }
    fields["readme"] = _encode((_text(document.get("readme")) or "")[:README_LENGTH]).decode()
    return Top(
        name=name,
        tags=_tags(document.get("dist-tags"), entries),
        created=_created(times, entries),
        modified=_time(times.get("modified"))[0] or _time(document.get("modified"))[0],
        fields=fields,
    )


def _created(times: Mapping[str, msgspec.Raw], entries: Sequence[Entry]) -> str:
    """When the package was made, as the upstream writes it; a package is at least as old as its oldest version."""
    said, at_ms = _time(times.get("created"))
    oldest_ms = min((each.published_ms for each in entries if each.published_ms is not None), default=None)
    return said if at_ms is None or oldest_ms is None or at_ms <= oldest_ms else format_time(from_ms(oldest_ms))


def _tags(raw: msgspec.Raw | None, entries: Sequence[Entry]) -> dict[str, str]:
    """The dist-tags of versions that are shown. Clients need ``latest``: see L{semver.latest_instead_of}."""
    said = {tag: _text(value) or "" for tag, value in (_members(raw) or {}).items()}
    shown = {entry.version: entry.sort for entry in entries}
    found: dict[str, str] = {}
    for tag, text in said.items():
        version = semver.find_version(text)
        if version is not None and version.text in shown and names.is_readable_tag(tag):
            found[tag] = version.text
    if names.DEFAULT_TAG not in found:
        latest = semver.latest_instead_of(said.get(names.DEFAULT_TAG, ""), sorted(shown, key=shown.__getitem__))
        if latest is not None:
            found[names.DEFAULT_TAG] = latest.text
    return found


def _entries(
    versions: Mapping[str, msgspec.Raw], times: Mapping[str, msgspec.Raw], context: Context
) -> Iterator[Entry]:
    base = parse_url(context.url)
    for text, raw in versions.items():
        version, manifest = semver.find_version(text), _members(raw)
        if version is None or manifest is None:
            continue
        source = _source(_members(manifest.get("dist")) or {}, version.text, context, base)
        if source is not None:
            yield _entry(version, manifest, source, times.get(text), context)


def _entry(
    version: Version,
    manifest: Mapping[str, msgspec.Raw],
    source: FileSource,
    time: msgspec.Raw | None,
    context: Context,
) -> Entry:
    fields: dict[str, Any] = {key: value for key, value in manifest.items() if key not in _SEPARATE}
    # The key counts: a version of another name or number is none of this package.
    fields |= {"name": context.name, "version": version.text, "dist": _dist(manifest)}
    if _has_install_script(manifest):
        fields["hasInstallScript"] = True
    deprecated = manifest.get("deprecated")
    message = "" if deprecated in _EMPTY else deprecated
    full, short = version_fragments(fields, message)
    fragments = {FULL: full, SHORT: short}
    time_text, published_ms = _time(time)
    if time_text:
        fragments[TIME] = b"%b:%b" % (_encode(version.text), _encode(time_text))
    return Entry(
        sort=version.sort,
        key=version.text,  # other registries may have versions that differ in build metadata alone
        version=version.text,
        published_ms=published_ms,
        first_seen=False,
        fragments=fragments,
        files=[source],
    )


def _dist(manifest: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """The ``dist`` of a version without the upstream's addresses."""
    dist: dict[str, Any] = {**(_members(manifest.get("dist")) or {})}
    dist.pop("tarball", None)
    if "attestations" in dist:
        attestations = _members(dist["attestations"]) or {}
        dist["attestations"] = {key: value for key, value in attestations.items() if key != "url"}
    return dist


def _source(dist: Mapping[str, msgspec.Raw], version_text: str, context: Context, base: Target) -> FileSource | None:
    """The tarball of a version; None if the upstream gives no address of it."""
    tarball = _text(dist.get("tarball"))
    try:
        url = resolve_reference(base, tarball.encode().decode("latin-1")).text if tarball else ""
    except ValueError:
        url = ""
    if not url:
        return None
    digests = _digests(_text(dist.get("integrity")) or "")
    shasum = (_text(dist.get("shasum")) or "").lower()
    if not digests and re.fullmatch("[0-9a-f]{40}", shasum):
        digests = {"sha1": shasum}
    return FileSource(
        path=tarball_path(context.name, version_text),
        url=url,
        size=None,
        digests=digests,
        media_type="application/octet-stream",
        meta={},
    )


def _digests(integrity: str) -> dict[str, str]:
    """The digests in an integrity (W3C Subresource Integrity, section 3.5); what is no digest is left out."""
    found: dict[str, str] = {}
    for each in integrity[:LONGEST_INTEGRITY].split():
        algorithm, _, rest = each.partition("-")
        try:
            digest = base64.b64decode(rest.partition("?")[0], validate=True).hex()
        except (binascii.Error, ValueError):
            continue
        if len(digest) == _DIGESTS.get(algorithm):
            found.setdefault(algorithm, digest)
    return found


def _has_install_script(manifest: Mapping[str, msgspec.Raw]) -> bool:
    # The public registry computes it for its own abbreviated form only.
    if manifest.get("gypfile") == _TRUE:
        return True
    text = bytes(manifest.get("scripts", b""))
    if not any(each in text for each in _MAY_INSTALL):
        return False
    scripts = _members(msgspec.Raw(text)) or {}
    return any(scripts.get(script, _EMPTY[0]) not in _EMPTY for script in _INSTALL_SCRIPTS)


def _time(raw: msgspec.Raw | None) -> tuple[str, int | None]:
    """A time as the upstream writes it, and in milliseconds; ("", None) if the value is no time."""
    text = _text(raw) or ""
    at_ms = read_time(text)
    return ("", None) if at_ms is None else (text, at_ms)


def _members(raw: msgspec.Raw | None) -> dict[str, msgspec.Raw] | None:
    """The members of an object; None if the value is no object."""
    try:
        return None if raw is None else _decode_object(raw)
    except ERRORS:
        return None


def _text(raw: msgspec.Raw | None) -> str | None:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=str)
    except ERRORS:
        return None


def keep_keys(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The keys of a registry. :raises Invalid: it is no list of them, such as an error that says 200"""
    return _keep(source, "keys")


def keep_attestations(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The attestations of a version. :raises Invalid: it is no list of them"""
    return _keep(source, "attestations")


def _keep(source: bytes, needed: str) -> Normalised:
    """The document as the top of its parts, whose member ``needed`` is a list of objects."""
    if len(source) > LARGEST:
        raise Invalid(f"it is larger than {LARGEST} bytes")
    try:
        found = msgspec.json.decode(source, type=dict[str, msgspec.Raw])
        text = source.decode()
        msgspec.json.decode(found.get(needed, b""), type=list[dict[str, msgspec.Raw]])
    except ERRORS as error:
        raise Invalid(f"it is no JSON object with a list of {needed}: {describe(source, error)}") from None
    return Normalised(top={_BODY: text}, entries=iter(()))


def kept_text(top: Mapping[str, str]) -> str:
    """The document in the top of its parts."""
    return top[_BODY]
