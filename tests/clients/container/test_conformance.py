"""
The conformance suite of the OCI distribution specification.

bin/test builds it if Go's module proxy has it; ``PKGREPO_OCI_CONFORMANCE`` may be the path of another build.
Without either the tests are skipped, even if ``PKGREPO_REQUIRE_CLIENTS`` is 1, because nothing can install it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import CLIENTS, client_environment
from tests.support.configurations import config, hosted, virtual
from tests.support.container_clients import ADMIN, host_of, push_image
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_artifact, make_image, make_index
from tests.support.server_process import ServerProcess, running

SUITE_S = 300  # seconds; a timeout for a suite that hangs
CONFIG = '[container]\nping = "open"\n' + hosted(
    "docker", images=config(push_rules="allow_tag_overwrite = true", policy="allow_sparse = true")
)
# Tests that the suite skips by default.
SWITCHES = (
    "OCI_API_BLOBS_DIGEST_HEADER",
    "OCI_API_MANIFESTS_DIGEST_HEADER",
    "OCI_API_BLOBS_UPLOAD_CANCEL",
    "OCI_API_MANIFESTS_TAG_PARAM",
    "OCI_DATA_SPARSE",
)
# Tests that need write permission, and the two of the digest header, which need content that the suite pushed.
NOT_FOR_NOBODY = (
    "OCI_API_BLOBS_DIGEST_HEADER",
    "OCI_API_MANIFESTS_DIGEST_HEADER",
    "OCI_API_PUSH",
    "OCI_API_BLOBS_DELETE",
    "OCI_API_MANIFESTS_DELETE",
    "OCI_API_TAGS_DELETE",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A new server for each run of the suite."""
    with running(tmp_path, CONFIG) as process:
        yield process


def suite() -> str:
    """Return the path of the suite's program, or skip the test."""
    built = CLIENTS / "conformance"
    if named := os.environ.get("PKGREPO_OCI_CONFORMANCE"):
        return named
    if (built / ".installed").exists():
        return str(built / "bin" / "conformance")
    log = built / "build.log"
    reason = log.read_text().strip() if log.exists() else "bin/test did not build it"
    pytest.skip(f"PKGREPO_OCI_CONFORMANCE is not set, and {reason}")


def counts_of(server: ServerProcess, folder: Path, **variables: str) -> Counter[str]:
    """How often the suite came to each verdict; any failure or error fails the test with what the suite wrote."""
    settings = {
        "OCI_REGISTRY": host_of(server),
        "OCI_TLS": "disabled",
        "OCI_REPO1": "main/images/one",
        "OCI_REPO2": "main/images/two",
        "OCI_VERSION": "1.1",
        "OCI_LOG": "error",
        "OCI_RESULTS_DIR": str(folder / "results"),
        **dict.fromkeys(SWITCHES, "true"),
        **variables,
    }
    result = subprocess.run(
        [suite()],
        env=client_environment(folder / "home", **settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SUITE_S,
        check=False,
    )
    found = re.findall(r"^ *(\w+)\.{3,}: +(\d+)$", result.stdout, re.MULTILINE)
    counts = Counter({name: int(count) for name, count in found})
    assert counts["FAIL"] == counts["Error"] == counts["Skip"] == 0, result.stdout
    assert result.returncode != 1, result.stderr  # 2: the suite crashes when it writes the results of disabled tests
    return counts


def test_the_whole_suite_passes_with_credentials(server: ServerProcess, tmp_path: Path) -> None:
    counts = counts_of(server, tmp_path, OCI_USERNAME=ADMIN[0], OCI_PASSWORD=ADMIN[1])
    assert counts["Disabled"] == 0
    assert counts["Pass"] > 1000


def test_the_whole_suite_passes_through_a_virtual_repository(tmp_path: Path) -> None:
    rules = config(push_rules="allow_tag_overwrite = true", policy="allow_sparse = true")
    text = '[container]\nping = "open"\n' + hosted("docker", "base", own=rules)
    text += virtual("docker", "all", "main/base", "main/own", publish_to="main/own")
    with running(tmp_path, text) as server:
        names = {"OCI_REPO1": "main/all/one", "OCI_REPO2": "main/all/two"}
        counts = counts_of(server, tmp_path, OCI_USERNAME=ADMIN[0], OCI_PASSWORD=ADMIN[1], **names)
    assert counts["Disabled"] == 0
    assert counts["Pass"] > 1000


def test_the_read_tests_of_the_suite_pass_without_credentials(server: ServerProcess, tmp_path: Path) -> None:
    wire, image = HttpClient(server.url, ADMIN), make_image()
    children: list[Image] = [make_image(each, architecture=each) for each in ("amd64", "arm64")]
    index, artifact = make_index(children), make_artifact(image, "application/vnd.example.report")
    for each in (*children, artifact):
        push_image(wire, "main/images/one", each)
    push_image(wire, "main/images/one", image, "image")
    push_image(wire, "main/images/one", index, "index")
    counts = counts_of(
        server,
        tmp_path,
        OCI_RO_DATA_TAGS="image index",
        OCI_RO_DATA_MANIFESTS=" ".join(each.digest for each in (image, index, artifact, *children)),
        OCI_RO_DATA_BLOBS=" ".join(digest_of(blob) for blob in image.blobs),
        OCI_RO_DATA_REFERRERS=image.digest,
        **dict.fromkeys(NOT_FOR_NOBODY, "false"),
    )
    assert counts["Pass"] > 20
