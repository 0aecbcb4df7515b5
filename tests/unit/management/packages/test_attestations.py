"""Who vouches for files, as the API says it."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from pysequoia import SignatureMode, Tsk, sign

from pkgrepo.management.packages.attestations import MOST_BUNDLES, UNREADABLE, read_attestations
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_bundle, make_manifest, make_publish, make_tarball

WORKFLOW = "https://forge.example/acme/app/.ci/release.yml@refs/tags/v1"


def make_certificate(name: str = WORKFLOW) -> str:
    """A certificate for a workflow, as base64."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer_name=x509.Name([]),
        subject_name=x509.Name([]),
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now,
        not_valid_after=now + timedelta(minutes=10),
    ).add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(name)]), critical=True)
    return base64.b64encode(builder.sign(key, SHA256()).public_bytes(Encoding.DER)).decode()


def statement(kind: str) -> str:
    return base64.b64encode(json.dumps({"predicateType": kind}).encode()).decode()


def signers_named(path: str, document: Any) -> list[tuple[str, str]]:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return [(each.by, each.says) for each in read_attestations(path, data)]


@pytest.mark.parametrize(
    "material",
    [
        {"certificate": {"rawBytes": "CERTIFICATE"}},
        {"x509CertificateChain": {"certificates": [{"rawBytes": "CERTIFICATE"}, {"rawBytes": ""}]}},
    ],
    ids=["certificate", "chain"],
)
def test_a_bundle_names_the_workflow_of_its_certificate(material: Any) -> None:
    text = json.dumps({"verificationMaterial": material, "dsseEnvelope": {"payload": statement("slsa")}})
    text = text.replace("CERTIFICATE", make_certificate())
    assert signers_named("a/-/a-1.tgz.sigstore", text.encode()) == [(WORKFLOW, "slsa")]
    (found,) = read_attestations("a/-/a-1.tgz.sigstore", text.encode())
    assert (found.kind, found.about, found.verified) == ("Sigstore bundle", "a/-/a-1.tgz", False)


def test_a_list_of_bundles_names_each_signer() -> None:
    material = {"certificate": {"rawBytes": make_certificate()}}
    bundle = {"verificationMaterial": material, "messageSignature": {"signature": "x"}}
    path = "gems/a-1.gem.attestations"
    assert signers_named(path, [bundle, {"verificationMaterial": {"publicKey": {"hint": "k1"}}}]) == [
        (WORKFLOW, ""),
        ("key k1", ""),
    ]
    assert {each.about for each in read_attestations(path, json.dumps([bundle]).encode())} == {"gems/a-1.gem"}
    assert signers_named(path, []) == []
    assert signers_named(path, {}) == [(UNREADABLE, "")]


def test_a_bundle_made_with_a_key_names_its_hint() -> None:
    document = {"verificationMaterial": {"publicKey": {"hint": "k1"}}, "dsseEnvelope": {"payload": "%"}}
    assert signers_named("a.jar.sigstore.json", document) == [("key k1", "")]
    assert signers_named("a.jar.sigstore.json", {}) == [("a key that it does not name", "")]
    assert read_attestations("a.jar.sigstore.json", b"{}")[0].about == "a.jar"


def test_a_provenance_document_names_publishers_or_those_in_certificates() -> None:
    attestation = {
        "verification_material": {"certificate": make_certificate()},
        "envelope": {"statement": statement("publish")},
    }
    bundles = [
        {"publisher": {"kind": "Forge", "repository": "acme/app", "claims": {}}, "attestations": [attestation]},
        {"publisher": {"kind": "unverified"}, "attestations": [attestation]},
    ]
    path = "a.whl.provenance"
    assert signers_named(path, {"attestation_bundles": bundles}) == [
        ("Forge acme/app", "publish"),
        (WORKFLOW, "publish"),
    ]
    assert signers_named(path, {"attestation_bundles": []}) == [("nobody: it has no attestations", "")]
    many = {"attestation_bundles": [{"attestations": [attestation] * 50}]}
    assert len(signers_named(path, many)) == MOST_BUNDLES


def test_an_openpgp_signature_names_its_key() -> None:
    first, second = Tsk.generate("A <a@x.example>"), Tsk.generate("B <b@x.example>")
    names = [
        signers_named("a.jar.asc", sign(key.signer(), data, mode=SignatureMode.DETACHED))
        for key, data in ((first, b"1"), (first, b"2"), (second, b"1"))
    ]
    assert names[0] == names[1] != names[2]
    assert re.fullmatch("key ([0-9a-f]{40}|[0-9a-f]{16})", names[0][0][0])


@pytest.mark.parametrize("path", ["a.asc", "a.sigstore", "a.provenance"])
@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\xff", b"[]", b'{"attestation_bundles": 5, "verificationMaterial": []}', b"[" * 60_000, b"," * 60_000],
    ids=["empty", "binary", "list", "wrong", "deep", "many"],
)
def test_what_cannot_be_read_says_so(path: str, data: bytes) -> None:
    assert signers_named(path, data) == [(UNREADABLE, "")]


async def test_a_version_names_maintainers_requirements_and_who_vouches(stack: Stack) -> None:
    await stack.add_repository("js", format="npm")
    fields: dict[str, Any] = {"author": {"name": "Ada"}, "dependencies": {"dep": "^1", "gone": "*"}}
    for name, version, more in (("dep", "1.0.0", {}), ("app", "2.0.0", fields)):
        tarball = make_tarball(name, version, manifest=make_manifest(name, version, **more))
        bundle = make_bundle(name, version, tarball) if more else None
        body = make_publish(name, version, tarball=tarball, bundle=bundle, **more)
        json_type = {"Content-Type": "application/json"}
        reply = await stack.call("PUT", f"/repositories/main/js/{name}", raw=body, headers=json_type)
        assert reply.status == 201, reply.body
    shown = await stack.ok("GET", "/package/main%2Fjs/app/versions/2.0.0")
    assert shown["maintainers"] == ["admin", "Ada"]
    assert [(each["name"], each["package"]) for each in shown["requirements"]] == [("dep", "dep"), ("gone", None)]
    found = await stack.ok("GET", "/package/main%2Fjs/app/versions/2.0.0/attestations")
    assert [(each["by"], each["says"]) for each in found["items"]] == [
        ("a key that it does not name", "https://slsa.dev/provenance/v1")
    ]
    assert (await stack.ok("GET", "/package/main%2Fjs/dep/versions/1.0.0/attestations"))["items"] == []
