"""cargo fetches crates of the registry that it is configured for here through a proxy, then without that registry."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cargo_clients import CargoBench
from tests.support.client_programs import program
from tests.support.configurations import proxy
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S
from tests.support.tunnels import Tunnels, require_registry

pytestmark = [pytest.mark.clients, pytest.mark.internet, pytest.mark.timeout(900)]

WANTED = """
[dependencies]
axum = { version = "0.7", features = ["macros", "multipart", "ws"] }
reqwest = { version = "0.12", default-features = false, features = ["json", "stream", "gzip"] }
clap = { version = "4", features = ["derive"] }
tokio = { version = "1", features = ["full"] }
serde = { version = "1", features = ["derive"] }
tracing-subscriber = { version = "0.3", features = ["env-filter", "json"] }
tower-http = { version = "0.6", features = ["full"] }
handlebars = "5"
"""


def configured_index(folder: Path) -> str:
    """The index that cargo asks here, by the host that it wants to reach; the test is skipped if there is none."""
    place = CargoBench(folder, "http://127.0.0.1").package("asks", more='\n[dependencies]\ncfg-if = "1"\n')
    with Tunnels() as tunnels:
        environ = {**os.environ, "HTTPS_PROXY": tunnels.url, "CARGO_HTTP_PROXY": tunnels.url}
        environ["CARGO_HOME"] = str(folder / "asking")
        command = [str(program("cargo")), "generate-lockfile"]  # which asks the index alone
        subprocess.run(command, cwd=place, env=environ, check=False, capture_output=True, timeout=TIMEOUT_S)
        if not tunnels.hosts:
            pytest.skip("cargo does not tell which registry it uses")
        url = f"https://{min(tunnels.hosts)}"
    require_registry(url)
    return url


def fetch(
    server: ServerProcess, folder: Path, lock: str = "", *, at: str = "", wanted: str = WANTED
) -> tuple[str, int]:
    """Fetch into an empty home; return the lock file, and how many crates were fetched; ``at`` is the end of a view."""
    bench = CargoBench(folder, f"{server.url}/repositories/main/mirror{at}", mirror=True)
    place = bench.package("many", more=wanted)
    if lock:
        (place / "Cargo.lock").write_text(lock)
    bench.run(place, "fetch", *(["--locked"] if lock else []))
    return (place / "Cargo.lock").read_text(), len(list(bench.home.glob("registry/cache/*/*.crate")))


@pytest.mark.shows("proxy", by=("cargo",))
def test_crates_are_fetched_again_while_the_registry_is_out_of_reach(tmp_path_factory, monkeypatch):
    url = configured_index(tmp_path_factory.mktemp("asked"))
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("cargo", "mirror", url, cache_ttl='"0"')) as server:
            lock, cold = fetch(server, tmp_path_factory.mktemp("cold"))
            assert tunnels.hosts  # the index and its files were reached through them only
            tunnels.cut()
            assert fetch(server, tmp_path_factory.mktemp("cut"), lock) == (lock, cold)
    assert cold >= 150


def test_a_view_of_last_year_resolves_what_there_was(tmp_path_factory, monkeypatch):
    url = configured_index(tmp_path_factory.mktemp("asked"))
    with Tunnels() as tunnels:
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with running(tmp_path_factory.mktemp("server"), proxy("cargo", "mirror", url)) as server:
            lock, _ = fetch(
                server, tmp_path_factory.mktemp("then"), at="@2025-06-01", wanted='\n[dependencies]\nserde = "1"\n'
            )
    assert 'name = "serde"\nversion = "1.0.219"' in lock
