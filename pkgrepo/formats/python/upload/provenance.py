"""
Attestations of an upload, and the provenance document made from them (PEP 740).

Attestations are stored and served unchanged after checking that their subject is this file, and verified where that is
asked for. Those of an upload by a pipeline must be signed by it, see L{pkgrepo.oidc.provenance}.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import ATTESTATION_VALUES, ATTESTATIONS_SIZE, MOST_ATTESTATIONS
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.model import Pipeline
from pkgrepo.oidc.provenance import Signed, check_signer, publisher_of
from pkgrepo.untrusted.strict_json import ERRORS, check_value_count, decode_typed, describe

FIELD: Final = "attestations"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
UNVERIFIED: Final = {"kind": "unverified", "claims": None}


class Envelope(msgspec.Struct, frozen=True):
    """The signed statement and the signature, both base64."""

    statement: str
    signature: str


class Attestation(msgspec.Struct, frozen=True):
    """The required keys of one attestation; other keys are kept."""

    version: Literal[1]
    verification_material: dict[str, Any]
    envelope: Envelope


class Subject(msgspec.Struct, frozen=True):
    """A file that a statement is about."""

    name: str
    digest: dict[str, str]


class Statement(msgspec.Struct, frozen=True):
    """The signed statement (in-toto)."""

    type: str = msgspec.field(name="_type")
    subject: list[Subject]
    predicate_type: str = msgspec.field(name="predicateType")


def parse_attestations(text: str) -> Sequence[Mapping[str, Any]]:
    """
    Parse the field of the upload form; an empty field has no attestations.

    :raises Invalid: the field is not a JSON array of attestations, or is too long
    """
    if not text:
        return ()
    if len(text) > ATTESTATIONS_SIZE:
        raise Invalid(f"the attestations are longer than {ATTESTATIONS_SIZE} characters", FIELD)
    data = text.encode("utf-8", "surrogatepass")
    try:
        check_value_count(data, ATTESTATION_VALUES, "the field of the attestations", FIELD)
        values = msgspec.json.decode(data, type=list[dict[str, Any]])
        msgspec.convert(values, list[Attestation])
    except ERRORS as error:
        raise Invalid(f"the attestations cannot be read: {describe(data, error)}", FIELD) from None
    if len(values) > MOST_ATTESTATIONS:
        raise Invalid(f"a file may have {MOST_ATTESTATIONS} attestations at most", FIELD)
    return tuple(values)


def provenance_document(
    attestations: Sequence[Mapping[str, Any]],
    filename: str,
    sha256: str,
    *,
    pipeline: Pipeline | None = None,
) -> bytes:
    """
    The provenance document of a file; its publisher is the ``pipeline`` that uploads it.

    :raises Invalid: an attestation is about another file or of another pipeline, or two have the same predicate type
    """
    kinds = []
    for each in attestations:
        attestation = msgspec.convert(each, Attestation)
        kinds.append(_check(attestation, filename, sha256))
        if pipeline is not None:
            _check_signer(attestation, pipeline, filename)
    if len(set(kinds)) < len(kinds):
        raise Invalid(f"{filename} has two attestations of one kind", FIELD)
    publisher = UNVERIFIED if pipeline is None else publisher_of(pipeline)
    bundle = {"publisher": dict(publisher), "attestations": list(attestations)}
    return msgspec.json.encode({"version": 1, "attestation_bundles": [bundle]})


def _check(attestation: Attestation, filename: str, sha256: str) -> str:
    """Check that an attestation is about this file; returns its predicate type."""
    try:
        data = base64.b64decode(attestation.envelope.statement, validate=True)
    except ValueError:
        raise Invalid(
            f"an attestation of {filename} has a statement that cannot be read: it is not base64", FIELD
        ) from None
    check_value_count(data, ATTESTATION_VALUES, f"an attestation of {filename}", FIELD)
    statement = decode_typed(
        data, Statement, f"an attestation of {filename} has a statement that cannot be read", FIELD
    )
    if statement.type != STATEMENT_TYPE:
        raise Invalid(f"an attestation of {filename} is not an in-toto statement, version 1", FIELD)
    if len(statement.subject) != 1:
        raise Invalid(f"an attestation of {filename} has {len(statement.subject)} subjects instead of one", FIELD)
    subject = statement.subject[0]
    if not same_name(subject.name, filename):
        raise Invalid(f"an attestation of {filename} is about {subject.name[:255]!a}", FIELD)
    if subject.digest.get("sha256", "").lower() != sha256:
        raise Invalid(f"an attestation of {filename} is about a file with another sha256 digest", FIELD)
    return statement.predicate_type


def _check_signer(attestation: Attestation, pipeline: Pipeline, filename: str) -> None:
    """Check that a pipeline has signed an attestation with a certificate. :raises Invalid: it has not"""
    certificate = attestation.verification_material.get("certificate")
    if certificate is None:
        return
    try:
        der, payload, signature = (
            base64.b64decode(each, validate=True)
            for each in (str(certificate), attestation.envelope.statement, attestation.envelope.signature)
        )
    except ValueError:
        raise Invalid(f"an attestation of {filename} has a part that is not base64", FIELD) from None
    check_signer(pipeline, Signed(der, payload, signature), f"an attestation of {filename}", FIELD)


def same_name(subject: str, filename: str) -> bool:
    """Compare file names after normalising project and version, as PEP 740 does."""
    if subject == filename:
        return True
    ours = parse_filename(filename)
    try:
        theirs = parse_filename(subject, project=ours.project_key)
    except Invalid:
        return False
    return (ours.project_key, ours.version_key, ours.kind, ours.build, ours.tags) == (
        theirs.project_key,
        theirs.version_key,
        theirs.kind,
        theirs.build,
        theirs.tags,
    )
