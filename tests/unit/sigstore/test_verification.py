"""Statements that are verified, and those that are not: of the public instance, and of one of the test."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.provenance import verify_provenance as verify_npm
from pkgrepo.formats.python.provenance import verify_provenance as verify_python
from pkgrepo.formats.rubygems.provenance import verify_provenance as verify_gem
from pkgrepo.repositories.attestations import AttestedFile
from pkgrepo.sigstore.bundles import read_bundle
from pkgrepo.sigstore.roots import TrustedRoot, public_root, read_trusted_root
from pkgrepo.sigstore.verification import verify
from pkgrepo.storage.catalog.file_facts import Attested
from tests.support.fulcio import extensions_of
from tests.support.sigstore import BUNDLE, ISSUER, NOW, FakeSigstore, b64, npm_statement

DATA = Path(__file__).parents[2] / "data/sigstore"
NPM = (DATA / "npm-sigstore-2.0.0.sigstore.json").read_bytes()
TARBALL = AttestedFile(
    "sigstore",
    "2.0.0",
    "sigstore/-/sigstore-2.0.0.tgz",
    {
        "sha512": "46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1"
        "e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c"
    },
)
PYTHON = (DATA / "pypi_attestations-0.0.19.tar.gz.provenance").read_bytes()
SLSA = (DATA / "pypi_attestations-0.0.19.tar.gz.slsa.attestation").read_bytes()
GITLAB = (DATA / "gitlab_oidc_project-0.0.3.tar.gz.publish.attestation").read_bytes()
SDIST = AttestedFile(
    "pypi-attestations",
    "0.0.19",
    "pypi-attestations/0.0.19/pypi_attestations-0.0.19.tar.gz",
    {"sha256": "9bb1add04b1b4e182be6b0b80931593f7a291eb49d69b4fd728a5d4cbcdc4bd3"},
)
FAKE = FakeSigstore()
DATA_OF_TEST = b"a tarball"


def file_of(data: bytes = DATA_OF_TEST, name: str = "@acme/widget", version: str = "1.0.0") -> AttestedFile:
    statement = npm_statement(name, version, data)
    return AttestedFile(name, version, f"{name}/-/widget-{version}.tgz", statement["subject"][0]["digest"])


def provenance(*attestations: bytes, **publisher: Any) -> bytes:
    bundle = {"publisher": publisher, "attestations": [json.loads(each) for each in attestations]}
    return json.dumps({"version": 1, "attestation_bundles": [bundle]}).encode()


def test_provenance_of_the_public_registries_is_verified() -> None:
    found = verify_npm(NPM, TARBALL, public_root())
    assert found.verified
    assert found.issuer == "https://token.actions.githubusercontent.com"
    assert found.repository == "https://github.com/sigstore/sigstore-js"
    assert found.workflow.endswith("/.github/workflows/release.yml@refs/heads/main")
    assert (found.ref, found.commit) == ("refs/heads/main", "f0b49a04e5a62250e0f60fb128004a73110fe311")
    document = {"attestations": [{"predicateType": "https://slsa.dev/provenance/v1", "bundle": json.loads(NPM)}]}
    assert verify_npm(json.dumps(document).encode(), TARBALL, public_root()) == found
    for each in (PYTHON, provenance(SLSA)):
        found = verify_python(each, SDIST, public_root())
        assert found.repository == "https://github.com/trailofbits/pypi-attestations"
        assert found.ref == "refs/tags/v0.0.19"
    statement = json.loads(base64.b64decode(json.loads(GITLAB)["envelope"]["statement"]))
    name, digests = statement["subject"][0]["name"], statement["subject"][0]["digest"]
    file = AttestedFile("gitlab-oidc-project", "0.0.3", f"gitlab-oidc-project/0.0.3/{name}", digests)
    assert verify_python(provenance(GITLAB), file, public_root()).issuer == "https://gitlab.com"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (AttestedFile("sigstore", "2.0.0", TARBALL.path, {"sha512": "0" * 128}), "a file with other bytes"),
        (AttestedFile("sigstore", "2.0.0", TARBALL.path, {"sha1": "0" * 40}), "no digest of a kind that is known"),
        (AttestedFile("sigstore", "2.0.1", TARBALL.path, TARBALL.digests), "is about 'pkg:npm/sigstore@2.0.0'"),
        (AttestedFile("@evil/sigstore", "2.0.0", TARBALL.path, TARBALL.digests), "is about 'pkg:npm/sigstore@2.0.0'"),
    ],
)
def test_provenance_of_another_file_is_none(file: AttestedFile, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        verify_npm(NPM, file, public_root())


def test_each_byte_that_is_signed_counts() -> None:
    """One bit of each byte of the certificate, the payload, the signature and the entry of the log, in turn."""
    bundle = json.loads(NPM)
    material, envelope = bundle["verificationMaterial"], bundle["dsseEnvelope"]
    entry = material["tlogEntries"][0]
    places: list[tuple[dict[str, Any], str, int]] = [
        (material["x509CertificateChain"]["certificates"][0], "rawBytes", 13),
        (envelope, "payload", 29),
        (envelope["signatures"][0], "sig", 3),
        (entry, "canonicalizedBody", 101),
        (entry["inclusionPromise"], "signedEntryTimestamp", 3),
        (entry["inclusionProof"], "rootHash", 3),
        (entry["logId"], "keyId", 3),
    ]
    tried = 0
    for holder, key, step in places:
        kept = holder[key]
        data = base64.b64decode(kept)
        for place in range(0, len(data), step):
            changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            holder[key] = b64(changed)
            with pytest.raises(Invalid):
                verify_npm(json.dumps(bundle).encode(), TARBALL, public_root())
            tried += 1
        holder[key] = kept
    for key in ("integratedTime", "logIndex"):
        kept, entry[key] = entry[key], str(int(entry[key]) + 1)
        with pytest.raises(Invalid):
            verify_npm(json.dumps(bundle).encode(), TARBALL, public_root())
        entry[key] = kept
    assert tried > 250
    assert verify_npm(json.dumps(bundle).encode(), TARBALL, public_root()).verified


def made(change: Callable[[dict[str, Any]], None] = lambda _: None, **certificate: Any) -> bytes:
    bundle = FAKE.bundle(npm_statement("@acme/widget", "1.0.0", DATA_OF_TEST), **certificate)
    change(bundle)
    return json.dumps(bundle).encode()


def entry_of(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["verificationMaterial"]["tlogEntries"][0]
    return found


def test_what_the_sigstore_of_the_test_signs_is_verified() -> None:
    assert verify_npm(made(), file_of(), FAKE.root) == Attested(
        root=FAKE.root.id,
        verified=True,
        predicate_type="https://slsa.dev/provenance/v1",
        signer="https://forge.example/acme/widget/.github/workflows/release.yml@refs/tags/v1",
        issuer=ISSUER,
        repository="https://forge.example/acme/widget",
        workflow="https://forge.example/acme/widget/.github/workflows/release.yml@refs/tags/v1",
        commit="c0ffee" * 6 + "c0ff",
    )


def without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(bundle: dict[str, Any]) -> None:
        place = entry_of(bundle)
        for each in path[:-1]:
            place = place[each]
        del place[path[-1]]

    return change


def other_payload_type(bundle: dict[str, Any]) -> None:
    bundle["dsseEnvelope"]["payloadType"] = "text/plain"


def two_entries(bundle: dict[str, Any]) -> None:
    bundle["verificationMaterial"]["tlogEntries"] *= 2


def other_entry(bundle: dict[str, Any]) -> None:
    other = FAKE.bundle(npm_statement("@acme/widget", "1.0.0", DATA_OF_TEST))
    bundle["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"]


def other_signature(bundle: dict[str, Any]) -> None:
    bundle["dsseEnvelope"]["signatures"] *= 2


def other_kind(bundle: dict[str, Any]) -> None:
    bundle["mediaType"] = BUNDLE.replace("v0.3", "v9")


def key_alone(bundle: dict[str, Any]) -> None:
    bundle["verificationMaterial"] = {
        "publicKey": {"hint": "k"},
        "tlogEntries": bundle["verificationMaterial"]["tlogEntries"],
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_payload_type, "what is signed is no statement"),
        (two_entries, "has 2 entries of a transparency log"),
        (other_entry, "about another signature"),
        (other_signature, "has 2 signatures"),
        (other_kind, "of a kind that is not known"),
        (key_alone, "no certificate"),
        (without("inclusionPromise"), "neither the transparency log nor an authority has signed the time"),
        (without("inclusionProof"), "no proof"),
        (without("inclusionProof", "checkpoint"), "has not signed the proof"),
        (without("logId"), "cannot be read"),
    ],
)
def test_a_bundle_without_a_part_is_not_verified(change: Callable[[dict[str, Any]], None], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        verify_npm(made(change), file_of(), FAKE.root)


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        ({"logged": False}, "no timestamp of a certificate log"),
        ({"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "not one for signing code"),
        ({"extensions": {8: ISSUER}, "email": "a@acme.example"}, "signed by 'a@acme.example', and not by a pipeline"),
    ],
)
def test_a_certificate_for_something_else_is_not_verified(certificate: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        verify_npm(made(**certificate), file_of(), FAKE.root)


def root_with(**changes: Any) -> bytes:
    root = json.loads(FAKE.root_text)
    for path, period in changes.items():
        holder = root[path][0]
        (holder if path == "certificateAuthorities" else holder["publicKey"])["validFor"] = period
    return json.dumps(root).encode()


BEFORE = {"start": "2020-01-01T00:00:00Z", "end": (NOW - timedelta(days=1)).isoformat()}


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (public_root(), "transparency log that is not trusted"),
        (read_trusted_root(root_with(tlogs=BEFORE)), "transparency log that is not trusted"),
        (read_trusted_root(root_with(certificateAuthorities=BEFORE)), "no certificate authority"),
        (read_trusted_root(root_with(ctlogs=BEFORE)), "no certificate log"),
    ],
)
def test_what_the_trusted_root_does_not_have_is_not_verified(root: Any, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        verify_npm(made(), file_of(), root)


def test_a_certificate_that_had_ended_is_not_verified() -> None:
    late = FakeSigstore(NOW + timedelta(minutes=10), FAKE.authority_key, FAKE.log_key, FAKE.certificates_key)
    bundle = FAKE.bundle(npm_statement("@acme/widget", "1.0.0", DATA_OF_TEST))
    body = base64.b64decode(entry_of(bundle)["canonicalizedBody"])
    bundle["verificationMaterial"]["tlogEntries"] = [late.entry(body)]
    with pytest.raises(Invalid, match="was not valid at 2026-09-01 12:10:00 UTC"):
        verify_npm(json.dumps(bundle).encode(), file_of(), FAKE.root)


def test_a_document_has_one_provenance() -> None:
    bundle = json.loads(made())
    other = {"predicateType": "https://registry.example/publish/v0.1", "bundle": bundle}
    one = {"predicateType": "https://slsa.dev/provenance/v1", "bundle": bundle}
    root = FAKE.root
    assert verify_npm(json.dumps({"attestations": [other, one]}).encode(), file_of(), root).verified
    for found, count in (([other], 0), ([one, one], 2)):
        with pytest.raises(Invalid, match=f"{count} statements of provenance"):
            verify_npm(json.dumps({"attestations": found}).encode(), file_of(), root)


def test_every_attestation_of_a_distribution_is_verified() -> None:
    name, data = "widget-1.0.tar.gz", b"sources"
    file = AttestedFile("widget", "1.0", f"widget/1.0/{name}", {"sha256": sha256(data).hexdigest()})
    document = FAKE.python(name, data)
    assert verify_python(json.dumps(document).encode(), file, FAKE.root).verified
    document["attestation_bundles"][0]["attestations"].append(FAKE.attestation("widget-1.1.tar.gz", data))
    with pytest.raises(Invalid, match=r"is about 'widget-1\.1\.tar\.gz'"):
        verify_python(json.dumps(document).encode(), file, FAKE.root)
    document = FAKE.python(name, data, extensions=extensions_of(ISSUER, _12="https://forge.example/evil/widget"))
    with pytest.raises(Invalid, match="the index names the source 'acme/widget'"):
        verify_python(json.dumps(document).encode(), file, FAKE.root)
    with pytest.raises(Invalid, match="no attestation"):
        verify_python(b'{"attestation_bundles":[]}', file, FAKE.root)


@pytest.mark.parametrize("verify", [verify_npm, verify_python, verify_gem])
@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{}", b"{" * 5000, b'{"attestations":7}', b"x" * 2_000_000],
    ids=["empty", "list", "null", "object", "deep", "number", "too-large"],
)
def test_what_is_no_document_is_not_verified(verify: Any, data: bytes) -> None:
    with pytest.raises(Invalid):
        verify(data, TARBALL, public_root())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data(), value=values)
@settings(max_examples=300, deadline=None)
def test_whatever_stands_in_a_document_it_is_verified_or_refused(data: st.DataObject, value: Any) -> None:
    bundle = json.loads(NPM)
    holder: Any = bundle
    while True:
        key = data.draw(st.sampled_from([*holder] if isinstance(holder, dict) else range(len(holder))))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        holder = inner
    holder[key] = value
    try:
        found = verify_npm(json.dumps(bundle).encode(), TARBALL, public_root())
    except Invalid:
        return
    assert found.repository == "https://github.com/sigstore/sigstore-js"


@given(st.integers(0, len(PYTHON) - 1), st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_a_document_with_another_byte_is_verified_or_refused(place: int, byte: int) -> None:
    changed = PYTHON[:place] + bytes([byte]) + PYTHON[place + 1 :]
    try:
        found = verify_python(changed, SDIST, public_root())
    except Invalid:
        return
    assert found.repository == "https://github.com/trailofbits/pypi-attestations"


STAGING = (DATA / "staging-rekor-2.sigstore.json").read_bytes()
STAGED = "a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf"


def verify_staged(bundle: Any, root: TrustedRoot | None = None) -> str:
    """Verify a bundle with an entry of Rekor 2. Returns the issuer of the signer."""
    root = root or read_trusted_root((DATA / "staging-trusted_root.json").read_bytes())
    found = verify(read_bundle(json.dumps(bundle).encode()), root, {"sha256": STAGED}, "a.txt".__eq__)
    return found.signer.says(8)


def stamp_of(bundle: Any) -> dict[str, str]:
    found: dict[str, str] = bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]
    return found


def test_an_entry_of_rekor_2_is_dated_by_a_timestamp_authority() -> None:
    bundle = json.loads(STAGING)
    assert verify_staged(bundle) == "https://token.actions.githubusercontent.com"
    root = json.loads((DATA / "staging-trusted_root.json").read_bytes())
    without_authority = read_trusted_root(json.dumps({**root, "timestampAuthorities": []}).encode())
    with pytest.raises(Invalid, match="no timestamp authority that is trusted"):
        verify_staged(bundle, without_authority)
    for change, why in ((b"", "cannot be read"), (b"x" * 20_000, "has more than")):
        stamp_of(bundle)["signedTimestamp"] = b64(change)
        with pytest.raises(Invalid, match=why):
            verify_staged(bundle)
    del bundle["verificationMaterial"]["timestampVerificationData"]
    with pytest.raises(Invalid, match="neither the transparency log nor an authority"):
        verify_staged(bundle)


def test_each_byte_of_a_timestamp_and_of_an_entry_of_rekor_2_counts() -> None:
    bundle = json.loads(STAGING)
    entry = bundle["verificationMaterial"]["tlogEntries"][0]
    passed: dict[str, list[int]] = {"signedTimestamp": [], "canonicalizedBody": []}
    for holder, key, step in ((stamp_of(bundle), "signedTimestamp", 1), (entry, "canonicalizedBody", 31)):
        kept = holder[key]
        data = base64.b64decode(kept)
        for place in range(0, len(data), step):
            holder[key] = b64(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with suppress(Invalid):
                verify_staged(bundle)
                passed[key].append(place)
        holder[key] = kept
    assert passed["canonicalizedBody"] == []
    # The time, the signed attributes and the signature; versions and who the signer says it is are not read.
    counting = {*range(69, 236), *range(345, 600), *range(612, 717)}
    assert counting.isdisjoint(passed["signedTimestamp"])


@given(st.binary(max_size=200) | st.integers(0, 716).flatmap(lambda at: st.tuples(st.just(at), st.binary(max_size=9))))
@settings(max_examples=300, deadline=None)
def test_whatever_a_timestamp_is_it_is_read_or_refused(change: bytes | tuple[int, bytes]) -> None:
    bundle = json.loads(STAGING)
    stamp = stamp_of(bundle)
    data = base64.b64decode(stamp["signedTimestamp"])
    if isinstance(change, tuple):
        place, inserted = change
        change = data[:place] + inserted + data[place + len(inserted) :]
    stamp["signedTimestamp"] = b64(change)
    with suppress(Invalid):
        verify_staged(bundle)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", FAKE.root_text.replace(b"tlogs", b"logs"), b" " * 2_000_000],
    ids=["empty", "object", "list", "without-logs", "too-large"],
)
def test_what_is_no_trusted_root_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        read_trusted_root(data)


GEM = (DATA / "sigstore-1.0.0.gem").read_bytes()
BUNDLE_OF_GEM = (DATA / "sigstore-1.0.0.gem.sigstore.json").read_bytes()


def gem_of(data: bytes = GEM) -> AttestedFile:
    return AttestedFile("sigstore", "1.0.0", "gems/sigstore-1.0.0.gem", {"sha256": sha256(data).hexdigest()})


def test_the_signature_over_a_gem_of_the_public_instance_is_verified() -> None:
    found = verify_gem(b"[" + BUNDLE_OF_GEM + b"]", gem_of(), public_root())
    beacon = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon"
    assert (found.repository, found.ref) == (beacon, "refs/heads/main")
    assert found.issuer == "https://token.actions.githubusercontent.com"
    assert found.workflow == f"{beacon}/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
    with pytest.raises(Invalid, match="a file with other bytes"):
        verify_gem(b"[" + BUNDLE_OF_GEM + b"]", gem_of(GEM + b"x"), public_root())
    with pytest.raises(Invalid, match="has not one statement"):
        read_bundle(BUNDLE_OF_GEM)


def test_each_byte_of_a_signature_over_a_gem_counts() -> None:
    bundle = json.loads(BUNDLE_OF_GEM)
    entry = bundle["verificationMaterial"]["tlogEntries"][0]
    places = [
        (bundle["verificationMaterial"]["certificate"], "rawBytes", 13),
        (bundle["messageSignature"], "signature", 1),
        (entry, "canonicalizedBody", 31),
    ]
    tried = 0
    for holder, key, step in places:
        kept = holder[key]
        data = base64.b64decode(kept)
        for place in range(0, len(data), step):
            holder[key] = b64(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(Invalid):
                verify_gem(json.dumps([bundle]).encode(), gem_of(), public_root())
            tried += 1
        holder[key] = kept
    assert tried > 200


def statement_of_gem(data: bytes) -> dict[str, Any]:
    """A statement about a gem and another file, which it names as the pipeline calls them."""
    digests = [sha256(each).hexdigest() for each in (b"another", data)]
    subjects = [{"name": f"pkg/{number}.gem", "digest": {"sha256": each}} for number, each in enumerate(digests)]
    kind = "https://slsa.dev/provenance/v1"
    return {"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": kind, "predicate": {}}


def test_gems_have_signatures_and_statements_and_all_are_verified() -> None:
    data, root = b"a gem", FAKE.root
    signature, statement = FAKE.message_bundle(data), FAKE.bundle(statement_of_gem(data))
    for each in ([signature], [statement], [statement, signature]):
        found = verify_gem(json.dumps(each).encode(), gem_of(data), root)
        assert (found.verified, found.repository) == (True, "https://forge.example/acme/widget")
    for wrong, why in (
        (FAKE.message_bundle(b"other"), "a file with other bytes"),
        (FAKE.bundle(statement_of_gem(b"other")), "a file with other bytes"),
        (FAKE.message_bundle(data, extensions={8: ISSUER}, email="a@acme.example"), "not by a pipeline"),
        (FakeSigstore().message_bundle(data), "transparency log that is not trusted"),
        ({**signature, "dsseEnvelope": statement["dsseEnvelope"]}, "has not one statement"),
        ({**statement, "dsseEnvelope": None, "messageSignature": signature["messageSignature"]}, "a statement"),
        ({**signature, "messageSignature": None, "dsseEnvelope": statement["dsseEnvelope"]}, "another statement"),
    ):
        with pytest.raises(Invalid, match=why):
            verify_gem(json.dumps([signature, wrong]).encode(), gem_of(data), root)
    with pytest.raises(Invalid, match="has no attestation"):
        verify_gem(b"[]", gem_of(data), root)
    with pytest.raises(Invalid, match="does not tell the SHA-256"):
        verify_gem(json.dumps([signature]).encode(), AttestedFile("a", "1", "gems/a-1.gem", {}), root)


def test_a_signature_of_another_key_over_a_gem_is_not_verified() -> None:
    """All is in the log, and signed by it: only the key of the certificate is another one."""
    bundle, other = FAKE.message_bundle(b"a gem"), FAKE.message_bundle(b"a gem")
    body = json.loads(base64.b64decode(entry_of(bundle)["canonicalizedBody"]))
    body["spec"]["signature"]["content"] = other["messageSignature"]["signature"]
    bundle["messageSignature"]["signature"] = other["messageSignature"]["signature"]
    bundle["verificationMaterial"]["tlogEntries"] = [FAKE.entry(json.dumps(body).encode())]
    with pytest.raises(Invalid, match="not that of the certificate over these bytes"):
        verify_gem(json.dumps([bundle]).encode(), gem_of(b"a gem"), FAKE.root)
