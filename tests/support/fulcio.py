"""Signed statements with certificates such as Fulcio issues them to pipelines, made with a key of the test."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from pkgrepo.untrusted.public_keys import encode_dsse

IN_TOTO = "application/vnd.in-toto+json"
COMMIT = "c0ffee" * 6 + "c0ff"


def extensions_of(issuer: str, **changes: str | None) -> dict[int, str]:
    """The extensions of a certificate of the pipeline that ``tests.support.issuer`` has, with changes."""
    found = {
        1: issuer,
        3: COMMIT,
        5: "acme/widget",
        8: issuer,
        12: "https://forge.example/acme/widget",
        13: COMMIT,
        15: "1234",
        18: "https://forge.example/acme/widget/.github/workflows/release.yml@refs/tags/v1",
    }
    changed = found | {int(name.strip("_")): value for name, value in changes.items()}
    return {number: value for number, value in changed.items() if value is not None}


def sign(payload: bytes, extensions: dict[int, str]) -> tuple[bytes, bytes]:
    """A certificate with these extensions, in DER, and the signature over a statement."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer_name=x509.Name([]),
        subject_name=x509.Name([]),
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now,
        not_valid_after=now + timedelta(minutes=10),
    )
    for number, text in extensions.items():
        data = text.encode()
        if number > 6:
            assert len(data) < 128
            data = bytes([0x0C, len(data)]) + data
        oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
        builder = builder.add_extension(x509.UnrecognizedExtension(oid, data), critical=False)
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.DER)
    return certificate, key.sign(encode_dsse(IN_TOTO, payload), ec.ECDSA(SHA256()))


def sign_bundle(bundle: str, extensions: dict[int, str]) -> str:
    """A provenance bundle of npm, signed."""
    value = json.loads(bundle)
    certificate, signature = sign(base64.b64decode(value["dsseEnvelope"]["payload"]), extensions)
    value["dsseEnvelope"]["signatures"] = [{"sig": base64.b64encode(signature).decode()}]
    value["verificationMaterial"] = {"certificate": {"rawBytes": base64.b64encode(certificate).decode()}}
    return json.dumps(value)


def attest(filename: str, sha256: str, extensions: dict[int, str]) -> dict[str, Any]:
    """An attestation of a Python file (PEP 740), signed."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": filename, "digest": {"sha256": sha256}}],
        "predicateType": "https://docs.pypi.example/attestations/publish/v1",
        "predicate": None,
    }
    payload = json.dumps(statement).encode()
    certificate, signature = sign(payload, extensions)
    encoded = [base64.b64encode(each).decode() for each in (certificate, payload, signature)]
    return {
        "version": 1,
        "verification_material": {"certificate": encoded[0], "transparency_entries": [{"logIndex": "1"}]},
        "envelope": {"statement": encoded[1], "signature": encoded[2]},
    }
