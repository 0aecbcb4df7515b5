"""
Provenance bundles: what a build service says of a tarball, signed by it.

They are kept and given out as they came, once it is clear that they speak of what they came with. Their signatures are
left to the clients, which have the roots of trust for that.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.gateway.content import SMALL
from pkgrepo.untrusted.quoting import quoted
from pkgrepo.untrusted.strict_json import decode_as

from .envelope import Bundle

_PURL: Final = "pkg:npm/"


class _Signature(msgspec.Struct, frozen=True):
    sig: str


class _Envelope(msgspec.Struct, frozen=True):
    payload: str
    signatures: list[_Signature]


class _Bundle(msgspec.Struct, frozen=True):
    """A signed statement (DSSE); npm knows no other content of a bundle."""

    dsseEnvelope: _Envelope


class _Subject(msgspec.Struct, frozen=True):
    name: str = ""
    digest: dict[str, str] = {}


class _Statement(msgspec.Struct, frozen=True):
    """An in-toto statement, of which further keys are not read."""

    predicateType: str
    subject: list[_Subject]


@frozen
class Attestation:
    """A bundle as it is stored, and what kind of statement it holds."""

    text: bytes
    predicate_type: str


def read_bundle(bundle: Bundle, name: str, version: semver.Version, sha512: str) -> Attestation:
    """
    A bundle that came with a version whose tarball has this digest.

    What clients would stumble over when they verify it is refused here: one broken bundle ends the whole audit of a
    project that has the package.

    :raises Invalid: it has another shape, or speaks of another version or other bytes
    """
    text = bundle.text.encode()
    if len(text) > SMALL:
        raise Invalid(f"the provenance bundle is longer than {SMALL} bytes", "_attachments")
    try:
        statement = _statement(text)
    except Invalid as error:
        raise Invalid(f"the provenance bundle is none: {error}", "_attachments") from None
    subject = statement.subject[0] if statement.subject else _Subject()
    package, _, spelled = subject.name.removeprefix(_PURL).rpartition("@")
    # npm.toPurl encodes the "@" of a scope and nothing else.
    named = subject.name.startswith(_PURL) and package == name.replace("@", "%40") and semver.is_same(spelled, version)
    if not named:
        raise Invalid(
            f"the provenance bundle speaks of {quoted(subject.name)}, not {name}@{version.text}", "_attachments"
        )
    if subject.digest.get("sha512", "").lower() != sha512:
        raise Invalid("the provenance bundle speaks of another tarball", "_attachments")
    return Attestation(text=text, predicate_type=statement.predicateType)


def _statement(text: bytes) -> _Statement:
    """What the bundle signs. :raises Invalid: it is no bundle, or unsigned"""
    envelope = decode_as(text, _Bundle, what="it").dsseEnvelope
    if not envelope.signatures:
        raise Invalid("it has no signature")
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except ValueError:
        raise Invalid("its payload is not base64") from None
    return decode_as(payload, _Statement, what="its payload")
