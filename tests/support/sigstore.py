"""A Sigstore of the test: a certificate authority, a certificate log and a transparency log, and what they sign."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from pkgrepo.sigstore.roots import TrustedRoot, read_trusted_root
from pkgrepo.untrusted.public_keys import encode_dsse
from tests.support.fulcio import IN_TOTO, extensions_of

ISSUER = "https://issuer.example"
NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
SLSA = "https://slsa.dev/provenance/v1"
PUBLISH = "https://docs.pypi.example/attestations/publish/v1"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_SCTS = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_spki(key)).digest()


def _sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(SHA256()))


def _octets(data: bytes) -> bytes:
    """An OCTET STRING in DER."""
    length = bytes([len(data)]) if len(data) < 128 else bytes([0x81, len(data)])
    return b"\x04" + length + data


def npm_statement(name: str, version: str, tarball: bytes, kind: str = SLSA) -> dict[str, Any]:
    """What npm signs of a tarball."""
    subject = {"name": f"pkg:npm/{name.replace('@', '%40')}@{version}", "digest": {"sha512": _hex(tarball, "sha512")}}
    return {"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": kind, "predicate": {}}


def file_statement(filename: str, data: bytes, kind: str = PUBLISH) -> dict[str, Any]:
    """What is signed of a distribution (PEP 740)."""
    subject = {"name": filename, "digest": {"sha256": _hex(data, "sha256")}}
    return {"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": kind, "predicate": None}


def _hex(data: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, data).hexdigest()


@frozen(eq=False)
class FakeSigstore:
    """It signs at ``at``, with certificates that name a pipeline of L{tests.support.issuer}."""

    at: datetime = NOW
    authority_key: ec.EllipticCurvePrivateKey = field(factory=_key)
    log_key: ec.EllipticCurvePrivateKey = field(factory=_key)
    certificates_key: ec.EllipticCurvePrivateKey = field(factory=_key)

    @cached_property
    def authority(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        usage = x509.KeyUsage(
            *(False, False, False, False, False), key_cert_sign=True, crl_sign=True, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        builder = x509.CertificateBuilder(
            issuer_name=name,
            subject_name=name,
            public_key=self.authority_key.public_key(),
            serial_number=1,
            not_valid_before=self.at - timedelta(days=365),
            not_valid_after=self.at + timedelta(days=365),
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return builder.add_extension(usage, critical=True).sign(self.authority_key, SHA256())

    @cached_property
    def root_text(self) -> bytes:
        """The trusted root, as a file has it."""

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            return {"publicKey": {"rawBytes": b64(_spki(key))}, "logId": {"keyId": b64(_id(key))}}

        authority = {"certChain": {"certificates": [{"rawBytes": b64(self.authority.public_bytes(Encoding.DER))}]}}
        root = {
            "tlogs": [log(self.log_key)],
            "certificateAuthorities": [authority],
            "ctlogs": [log(self.certificates_key)],
        }
        return json.dumps(root).encode()

    @property
    def root(self) -> TrustedRoot:
        return read_trusted_root(self.root_text)

    def certificate(
        self,
        key: ec.EllipticCurvePrivateKey,
        *,
        extensions: Mapping[int, str] | None = None,
        email: str = "",
        purpose: ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING,
        logged: bool = True,
    ) -> x509.Certificate:
        """A certificate for a key, valid for 10 minutes."""
        texts = extensions_of(ISSUER) if extensions is None else extensions
        name: x509.GeneralName = x509.UniformResourceIdentifier(texts.get(18, "urn:nothing"))
        usage = x509.KeyUsage(
            *(True, False, False, False, False), key_cert_sign=False, crl_sign=False, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        builder = x509.CertificateBuilder(
            issuer_name=self.authority.subject,
            subject_name=x509.Name([]),
            public_key=key.public_key(),
            serial_number=2,
            not_valid_before=self.at - timedelta(minutes=1),
            not_valid_after=self.at + timedelta(minutes=9),
        )
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        names = [x509.RFC822Name(email) if email else name]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
        for number, text in texts.items():
            data = text.encode()
            data = bytes([0x0C, len(data)]) + data if number > 6 else data
            oid = ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, data), critical=False)
        if not logged:
            return builder.sign(self.authority_key, SHA256())
        body = builder.sign(self.authority_key, SHA256()).tbs_certificate_bytes
        stamped = x509.UnrecognizedExtension(_SCTS, _octets(self._stamps(body)))
        return builder.add_extension(stamped, critical=False).sign(self.authority_key, SHA256())

    def _stamps(self, body: bytes) -> bytes:
        """The list of one timestamp of the certificate log (RFC 6962 section 3.3)."""
        at_ms = round(self.at.timestamp() * 1000).to_bytes(8)
        signed = (
            b"\x00\x00" + at_ms + b"\x00\x01" + _id(self.authority_key) + len(body).to_bytes(3) + body + b"\x00\x00"
        )
        signature = _sign(self.certificates_key, signed)
        head = b"\x00" + _id(self.certificates_key) + at_ms + b"\x00\x00" + b"\x04\x03"
        stamp = head + len(signature).to_bytes(2) + signature
        return (len(stamp) + 2).to_bytes(2) + len(stamp).to_bytes(2) + stamp

    def parts(self, statement: Mapping[str, Any], **certificate: Any) -> dict[str, Any]:
        """A signed statement: payload, signature and certificate in base64, and the entry of the log."""
        key, payload = _key(), json.dumps(statement).encode()
        leaf = self.certificate(key, **certificate)
        signature = _sign(key, encode_dsse(IN_TOTO, payload))
        body = {
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                "signatures": [{"signature": b64(signature), "verifier": b64(leaf.public_bytes(Encoding.PEM))}],
            },
        }
        der = leaf.public_bytes(Encoding.DER)
        entry = self.entry(json.dumps(body).encode())
        return {"payload": b64(payload), "signature": b64(signature), "certificate": b64(der), "entry": entry}

    def message_bundle(self, data: bytes, **certificate: Any) -> dict[str, Any]:
        """A Sigstore bundle with a signature over the bytes of a file, as ``sigstore-cli`` makes it for gems."""
        key = _key()
        leaf = self.certificate(key, **certificate)
        signature, digest = _sign(key, data), hashlib.sha256(data)
        pem = b64(leaf.public_bytes(Encoding.PEM))
        spec = {
            "data": {"hash": {"algorithm": "sha256", "value": digest.hexdigest()}},
            "signature": {"content": b64(signature), "publicKey": {"content": pem}},
        }
        body = {"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}
        return {
            "mediaType": BUNDLE,
            "verificationMaterial": {
                "certificate": {"rawBytes": b64(leaf.public_bytes(Encoding.DER))},
                "tlogEntries": [self.entry(json.dumps(body).encode())],
            },
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": b64(digest.digest())},
                "signature": b64(signature),
            },
        }

    def gem(self, data: bytes, **certificate: Any) -> bytes:
        """The document of the attestations of a gem."""
        return json.dumps([self.message_bundle(data, **certificate)]).encode()

    def entry(self, body: bytes) -> dict[str, Any]:
        """An entry of the log, which is the second of two."""
        at_s, log_id = round(self.at.timestamp()), _id(self.log_key)
        said = {"body": b64(body), "integratedTime": at_s, "logID": log_id.hex(), "logIndex": 7}
        promise = _sign(self.log_key, json.dumps(said, separators=(",", ":")).encode())
        other = hashlib.sha256(b"\x00other").digest()
        root = hashlib.sha256(b"\x01" + other + hashlib.sha256(b"\x00" + body).digest()).digest()
        note = f"log.example - 1\n2\n{b64(root)}\n"
        signed = b64(log_id[:4] + _sign(self.log_key, note.encode()))
        return {
            "logIndex": "7",
            "logId": {"keyId": b64(log_id)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(at_s),
            "inclusionPromise": {"signedEntryTimestamp": b64(promise)},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": b64(root),
                "treeSize": "2",
                "hashes": [b64(other)],
                "checkpoint": {"envelope": f"{note}\n\u2014 log.example {signed}\n"},
            },
            "canonicalizedBody": b64(body),
        }

    def bundle(self, statement: Mapping[str, Any], **certificate: Any) -> dict[str, Any]:
        """A Sigstore bundle."""
        made = self.parts(statement, **certificate)
        return {
            "mediaType": BUNDLE,
            "verificationMaterial": {
                "certificate": {"rawBytes": made["certificate"]},
                "tlogEntries": [made["entry"]],
            },
            "dsseEnvelope": {
                "payload": made["payload"],
                "payloadType": IN_TOTO,
                "signatures": [{"sig": made["signature"], "keyid": ""}],
            },
        }

    def npm(self, name: str, version: str, tarball: bytes, **certificate: Any) -> dict[str, Any]:
        """The document of the attestations of a version, as a registry has it."""
        bundle = self.bundle(npm_statement(name, version, tarball), **certificate)
        publish = {"predicateType": "https://registry.example/publish/v0.1", "bundle": {"verificationMaterial": {}}}
        return {"attestations": [publish, {"predicateType": SLSA, "bundle": bundle}]}

    def attestation(self, filename: str, data: bytes, **certificate: Any) -> dict[str, Any]:
        """An attestation of a distribution."""
        made = self.parts(file_statement(filename, data), **certificate)
        return {
            "version": 1,
            "verification_material": {"certificate": made["certificate"], "transparency_entries": [made["entry"]]},
            "envelope": {"statement": made["payload"], "signature": made["signature"]},
        }

    def python(self, filename: str, data: bytes, **certificate: Any) -> dict[str, Any]:
        """The provenance document of a distribution, as an index has it."""
        publisher = {"kind": "GitHub", "repository": "acme/widget", "workflow": "release.yml"}
        bundle = {"publisher": publisher, "attestations": [self.attestation(filename, data, **certificate)]}
        return {"version": 1, "attestation_bundles": [bundle]}
