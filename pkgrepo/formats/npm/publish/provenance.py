"""
Provenance bundles: statements about a tarball, signed by the build service that made it.

A bundle is stored and served unchanged, after a check that it is about the version that it was published with. Clients
verify the signature: they have the roots of trust for it.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.gateway.answers.content import SMALL
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.text import quoted

_PURL: Final = "pkg:npm/"


class _Signature(msgspec.Struct, frozen=True):
    sig: str


class _Envelope(msgspec.Struct, frozen=True):
    payload: str
    signatures: list[_Signature]


class _Bundle(msgspec.Struct, frozen=True):
    """A bundle with a signed statement (DSSE), the only content that npm knows."""

    dsseEnvelope: _Envelope


class _Subject(msgspec.Struct, frozen=True):
    name: str = ""
    digest: dict[str, str] = {}


class _Statement(msgspec.Struct, frozen=True):
    """The parts of an in-toto statement that are read."""

    predicateType: str
    subject: list[_Subject]


@frozen
class Attestation:
    """A bundle as it is stored, and the type of its statement."""

    text: bytes
    predicate_type: str


def read_bundle(bundle: str, name: str, version: semver.Version, sha512: str) -> Attestation:
    """
    The attestation in a bundle that was published with a version whose tarball has this digest.

    A bundle that clients could not verify is refused here: one of them makes ``npm audit signatures`` fail for the
    whole project that depends on the package.

    :raises Invalid: the bundle is malformed, or about another version or other bytes
    """
    text = bundle.encode()
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
    """The statement that the bundle signs. :raises Invalid: it is no bundle, or not signed"""
    envelope = decode_as(text, _Bundle, what="it").dsseEnvelope
    if not envelope.signatures:
        raise Invalid("it has no signature")
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except ValueError:
        raise Invalid("its payload is not base64") from None
    return decode_as(payload, _Statement, what="its payload")
