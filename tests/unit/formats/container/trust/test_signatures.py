"""Verification of signatures in both forms, with each kind of key."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pkgrepo.formats.container.documents import MOST_LAYERS
from pkgrepo.formats.container.trust.signatures import (
    BUNDLE,
    SIMPLE,
    SignatureLayer,
    find_signature_layers,
    find_signers,
)
from pkgrepo.untrusted.public_keys import encode_dsse, parse_key
from tests.support.images import make_image
from tests.support.signing import Signer, b64, envelope_for, payload_for, sign_as_bundle, sign_simply

KINDS = ("ecdsa", "ed25519", "rsa", "rsa-pss")
DIGEST = make_image("one").digest
OTHER = make_image("two").digest


@pytest.fixture(scope="module", params=KINDS)
def signer(request: pytest.FixtureRequest) -> Signer:
    return Signer(request.param)


def simple(signer: Signer, digest: str, payload: bytes | None = None, **annotations: str) -> SignatureLayer:
    data = payload_for(digest) if payload is None else payload
    signature = b64(signer.sign(data))
    return SignatureLayer(SIMPLE, data, {"dev.cosignproject.cosign/signature": signature, **annotations})


def bundle(envelope: Any) -> SignatureLayer:
    return SignatureLayer(BUNDLE, json.dumps({"dsseEnvelope": envelope}).encode(), {})


def test_a_simple_signature_counts_for_its_key_alone(signer: Signer) -> None:
    mine, other = parse_key(signer.pem), parse_key(Signer().pem)
    assert find_signers(DIGEST, [simple(signer, DIGEST)], [other, mine]) == {mine.id}


def test_a_bundle_counts_for_its_key_alone(signer: Signer) -> None:
    mine, other = parse_key(signer.pem), parse_key(Signer().pem)
    assert find_signers(DIGEST, [bundle(envelope_for(signer, DIGEST))], [other, mine]) == {mine.id}


def test_a_signature_of_another_image_does_not_count(signer: Signer) -> None:
    candidates = [simple(signer, OTHER), bundle(envelope_for(signer, OTHER))]
    assert not find_signers(DIGEST, candidates, [parse_key(signer.pem)])


def test_a_changed_payload_does_not_count(signer: Signer) -> None:
    signed = simple(signer, OTHER)
    changed = SignatureLayer(SIMPLE, payload_for(DIGEST), signed.annotations)
    envelope = envelope_for(signer, OTHER)
    swapped = {**envelope, "payload": envelope_for(signer, DIGEST)["payload"]}
    assert not find_signers(DIGEST, [changed, bundle(swapped)], [parse_key(signer.pem)])


def test_payloads_of_other_types_do_not_count() -> None:
    signer = Signer()
    candidates = [
        simple(signer, DIGEST, payload_for(DIGEST, kind="atomic container signature")),
        simple(signer, DIGEST, payload_for(DIGEST.upper())),
        simple(signer, DIGEST, b"[]"),
        bundle(envelope_for(signer, DIGEST, predicate="https://slsa.dev/provenance/v1")),
        bundle(envelope_for(signer, DIGEST, kind="application/json")),
    ]
    assert not find_signers(DIGEST, candidates, [parse_key(signer.pem)])


def test_older_spellings_of_the_payload_count() -> None:
    signer = Signer()
    critical = {
        "Identity": {},
        "Image": {"Docker-manifest-digest": DIGEST},
        "Type": "cosign container image signature",
    }
    payload = json.dumps({"Critical": critical, "Optional": {}}).encode()
    assert find_signers(DIGEST, [simple(signer, DIGEST, payload)], [parse_key(signer.pem)])


def test_every_signature_of_an_envelope_is_looked_at_in_either_alphabet() -> None:
    first, second = Signer(), Signer("ed25519")
    envelope = envelope_for(first, DIGEST)
    other = envelope_for(second, DIGEST)["signatures"][0]["sig"]
    urlsafe = base64.urlsafe_b64encode(base64.b64decode(other)).decode()
    envelope["signatures"] += [None, {"sig": "*"}, {"sig": urlsafe}]
    keys = [parse_key(first.pem), parse_key(second.pem)]
    assert find_signers(DIGEST, [bundle(envelope)], keys) == {key.id for key in keys}


@pytest.mark.parametrize(
    "candidate",
    [
        SignatureLayer(SIMPLE, payload_for(DIGEST), {}),
        SignatureLayer(SIMPLE, payload_for(DIGEST), {"dev.cosignproject.cosign/signature": "not base64!"}),
        SignatureLayer(SIMPLE, payload_for(DIGEST), {"dev.cosignproject.cosign/signature": 7}),
        SignatureLayer(SIMPLE, b"\xff", {"dev.cosignproject.cosign/signature": "AAAA"}),
        SignatureLayer(SIMPLE, b"[" * 100_000, {"dev.cosignproject.cosign/signature": "AAAA"}),
        SignatureLayer(SIMPLE, b'{"critical": [], "image": 1}', {"dev.cosignproject.cosign/signature": "AAAA"}),
        bundle(None),
        bundle([]),
        bundle({"payloadType": "application/vnd.in-toto+json", "payload": 1, "signatures": []}),
        bundle({"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": {}}),
        bundle({"payloadType": "application/vnd.in-toto+json", "payload": b64(b'{"subject": [1, {}]}')}),
        SignatureLayer("text/plain", b"", {}),
    ],
)
def test_malformed_signatures_do_not_count(candidate: SignatureLayer) -> None:
    assert find_signers(DIGEST, [candidate], [parse_key(Signer().pem)]) == frozenset()


def test_the_pre_authentication_encoding_is_that_of_the_specification() -> None:
    # the example of DSSE 1.0, "Test Vectors"
    assert encode_dsse("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_layers_with_signatures_are_found_in_both_forms() -> None:
    signer, image = Signer(), make_image("one")
    for signature in (sign_simply(signer, image.digest), sign_as_bundle(signer, image)):
        assert [each[1] for each in find_signature_layers(signature.manifest)]


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b'{"layers": 1}', b'{"layers": [1, {"mediaType": 2}]}'])
def test_manifests_without_signatures_have_no_such_layers(manifest: bytes) -> None:
    assert not list(find_signature_layers(manifest))


def test_the_number_of_layers_is_limited() -> None:
    layer = {"mediaType": SIMPLE, "digest": DIGEST, "size": 1}
    assert len(list(find_signature_layers(json.dumps({"layers": [layer] * 100}).encode()))) == MOST_LAYERS


def test_the_number_of_verifications_is_limited() -> None:
    signer, other = Signer(), parse_key(Signer().pem)
    mine = parse_key(signer.pem)
    false = [simple(Signer(), DIGEST)] * 5
    assert not find_signers(DIGEST, [*false, simple(signer, DIGEST)], [other, mine], most=11)
    assert find_signers(DIGEST, [*false, simple(signer, DIGEST)], [other, mine], most=12) == {mine.id}
