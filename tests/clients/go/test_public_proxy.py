"""The go command gets a program of many modules from the module proxy of this machine through ours, then without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.configurations import proxy
from tests.support.go_clients import GoBench, configured_proxy
from tests.support.server_process import running
from tests.support.tunnels import Tunnels, require_registry

pytestmark = [pytest.mark.clients, pytest.mark.internet, pytest.mark.timeout(900)]

PROGRAM = "github.com/distribution/distribution/v3/cmd/registry@v3.1.1"


ONE = "github.com/pkg/errors@v0.9.1"


def verified(bench: GoBench) -> str:
    """One module, whose hash the checksum database tells."""
    return bench.go("mod", "download", "-json", ONE).partition('"Sum"')[2]


def download(bench: GoBench) -> list[str]:
    """All modules of the program; returns the lines of go.sum."""
    bench.go("mod", "download", "all")
    assert "all modules verified" in bench.go("mod", "verify")
    return sorted(bench.sums)


def test_a_program_is_downloaded_and_verified_while_the_proxy_is_out_of_reach(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, database = configured_proxy()
    require_registry(url)
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("go", "mirror", url, cache_ttl='"0"')) as server:
            settings = {"GONOSUMDB": "", "GOSUMDB": database}
            address = f"{server.url}/repositories/main/mirror"
            first, second, third = (GoBench(tmp_path / name, address, settings) for name in ("cold", "one", "cut"))
            first.go("get", PROGRAM)
            cold, one = download(first), verified(second)
            assert tunnels.hosts  # the proxy and the database were reached through them only
            tunnels.cut()
            assert verified(GoBench(tmp_path / "again", address, settings)) == one
            for name in ("go.mod", "go.sum"):
                shutil.copy(first.place / name, third.place)
            assert download(third) == cold
    assert len({each.partition(" ")[0] for each in cold}) >= 100


def test_a_view_of_last_year_has_the_newest_version_of_then(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = configured_proxy()
    require_registry(url)
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("go", "mirror", url)) as server:
            bench = GoBench(tmp_path, f"{server.url}/repositories/main/mirror@2025-06-01")
            bench.go("get", "golang.org/x/text@latest")
    assert "golang.org/x/text v0.25.0" in (bench.place / "go.mod").read_text()
