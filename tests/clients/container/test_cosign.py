"""cosign with keys: images that it signs, in both formats, can be pulled from a repository that requires signatures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted, trusting
from tests.support.container_clients import ADMIN, ContainerClients, host_of, push_image
from tests.support.http_client import HttpClient
from tests.support.images import Image, make_image, make_index
from tests.support.server_process import ServerProcess
from tests.support.signing import BUNDLE, signature_tag

ROOT_OF_TRUST = '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}'
HTTP = ("--allow-http-registry", "--allow-insecure-registry")
FORMS = pytest.mark.parametrize("form", ["simple", "bundle", "referrer"])  # the last: simple signing as OCI 1.1 does
REFERRER = "application/vnd.dev.cosign.artifact.sig.v1+json"
UNTRUSTED = "not signed by a trusted key"


class Cosign(ContainerClients):
    """Runs cosign with the keys in a folder."""

    def __init__(self, folder: Path, host: str, keys: Path) -> None:
        super().__init__(folder, host)
        self.environ["COSIGN_PASSWORD"] = "a password"
        self.environ["COSIGN_EXPERIMENTAL"] = "1"  # else it does not write signatures as OCI 1.1 does
        self.keys = keys

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.run("cosign", *arguments, status=status)

    def make_key(self, name: str) -> None:
        self("generate-key-pair", "--output-key-prefix", self.keys / name)

    def sign(self, key: str, reference: str, form: str, *options: str) -> None:
        new = str(form == "bundle").lower()
        self(
            "sign",
            f"--key={self.keys / key}.key",
            "--yes",
            "--tlog-upload=false",
            "--use-signing-config=false",
            f"--new-bundle-format={new}",
            *(("--registry-referrers-mode=oci-1-1",) if form == "referrer" else ()),
            *HTTP,
            *options,
            f"{self.host}/{reference}",
        )

    def verify(self, key: str, reference: str, form: str, status: int | None = 0) -> str:
        # Without a local root of trust cosign downloads one, even to verify with a key.
        (self.folder / "root.json").write_text(ROOT_OF_TRUST)
        new = str(form == "bundle").lower()
        options = (
            "--insecure-ignore-tlog",
            f"--trusted-root={self.folder / 'root.json'}",
            f"--new-bundle-format={new}",
            *(("--experimental-oci11",) if form == "referrer" else ()),
        )
        return self(
            "verify", f"--key={self.keys / key}.pub", *options, *HTTP, f"{self.host}/{reference}", status=status
        )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the key pairs ``ours`` and ``theirs``."""
    folder = tmp_path_factory.mktemp("keys")
    cosign = Cosign(folder, "", folder)
    for name in ("ours", "theirs"):
        cosign.make_key(name)
    return folder


@pytest.fixture(scope="module")
def configuration(keys: Path) -> str:
    """A repository that trusts one of the keys, and a public one."""
    return hosted("docker", "open", signed=trusting((keys / "ours.pub").read_text()))


@pytest.fixture
def cosign(tmp_path: Path, server: ServerProcess, keys: Path) -> Cosign:
    """cosign, logged in as the admin."""
    made = Cosign(tmp_path, host_of(server), keys)
    made.log_in(*ADMIN)
    return made


def is_served(wire: HttpClient, name: str, image: Image, tag: str) -> bool:
    """Whether anonymous clients can pull the image, both by its digest and by its tag."""
    replies = [wire.as_user().get(f"/v2/{name}/manifests/{reference}") for reference in (image.digest, tag)]
    for reply in replies:
        assert reply.status == 200 or (reply.status == 404 and UNTRUSTED in reply.text)
    assert replies[0].status == replies[1].status
    return replies[0].status == 200


@pytest.mark.shows("provenance", by=("cosign",))
@FORMS
def test_an_image_signed_by_cosign_is_served(cosign: Cosign, wire: HttpClient, form: str) -> None:
    name, image = f"main/signed/{form}", make_image(form)
    push_image(wire, name, image, "v1")
    assert not is_served(wire, name, image, "v1")
    cosign.sign("theirs", f"{name}@{image.digest}", form)
    assert not is_served(wire, name, image, "v1")
    cosign.verify("theirs", f"{name}:v1", form)
    cosign.sign("ours", f"{name}@{image.digest}", form)
    assert is_served(wire, name, image, "v1")
    cosign.log_out()
    if form != "referrer":  # of those cosign looks at one alone
        assert image.digest in cosign.verify("ours", f"{name}:v1", form)
        cosign.verify("theirs", f"{name}:v1", form)


@FORMS
def test_only_the_signing_key_verifies_a_signature(cosign: Cosign, wire: HttpClient, form: str) -> None:
    name, image = f"main/open/{form}", make_image(form)
    push_image(wire, name, image, "v1")
    missing = {"bundle": "no valid bundles exist"}
    assert missing.get(form, "no signatures found") in cosign.verify("ours", f"{name}:v1", form, status=None)
    cosign.sign("ours", f"{name}@{image.digest}", form, "-a", "by=ada")
    cosign.log_out()
    cosign.verify("ours", f"{name}:v1", form)
    wrong = {"bundle": "could not verify envelope", "referrer": "no signatures found"}  # it looks for tags last
    assert wrong.get(form, "no matching signatures") in cosign.verify("theirs", f"{name}:v1", form, status=None)
    if form == "simple":
        assert signature_tag(image.digest) in wire.get(f"/v2/{name}/tags/list").json["tags"]
    else:
        listed = wire.get(f"/v2/{name}/referrers/{image.digest}").json["manifests"]
        assert [each["artifactType"] for each in listed] == [BUNDLE if form == "bundle" else REFERRER]
        assert wire.get(f"/v2/{name}/tags/list").json["tags"] == ["v1"]


@FORMS
def test_signing_an_index_covers_its_images(cosign: Cosign, wire: HttpClient, form: str) -> None:
    name = f"main/signed/index-{form}"
    children = [make_image(f"{form} {each}", architecture=each) for each in ("amd64", "arm64")]
    index = make_index(children)
    for child in children:
        push_image(wire, name, child)
    push_image(wire, name, index, "all")
    assert not is_served(wire, name, index, "all")
    cosign.sign("ours", f"{name}@{index.digest}", form)
    assert is_served(wire, name, index, "all")
    for child in children:
        assert wire.as_user().get(f"/v2/{name}/manifests/{child.digest}").status == 200


def test_several_keys_sign_the_same_image(cosign: Cosign, wire: HttpClient) -> None:
    name, image = "main/open/several", make_image("several")
    push_image(wire, name, image, "v1")
    for key in ("theirs", "ours"):
        cosign.sign(key, f"{name}@{image.digest}", "simple")
    for key in ("theirs", "ours"):
        cosign.verify(key, f"{name}:v1", "simple")
    assert len(wire.get(f"/v2/{name}/manifests/{signature_tag(image.digest)}").json["layers"]) == 2


def test_attestations_of_an_image_are_found_and_copied(cosign: Cosign, wire: HttpClient) -> None:
    name, image = "main/open/said", make_image("said")
    push_image(wire, name, image, "v1")
    (cosign.folder / "predicate.json").write_text(json.dumps({"made": "here"}))
    attest = (
        "attest",
        f"--key={cosign.keys / 'ours'}.key",
        "--yes",
        "--tlog-upload=false",
        "--use-signing-config=false",
    )
    predicate = ("--predicate=predicate.json", "--type=custom", "--new-bundle-format=false")
    cosign(*attest, *predicate, *HTTP, f"{cosign.host}/{name}@{image.digest}")
    verify = ("verify-attestation", f"--key={cosign.keys / 'ours'}.pub", "--insecure-ignore-tlog", "--type=custom")
    cosign(*verify, "--new-bundle-format=false", *HTTP, f"{cosign.host}/{name}:v1")
    cosign.sign("ours", f"{name}@{image.digest}", "simple")
    cosign("copy", *HTTP, f"{cosign.host}/{name}:v1", f"{cosign.host}/main/signed/said:v1")
    assert is_served(wire, "main/signed/said", image, "v1")
