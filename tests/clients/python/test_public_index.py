"""pip installs packages of the index that it is configured for on this machine through a proxy, then without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.configurations import proxy
from tests.support.python_index import PythonBench, PythonIndex
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S
from tests.support.tunnels import Tunnels, require_registry

pytestmark = [pytest.mark.clients, pytest.mark.internet, pytest.mark.timeout(900)]

WANTED = ("sphinx", "twine", "flask", "pytest", "httpx")


def configured_index() -> str:
    """The index that pip uses here, as its help says; the test is skipped if there is none to reach."""
    command = [sys.executable, "-m", "pip", "install", "--help"]
    wide = {**os.environ, "COLUMNS": "1000"}
    asked = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=wide)
    found = re.search(r"--index-url.*?\(default (https?://[^\s)]+)\)", asked.stdout, re.DOTALL)
    if found is None:
        pytest.skip("pip does not tell which index it uses")
    require_registry(found[1])
    return found[1]


def install(server: ServerProcess, folder: Path) -> list[str]:
    """Install into an empty environment with empty caches, and return what is there."""
    bench = PythonBench(folder)
    python = bench.venv()
    index = PythonIndex(server.url, "main/mirror").simple
    bench.pip(python, "install", "--no-compile", "--only-binary=:all:", "--index-url", index, *WANTED)
    return sorted(bench.pip(python, "freeze", "--all").split())


def test_install_is_repeated_while_the_index_is_out_of_reach(tmp_path_factory, monkeypatch):
    url = configured_index()
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("python", "mirror", url, cache_ttl='"0"')) as server:
            cold = install(server, tmp_path_factory.mktemp("cold"))
            assert tunnels.hosts  # the index and its files were reached through them only
            tunnels.cut()
            assert install(server, tmp_path_factory.mktemp("cut")) == cold
    assert len(cold) >= 40
