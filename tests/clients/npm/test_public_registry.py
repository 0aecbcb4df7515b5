"""npm installs packages of the registry that it is configured for on this machine through a proxy, then without it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.configurations import proxy
from tests.support.npm_clients import NPMS, NodeBench, Registry
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S
from tests.support.tunnels import Tunnels, require_registry

pytestmark = [pytest.mark.clients, pytest.mark.internet, pytest.mark.timeout(900)]

WANTED = ("express@4", "commander@12")


def configured_registry() -> str:
    """The registry of npm's own configuration; the test is skipped if there is none to reach."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on the path")
    command = [npm, "config", "get", "registry"]
    asked = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    url = asked.stdout.strip()
    require_registry(url)
    return url


def install(server: ServerProcess, folder: Path) -> list[str]:
    """Install into an empty project with empty caches, and return what is there."""
    bench = NodeBench(folder, Registry(server.url, "main/mirror"), None)
    place = bench.project("app")
    bench.install(NPMS[-1], place, *WANTED)
    return sorted(json.loads((place / "node_modules" / ".package-lock.json").read_text())["packages"])


def test_install_is_repeated_while_the_registry_is_out_of_reach(tmp_path_factory, monkeypatch):
    url = configured_registry()
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("npm", "mirror", url, cache_ttl='"0"')) as server:
            cold = install(server, tmp_path_factory.mktemp("cold"))
            assert tunnels.hosts  # the registry was reached through them only
            tunnels.cut()
            assert install(server, tmp_path_factory.mktemp("cut")) == cold
    assert len(cold) >= 50
