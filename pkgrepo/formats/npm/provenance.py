"""
Provenance bundles: what a build service says of a tarball, signed by it.

They are kept and given out as they came, once it is clear that they do not speak of other bytes. Their signatures are
left to the clients, which have the roots of trust for that.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.gateway.content import SMALL

from .envelope import Bundle
from .strict_json import decode_as

DEFAULT_PREDICATE: Final = "https://slsa.dev/provenance/v1"


class _Subject(msgspec.Struct, frozen=True):
    name: str = ""
    digest: dict[str, str] = {}


class _Statement(msgspec.Struct, frozen=True):
    """An in-toto statement, of which further keys are not read."""

    predicateType: str = DEFAULT_PREDICATE
    subject: list[_Subject] = []


@frozen
class Attested:
    """A bundle as it is stored, and what kind of statement it holds."""

    text: bytes
    predicate_type: str


def read_bundle(bundle: Bundle, sha512: str) -> Attested:
    """
    A bundle that came with a tarball of this digest.

    :raises Invalid: it is no JSON object, or speaks of other bytes
    """
    text = bundle.text.encode()
    if len(text) > SMALL:
        raise Invalid(f"the provenance bundle is longer than {SMALL} bytes", "_attachments")
    value = decode_as(text, dict[str, Any])
    statement = _statement(value)
    digests = {each.digest["sha512"].lower() for each in statement.subject if "sha512" in each.digest}
    if digests and sha512 not in digests:
        raise Invalid("the provenance bundle speaks of another tarball", "_attachments")
    return Attested(text=text, predicate_type=statement.predicateType)


def attestations_document(bundle: bytes, predicate_type: str) -> bytes:
    """What ``/-/npm/v1/attestations/<name>@<version>`` answers, around the bundle as it came."""
    return b'{"attestations":[{"predicateType":%b,"bundle":%b}]}' % (msgspec.json.encode(predicate_type), bundle)


def _statement(bundle: dict[str, Any]) -> _Statement:
    """The statement in the bundle's envelope (DSSE); an empty one where there is none to be read."""
    envelope = bundle.get("dsseEnvelope")
    payload = envelope.get("payload") if isinstance(envelope, dict) else None
    if not isinstance(payload, str):
        return _Statement()
    try:
        return msgspec.json.decode(base64.b64decode(payload, validate=True), type=_Statement)
    except (binascii.Error, msgspec.MsgspecError):
        return _Statement()
