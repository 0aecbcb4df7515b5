"""
Shows who signed or attested the files of a version, as the documents beside them say: OpenPGP signatures (RFC 9580),
Sigstore bundles, also several in one document (gems), provenance documents (PEP 740).

The provenance of formats that have any (``attests``) is verified. Of what is not kept, such as that of an upstream,
it is shown what rules have found. Other documents are shown as they are, and what cannot be read says so.
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
from pkgrepo.repositories.attestations import AttestedFile, Attests
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.storage.catalog.file_facts import Attested, attested_name, facts_of_package, strong_names
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
    ".attestations": "Sigstore bundles",
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


def read_attestations(path: str, data: bytes, found: Attested | None = None) -> list[AttestationRecord]:
    """
    Who attests a file, and what, by the document at a path, of which was ``found`` whether it is verified.

    Takes some milliseconds.
    """
    kind = kind_of(path) or ""
    try:
        check_value_count(data, MOST_VALUES, path)
        match kind:
            case "OpenPGP signature":
                said = [(_signer(data), "")]
            case "Sigstore bundle":
                said = [_bundle(decode_as(data, _Bundle, what="the bundle"))]
            case "Sigstore bundles":
                said = [_bundle(each) for each in decode_as(data, list[_Bundle], what="the list of bundles")]
            case _:
                said = _provenance(decode_as(data, _Provenance, what="the provenance"))
    except (Invalid, ValueError):
        said = [(UNREADABLE, "")]
    about = subject_of(path)
    return [
        AttestationRecord(kind=kind, path=path, about=about, by=by[:LONGEST], says=says[:LONGEST], **_of(found))
        for by, says in said[:MOST_BUNDLES]
    ]


def _of(found: Attested | None) -> dict[str, Any]:
    """The fields that tell whether an attestation is verified, and of whom."""
    if found is None:
        return {"verified": False}
    return {
        "verified": found.verified,
        "why": found.why[:LONGEST],
        "issuer": found.issuer,
        "source": found.repository,
        "workflow": found.workflow,
        "ref": found.ref,
        "commit": found.commit,
    }


def _verify(attests: Attests, data: bytes, file: AttestedFile, root: TrustedRoot) -> Attested:
    """What an attestation is found to be. Blocks for some milliseconds."""
    try:
        return attests.verify(data, file, root)
    except Invalid as error:
        return Attested(root=root.id, why=str(error))


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

    Provenance of npm, Python and gems is verified; of what comes from an upstream, as far as a rule has asked for it.
    Of all others by is who the document says has signed. For images, see their referrers.
    """
    package, found = await call.find_version(version)
    every = {each.path: each for each in await call.catalog.scan(_files, found.id)}
    documents = [each for each in every.values() if kind_of(each.path)]
    shared, attests = call.shared, call.format.attests
    items = []
    for each in documents[:MOST_DOCUMENTS]:
        if each.size > LARGEST:
            continue
        try:
            data = await shared.files.read(each.storage_id, each.locator, each.size)
        except BlobMissing:
            continue
        about, told = every.get(subject_of(each.path)), None
        if attests is not None and about is not None and each.path == about.path + attests.suffix:
            file = AttestedFile(package.key, found.text, about.path, {**about.digests, "sha256": about.sha256})
            told = await shared.pools.cpu(_verify, attests, data, file, shared.proxy.trusted_root)
        items += await shared.pools.cpu(read_attestations, each.path, data, told)
    if attests is not None:
        read = {each.about for each in items}
        files = [each for each in every.values() if each.role is None and each.path not in read]
        items += await call.catalog.scan(_noted, call.format, package.key, files[:MOST_DOCUMENTS])
    return Attestations(items=items, complete=len(documents) <= MOST_DOCUMENTS)


def _files(r: Reader, version_id: int) -> Sequence[File]:
    return list_files_of_version(r, version_id, limit=MOST_FILES)


def _noted(r: Reader, format_: StoredFormat, package: str, files: Sequence[File]) -> list[AttestationRecord]:
    """What rules have found of the attestations of files that are kept without them."""
    _, known = facts_of_package(r, format_.name, package)
    records = []
    for each in files:
        names = (attested_name(name, each.path) for name in strong_names({**each.digests, "sha256": each.sha256}))
        found = next((fact.attested for fact in map(known.get, names) if fact is not None and fact.attested), None)
        if found is not None:
            record = AttestationRecord(
                kind="attestation",
                path=each.path,
                about=each.path,
                by=found.signer or "unknown",
                says=found.predicate_type,
                **_of(found),
            )
            records.append(record)
    return records
