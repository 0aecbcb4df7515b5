"""Maven builds with the repository that it is configured for on this machine through a proxy, then without it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.client_programs import program
from tests.support.configurations import proxy
from tests.support.maven_clients import MavenBench, MavenRepository
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S
from tests.support.tunnels import Tunnels, require_registry

pytestmark = [pytest.mark.clients, pytest.mark.internet, pytest.mark.timeout(900)]

WANTED = "org.springframework.boot:spring-boot-starter-web:3.3.5"


def configured_repository(folder: Path) -> str:
    """The repository that Maven asks for plugins here, as its complaint about a missing one says."""
    command = [program("mvn"), "-B", f"-Dmaven.repo.local={folder}", "com.example.nonesuch:nonesuch:1:none"]
    asked = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=folder)
    found = re.search(r"in \S+ \((https?://[^\s)]+)\)", asked.stdout)
    if found is None:
        pytest.skip("Maven does not tell which repository it uses")
    require_registry(found[1])
    return found[1]


def build(server: ServerProcess, folder: Path) -> list[str]:
    """Resolve the dependencies of a project with an empty local repository, and return the names of the jars."""
    mirror = MavenRepository(server.url, "main/mirror").url
    bench = MavenBench(folder, mirror, auth=None, plugins=mirror)
    return sorted(bench.dependencies("maven-3.9", WANTED))


def test_build_is_repeated_while_the_repository_is_out_of_reach(tmp_path_factory, monkeypatch):
    url = configured_repository(tmp_path_factory.mktemp("asked"))
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("maven", "mirror", url, cache_ttl='"0"')) as server:
            cold = build(server, tmp_path_factory.mktemp("cold"))
            assert tunnels.hosts  # the repository was reached through them only
            tunnels.cut()
            assert build(server, tmp_path_factory.mktemp("cut")) == cold
    assert len(cold) >= 25
    assert "tomcat-embed-core-10.1.31.jar" in cold
