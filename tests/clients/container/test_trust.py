"""skopeo pulls from a repository that requires signatures, before and after an image is signed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.support.client_programs import client_environment, program, run_client
from tests.support.configurations import hosted, trusting
from tests.support.images import Image, make_image, write_layout
from tests.support.signing import Signer, sign_as_bundle, sign_simply, signature_tag

USER, PASSWORD = "admin", "correct horse battery"


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer()


@pytest.fixture(scope="module")
def configuration(signer: Signer) -> str:
    """A repository that trusts only the signer."""
    return hosted("docker", images=trusting(signer.pem, "allow_tag_overwrite = true"))


class Skopeo:
    """Runs skopeo with its own home, with the admin's credentials or anonymously."""

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self.host = host
        self.environ = client_environment(folder / "home", XDG_RUNTIME_DIR=str(folder / "run"), TMPDIR=str(folder))
        self.policy = folder / "policy.json"
        self.policy.write_text('{"default":[{"type":"insecureAcceptAnything"}]}')

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        command = [program("skopeo"), "--policy", self.policy, *arguments]
        return run_client(command, environ=self.environ, folder=self.folder, status=status).stdout

    def push(self, image: Image, tag: str) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            layout = write_layout(Path(folder), image)
            creds = ("--dest-tls-verify=false", "--dest-creds", f"{USER}:{PASSWORD}")
            name = f"docker://{self.host}/main/images/app:{tag}"
            self("copy", "--preserve-digests", *creds, f"oci:{layout}:v1", name)

    def pull(self, reference: str, *creds: str, status: int | None = 0) -> str:
        """Pull with these options for credentials, or anonymously."""
        who = creds or ("--src-no-creds",)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            name = f"docker://{self.host}/main/images/app{reference}"
            return self("copy", "--src-tls-verify=false", *who, name, f"dir:{folder}/out", status=status)

    def tags(self) -> list[str]:
        name = f"docker://{self.host}/main/images/app"
        return list(json.loads(self("list-tags", "--tls-verify=false", "--no-creds", name))["Tags"])


@pytest.fixture
def skopeo(tmp_path: Path, host: str) -> Skopeo:
    (tmp_path / "run").mkdir()
    return Skopeo(tmp_path, host)


def test_skopeo_pulls_only_what_is_signed(skopeo: Skopeo, signer: Signer) -> None:
    image = make_image("simple")
    skopeo.push(image, "simple")
    for reference in (":simple", f"@{image.digest}"):
        assert "not signed by a trusted key" in skopeo.pull(reference, status=1)
    skopeo.pull(":simple", "--src-creds", f"{USER}:{PASSWORD}")
    assert "simple" not in skopeo.tags()
    skopeo.push(sign_simply(Signer(), image.digest), signature_tag(image.digest))
    assert "not signed by a trusted key" in skopeo.pull(":simple", status=1)
    skopeo.push(sign_simply(signer, image.digest), signature_tag(image.digest))
    for reference in (":simple", f"@{image.digest}"):
        skopeo.pull(reference)
    assert "simple" in skopeo.tags()


def test_skopeo_pulls_the_old_image_until_the_new_one_is_signed(skopeo: Skopeo, signer: Signer) -> None:
    old, new = make_image("old"), make_image("new")

    def shown() -> str:
        name = f"docker://{skopeo.host}/main/images/app:moving"
        return str(json.loads(skopeo("inspect", "--tls-verify=false", "--no-creds", name))["Digest"])

    skopeo.push(old, "moving")
    skopeo.push(sign_simply(signer, old.digest), signature_tag(old.digest))
    assert shown() == old.digest
    skopeo.push(new, "moving")
    assert shown() == old.digest
    skopeo.push(sign_as_bundle(signer, new), "signature")
    assert shown() == new.digest
