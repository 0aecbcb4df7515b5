"""
The conformance suite of the OCI distribution specification, where this machine has it.

It is a program of its own: the variable ``PKGREPO_OCI_CONFORMANCE`` names it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.clients import client_environment
from tests.support.processes import twistd_process

PASSWORD = "correct horse battery"
CONFIG = """
[[bootstrap.repositories]]
name = "images"
format = "docker"
config = { type = "Hosted", push_rules = { allow_tag_overwrite = true }, policy = { allow_sparse = true } }
"""
# What the suite leaves out unless it is told.
SWITCHES = (
    "OCI_API_BLOBS_DIGEST_HEADER",
    "OCI_API_MANIFESTS_DIGEST_HEADER",
    "OCI_API_BLOBS_UPLOAD_CANCEL",
    "OCI_API_MANIFESTS_TAG_PARAM",
    "OCI_DATA_SPARSE",
)


def test_the_suite_passes_whole(tmp_path: Path) -> None:
    suite = os.environ.get("PKGREPO_OCI_CONFORMANCE")
    if not suite:
        pytest.skip("PKGREPO_OCI_CONFORMANCE names no program")
    (tmp_path / "pkgrepo.toml").write_text(CONFIG)
    process = twistd_process(tmp_path, "--config", str(tmp_path / "pkgrepo.toml"))
    try:
        variables = {
            "OCI_REGISTRY": urlsplit(process.url).netloc,
            "OCI_TLS": "disabled",
            "OCI_REPO1": "main/images/one",
            "OCI_REPO2": "main/images/two",
            "OCI_USERNAME": "admin",
            "OCI_PASSWORD": PASSWORD,
            "OCI_VERSION": "1.1",
            "OCI_LOG": "error",
            "OCI_RESULTS_DIR": str(tmp_path / "results"),
            **dict.fromkeys(SWITCHES, "true"),
        }
        result = subprocess.run(
            [suite],
            env=client_environment(tmp_path / "home", **variables),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    finally:
        process.stop()
    counts = {name: int(count) for name, count in re.findall(r"^ *(\w+)\.{3,}: +(\d+)$", result.stdout, re.MULTILINE)}
    assert counts["FAIL"] == counts["Error"] == counts["Skip"] == counts["Disabled"] == 0, result.stdout
    assert counts["Pass"] > 1000
    assert result.returncode == 0
    assert "Traceback" not in process.output, process.output
