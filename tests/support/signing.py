"""Makes signatures of images in cosign's formats, with new keys."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.images import EMPTY, OCI_CONFIG, OCI_IMAGE, Image, describe

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
SIGNED = "https://sigstore.dev/cosign/sign/v1"
IN_TOTO = "application/vnd.in-toto+json"


class Signer:
    """A key pair: ``ecdsa``, ``ed25519``, ``rsa`` (PKCS 1.5) or ``rsa-pss``."""

    def __init__(self, kind: str = "ecdsa") -> None:
        self.kind = kind
        self.private: Any
        if kind == "ecdsa":
            self.private = ec.generate_private_key(ec.SECP256R1())
        elif kind == "ed25519":
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = rsa.generate_private_key(65537, 2048)

    @property
    def pem(self) -> str:
        """The public key in PEM."""
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, data: bytes) -> bytes:
        if self.kind == "ecdsa":
            return bytes(self.private.sign(data, ec.ECDSA(SHA256())))
        if self.kind == "ed25519":
            return bytes(self.private.sign(data))
        pss = padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH)
        return bytes(self.private.sign(data, pss if self.kind == "rsa-pss" else padding.PKCS1v15(), SHA256()))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def payload_for(digest: str, kind: str = "cosign container image signature") -> bytes:
    """Return the document that cosign's simple signing format signs."""
    critical = {"identity": {"docker-reference": ""}, "image": {"docker-manifest-digest": digest}, "type": kind}
    return json.dumps({"critical": critical, "optional": None}).encode()


def sign_simply(signer: Signer, digest: str, *, payload: bytes | None = None) -> Image:
    """Return a signature in the simple signing format, to be pushed with the tag ``signature_tag(digest)``."""
    data = payload_for(digest) if payload is None else payload
    annotations = {"dev.cosignproject.cosign/signature": b64(signer.sign(data))}
    config = b'{"architecture":"","os":"","config":{},"rootfs":{"type":"layers","diff_ids":[]}}'
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "config": describe(config, OCI_CONFIG),
        "layers": [describe(data, SIMPLE, annotations=annotations)],
    }
    return Image(json.dumps(value).encode(), (config, data))


def sign_as_referrer(signer: Signer, subject: Image) -> Image:
    """Return a signature in the simple signing format as cosign 2 pushes it with OCI 1.1: a referrer without a tag."""
    tagged = sign_simply(signer, subject.digest)
    value = json.loads(tagged.manifest)
    value["config"]["mediaType"] = "application/vnd.dev.cosign.artifact.sig.v1+json"
    return Image(json.dumps({**value, "subject": subject.descriptor}).encode(), tagged.blobs)


def signature_tag(digest: str) -> str:
    return digest.replace(":", "-") + ".sig"


def envelope_for(signer: Signer, digest: str, *, predicate: str = SIGNED, kind: str = IN_TOTO) -> dict[str, Any]:
    """Return a DSSE envelope with an in-toto statement about a digest."""
    algorithm, _, text = digest.partition(":")
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "", "digest": {algorithm: text}}],
        "predicateType": predicate,
        "predicate": {},
    }
    payload = json.dumps(statement).encode()
    encoded = b" ".join((b"DSSEv1", b"%d" % len(kind), kind.encode(), b"%d" % len(payload), payload))
    return {"payload": b64(payload), "payloadType": kind, "signatures": [{"sig": b64(signer.sign(encoded))}]}


def sign_as_bundle(
    signer: Signer, subject: Image, *, digest: str = "", media_type: str = BUNDLE, **statement: str
) -> Image:
    """
    Return a signature as cosign 3 pushes it: a referrer with a bundle, in the version of its ``media_type``.

    ``digest`` replaces the subject's digest.
    """
    envelope = envelope_for(signer, digest or subject.digest, **statement)
    bundle = {
        "mediaType": media_type,
        "verificationMaterial": {"publicKey": {"hint": "a hint"}},
        "dsseEnvelope": envelope,
    }
    data = json.dumps(bundle).encode()
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "artifactType": media_type,
        "config": describe(EMPTY, "application/vnd.oci.empty.v1+json"),
        "layers": [describe(data, media_type)],
        "subject": subject.descriptor,
        "annotations": {
            "dev.sigstore.bundle.content": "dsse-envelope",
            "dev.sigstore.bundle.predicateType": SIGNED,
        },
    }
    return Image(json.dumps(value).encode(), (EMPTY, data))
