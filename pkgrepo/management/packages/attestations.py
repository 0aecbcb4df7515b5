"""
Shows who signed or attested the files of a version, as the documents beside them say: OpenPGP signatures (RFC 9580),
Sigstore bundles, provenance documents (PEP 740).

Nothing is verified, and what cannot be read says so.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from cryptography import x509

from pkgrepo.errors import BlobMissing, Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages.schema import AttestationRecord, Attestations
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages.files import list_files_of_version
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

LARGEST: Final = 256 * 1024  # bytes of a document
LONGEST: Final = 300  # characters of what one says
MOST_VALUES: Final = 20_000
MOST_BUNDLES: Final = 10  # attestations of a document that are shown
SUFFIXES: Final = {
    ".asc": "OpenPGP signature",
    ".sigstore": "Sigstore bundle",
    ".sigstore.json": "Sigstore bundle",
    ".provenance": "attestation",
}
UNREADABLE: Final = "unknown: it cannot be read"
MOST_FILES: Final = 2000  # of a version, among which documents are looked for
MOST_DOCUMENTS: Final = 20

table = Table("packages")


class _Key(msgspec.Struct):
    hint: str = ""


class _Certificate(msgspec.Struct):
    rawBytes: str = ""


class _Chain(msgspec.Struct):
    certificates: list[_Certificate] = []


class _Material(msgspec.Struct):
    certificate: _Certificate | None = None
    x509CertificateChain: _Chain | None = None
    publicKey: _Key | None = None


class _Envelope(msgspec.Struct):
    payload: str = ""


class _Bundle(msgspec.Struct):
    verificationMaterial: _Material | None = None
    dsseEnvelope: _Envelope | None = None


class _AttestedMaterial(msgspec.Struct):
    certificate: str = ""


class _AttestedEnvelope(msgspec.Struct):
    statement: str = ""


class _Attestation(msgspec.Struct):
    verification_material: _AttestedMaterial | None = None
    envelope: _AttestedEnvelope | None = None


class _AttestationBundle(msgspec.Struct):
    publisher: dict[str, Any] = {}
    attestations: list[_Attestation] = []


class _Provenance(msgspec.Struct):
    attestation_bundles: list[_AttestationBundle] = []


class _Statement(msgspec.Struct):
    predicateType: str = ""


def kind_of(path: str) -> str | None:
    """What a file with this path says about another one; None if it is no such file."""
    return next((kind for suffix, kind in SUFFIXES.items() if path.endswith(suffix)), None)


def subject_of(path: str) -> str:
    """The path of the file that such a file is about."""
    suffix = max((each for each in SUFFIXES if path.endswith(each)), key=len)
    return path.removesuffix(suffix)


def read_attestations(path: str, data: bytes) -> list[AttestationRecord]:
    """Who attests a file, and what, by the document at a path. Takes some milliseconds."""
    kind = kind_of(path) or ""
    try:
        check_value_count(data, MOST_VALUES, path)
        match kind:
            case "OpenPGP signature":
                found = [(_signer(data), "")]
            case "Sigstore bundle":
                found = [_bundle(decode_as(data, _Bundle, what="the bundle"))]
            case _:
                found = _provenance(decode_as(data, _Provenance, what="the provenance"))
    except (Invalid, ValueError):
        found = [(UNREADABLE, "")]
    about = subject_of(path)
    return [
        AttestationRecord(kind=kind, path=path, about=about, by=by[:LONGEST], says=says[:LONGEST], verified=False)
        for by, says in found[:MOST_BUNDLES]
    ]


def _signer(data: bytes) -> str:
    from pysequoia import Sig  # noqa: PLC0415 - 2 MB, which few servers need

    try:
        signature = Sig.from_bytes(data)
    except Exception:  # noqa: BLE001 - the library has no errors of its own
        return UNREADABLE
    # Older releases of the library have another name for the fingerprint.
    identity = getattr(signature, "issuer_fingerprint", None) or signature.issuer_key_id
    return f"key {identity}" if identity else "a key that it does not name"


def _bundle(bundle: _Bundle) -> tuple[str, str]:
    material = bundle.verificationMaterial or _Material()
    certificates = material.x509CertificateChain.certificates if material.x509CertificateChain else []
    certificate = material.certificate or (certificates[0] if certificates else None)
    payload = "" if bundle.dsseEnvelope is None else bundle.dsseEnvelope.payload
    if certificate is not None:
        return _identity(certificate.rawBytes), _predicate(payload)
    hint = "" if material.publicKey is None else material.publicKey.hint
    return f"key {hint}" if hint else "a key that it does not name", _predicate(payload)


def _provenance(document: _Provenance) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for bundle in document.attestation_bundles:
        named = [bundle.publisher.get(each) for each in ("kind", "repository", "workflow", "email")]
        publisher = " ".join(str(each) for each in named if isinstance(each, str) and each != "unverified")
        for each in bundle.attestations:
            material, envelope = each.verification_material, each.envelope
            signer = _identity(material.certificate) if material else UNREADABLE
            found.append((publisher or signer, _predicate(envelope.statement if envelope else "")))
    return found or [("nobody: it has no attestations", "")]


def _identity(certificate: str) -> str:
    """The first name in a certificate, which is base64 of DER: that of a workflow or of a person."""
    try:
        parsed = x509.load_der_x509_certificate(base64.b64decode(certificate, validate=True))
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [
            *names.get_values_for_type(x509.UniformResourceIdentifier),
            *names.get_values_for_type(x509.RFC822Name),
        ]
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return UNREADABLE
    return found[0] if found else "a certificate without a name"


def _predicate(statement: str) -> str:
    """What an in-toto statement, in base64, is about: its predicate type."""
    try:
        return decode_as(base64.b64decode(statement, validate=True), _Statement, what="the statement").predicateType
    except (Invalid, ValueError):
        return ""


@table.get(
    "/package/<repository>/<package>/versions/<version>/attestations",
    CONTENT_READERS,
    "Show who signed the files of a version",
)
async def list_attestations(call: Call, version: str) -> Attestations:
    """
    From OpenPGP signatures, Sigstore bundles and attestations (PEP 740) that are stored with the files.

    Nothing is verified: by is who the document says has signed. For images, see their referrers.
    """
    _, found = await call.find_version(version)
    documents = await call.catalog.scan(_documents, found.id)
    shared = call.shared
    items = []
    for each in documents[:MOST_DOCUMENTS]:
        if each.size > LARGEST:
            continue
        try:
            data = await shared.files.read(each.storage_id, each.locator, each.size)
        except BlobMissing:
            continue
        items += await shared.pools.cpu(read_attestations, each.path, data)
    return Attestations(items=items, complete=len(documents) <= MOST_DOCUMENTS)


def _documents(r: Reader, version_id: int) -> Sequence[File]:
    return [each for each in list_files_of_version(r, version_id, limit=MOST_FILES) if kind_of(each.path)]
