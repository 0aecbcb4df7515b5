"""Installation from a wheel into a clean environment, and by bin/serve from a fresh checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.server_process import ROOT, ServerProcess, clean_environment
from tests.support.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


# pip compiles no module of what it installs, which would take half of its time: the programs compile what they import.
UNCOMPILED = {"PIP_NO_COMPILE": "0"}  # the value of pip's option "compile"
ABSENT = "postgresql://user@127.0.0.1:1/name"  # nothing listens there
PARTS = ("pyproject.toml", "README.md", "LICENSE", "bin", "pkgrepo", "twisted")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy this checkout like a fresh clone: only sources, nothing installed, built or cached."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "dropin.cache"))
        else:
            shutil.copy2(ROOT / name, copy)
    return copy


def serve(command: list[str], folder: Path) -> ServerProcess:
    folder.mkdir(exist_ok=True)
    environ = clean_environment(PKGREPO_SERVER__LISTEN="tcp:0:interface=127.0.0.1", **UNCOMPILED)
    return ServerProcess(command, environ=environ, folder=folder)


def assert_serves(server: ServerProcess) -> None:
    try:
        answer = requests.get(server.wait_ready() + "/", timeout=TIMEOUT_S)
        assert answer.headers["Server"].startswith("pkgrepo/")
    finally:
        server.stop()


def test_the_wheel_serves_from_a_clean_environment(checkout, tmp_path):
    wheels, venv = tmp_path / "wheels", tmp_path / "venv"
    # Builds the source distribution, and the wheel from it, so that the test covers both.
    subprocess.run([sys.executable, "-m", "build", "--outdir", wheels, checkout], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", *wheels.glob("*.whl")], check=True, env={**os.environ, **UNCOMPILED})
    units = subprocess.run([venv / "bin" / "pkgrepo", "init", "--systemd"], check=True, capture_output=True, text=True)
    for unit in (ROOT / "pkgrepo" / "systemd").iterdir():
        assert unit.read_text().replace("/opt/pkgrepo", str(venv)) in units.stdout
    (tmp_path / "pkgrepo.toml").write_text('[data]\ndir = "data"\n')
    twistd = [str(venv / "bin" / "twistd"), "--nodaemon", "--pidfile=", "pkgrepo", "--config", "../pkgrepo.toml"]
    assert_serves(serve(twistd, tmp_path / "run"))
    assert (tmp_path / "data").is_dir()
    assert_serves(serve([str(venv / "bin" / "pkgrepo"), "serve"], tmp_path / "run"))


def test_a_fresh_checkout_serves_with_one_command(checkout, tmp_path):
    first = serve([str(checkout / "bin" / "serve")], tmp_path / "run")
    assert_serves(first)
    assert "making a virtual environment" in first.output
    assert (tmp_path / "run" / "data").is_dir()
    second = serve([str(checkout / "bin" / "serve"), "--set", "log.access=false"], tmp_path / "run")
    assert_serves(second)
    assert "installing" not in second.output
    for times in (1, 0):
        third = serve([str(checkout / "bin" / "serve"), "--set", f"database.url={ABSENT}"], tmp_path / "run")
        assert third.wait() == 1
        assert third.output.count("installing pkgrepo with [postgresql]") == times, third.output
        assert "pkgrepo could not start: the database cannot be used" in third.output
