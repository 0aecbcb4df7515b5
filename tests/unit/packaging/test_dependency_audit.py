"""The pinned dependencies, compared with small exports of advisories."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.packaging import dependency_audit
from pkgrepo.packaging.dependency_audit import ACCEPTED, audit
from pkgrepo.packaging.tree import REQUIREMENTS
from tests.support.osv_records import MINIMIST, PY, REQUESTS, SAMPLES, affected, record, since, write_folder, write_zip

DAY_MS = 86_400_000
PINNED = "Requests==2.30.0 \\\n    --hash=sha256:00\npy==1.12.0\n"


def found(export: Path, requirements: str = PINNED, *, days: int = 0, accepted: Sequence[str] = ()) -> list[str]:
    now_ms = time.time_ns() // 1_000_000 + days * DAY_MS
    return list(audit(export, requirements, now_ms, dict.fromkeys(accepted, "tests only")))


@pytest.mark.parametrize("write", [write_folder, write_zip])
def test_a_pinned_version_with_a_known_vulnerability_is_named_with_the_version_that_corrects_it(
    tmp_path: Path, write: Any
) -> None:
    sentence = "Requests 2.30.0: {} ({}), fixed in 2.31.0: "
    assert [each.partition(": ")[0] + ": " + each.partition(": ")[2].partition(": ")[0] + ": " for each in
            found(write(tmp_path / "export", SAMPLES))] == [
        sentence.format("GHSA-j8r2-6x86-q33q", "moderate"), sentence.format("PYSEC-2023-74", "unknown")
    ]  # fmt: skip
    assert found(tmp_path / "export", "requests==2.31.0\npy==1.12.0\n") == []
    [each] = found(tmp_path / "export", "py==1.11.0\n")
    assert each.startswith("py 1.11.0: PYSEC-2022-42969 (unknown), fixed in no version: ")


def test_an_advisory_that_is_accepted_by_name_does_not_count(tmp_path: Path) -> None:
    export = write_folder(tmp_path, [REQUESTS, PY])
    assert len(found(export)) == 1
    assert found(export, accepted=["GHSA-j8r2-6x86-q33q"]) == []
    assert all(ACCEPTED.values())


def test_what_cannot_be_said_is_no_success(tmp_path: Path) -> None:
    export = write_folder(tmp_path / "of-npm", [MINIMIST])
    assert found(export) == [f"{export} has no record of PyPI, so that nothing was compared"]
    export = write_folder(tmp_path / "of-pypi", [PY])
    assert found(export, days=6) == []
    [each] = found(export, days=8)
    assert "too old to say" in each
    (export / "PyPI" / "BAD.json").write_text("{")
    [each] = found(export)
    assert each.startswith("BAD cannot be read: ")
    for number in range(20):
        (export / "PyPI" / f"BAD-{number}.json").write_text("{")
    assert found(export)[-1] == "11 more records cannot be read"
    with pytest.raises(Invalid):
        found(export, "")


@pytest.mark.parametrize(("fixed", "status"), [("999", 1), ("0.0.1", 0)])
def test_the_command_fails_if_a_dependency_of_this_project_is_affected(tmp_path: Path, fixed: str, status: int) -> None:
    assert "twisted==" in REQUIREMENTS.read_text("ascii")
    export = write_zip(tmp_path / "all.zip", [record("GHSA-x", affected("PyPI", "Twisted", *since("0", fixed)))])
    command = [sys.executable, "-m", dependency_audit.__name__, str(export)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert (ended.returncode, "twisted " in ended.stdout, "audit: failed" in ended.stderr) == (status, status, status)
    assert "dependencies were compared with 1 records of " in ended.stderr
