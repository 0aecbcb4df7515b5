"""``pkgrepo export`` has what the caller may read, as the server shows it, and follows the repository."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.client.twins.folder import verify
from pkgrepo.model import TokenKind
from tests.support.configurations import PRIVATE, hosted, tokens, virtual
from tests.support.data_folder import wait_for
from tests.support.forked_programs import run_pkgrepo
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_bundle, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ROOT, clean_environment, running

pytestmark = pytest.mark.server

TOKENS = {name: make_token(TokenKind.CI) for name in ("admin", "reader")}
SCOPES = {"admin": ("*", ["read", "admin"], []), "reader": ("main/npm", ["read"], [])}
CONFIG = hosted("npm", "npm", secret=PRIVATE) + virtual("npm", "all", "main/npm") + tokens(USER, TOKENS, SCOPES)


def test_a_twin_has_what_the_caller_may_read_and_follows(tmp_path: Path) -> None:
    with running(tmp_path, CONFIG) as server:
        npm = HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))
        twin = tmp_path / "twin"

        def command(repository: str, *options: str) -> list[str]:
            place = ["export", repository, str(twin), "--base-url", "http://twin.example/npm", "--url", server.url]
            return [*place, *options]

        def export(repository: str = "main/npm", token: str = "admin", status: int = 0) -> str:
            (tmp_path / "token").write_text(TOKENS[token])
            options = ["--token-file", str(tmp_path / "token")] if token else []
            done = run_pkgrepo(*command(repository, *options), environ=clean_environment(), folder=tmp_path)
            assert done.returncode == status, done
            return done.stdout + done.stderr

        def publish(version: str) -> None:
            bundle = make_bundle("demo", version, make_tarball("demo", version)) if version == "2.0.0" else None
            assert npm.put("/demo", make_publish("demo", version, bundle=bundle)).status == 201

        publish("1.0.0")
        assert "is no address" not in export("main/secret", "reader", 3)
        assert not (twin / ".twin").exists()
        assert "is virtual, and lists no packages: export its members" in export("main/all", status=2)
        shutil.rmtree(twin)
        assert "3 files, of which 3 were written and 0 removed; the list is not signed" in export(token="reader")
        assert verify(twin, None)[1] == ["the list is not signed"]
        assert "3 files, of which 0 were written and 0 removed\n" in export()
        assert verify(twin, None)[1] == []
        assert b'"tarball":"http://twin.example/npm/demo/-/demo-1.0.0.tgz"' in (twin / "demo/index.json").read_bytes()
        publish("2.0.0")
        assert "5 files, of which 3 were written and 0 removed" in export()
        attested = json.loads((twin / "-/npm/v1/attestations/demo@2.0.0").read_bytes())
        assert [each["predicateType"] for each in attested["attestations"]] == ["https://slsa.dev/provenance/v1"]

        (tmp_path / "token").write_text(TOKENS["admin"])
        watching = command("main/npm", "--watch", "--interval", "0.1", "--token-file", str(tmp_path / "token"))
        environ = clean_environment(PYTHONPATH=str(ROOT))
        program = [sys.executable, "-X", "faulthandler", "-c", "from pkgrepo.cli import main; main()", *watching]
        with subprocess.Popen(program, env=environ, cwd=tmp_path, stdout=subprocess.DEVNULL) as child:
            try:
                publish("3.0.0")
                wait_for((twin / "demo/-/demo-3.0.0.tgz").exists, server)
                http = HttpClient(f"{server.url}/api", (USER, PASSWORD))
                assert http.delete("/package/main%2Fnpm/demo/versions/1.0.0").status in (200, 204)
                wait_for(lambda: not (twin / "demo/-/demo-1.0.0.tgz").exists(), server)
            finally:
                child.send_signal(signal.SIGTERM)  # SIGINT is ignored below a shell in the background
                try:
                    child.wait(60)
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGABRT)  # it prints what its threads do
                    raise
        assert verify(twin, None)[1] == []
        assert b"1.0.0" not in (twin / "demo/index.json").read_bytes()


TWINS = """
[twins.node]
repository = "main/npm"
target = "{folder}/twin"
token_file = "{folder}/token"
base_url = "http://twin.example/npm"
every = 1
[twins.anyone]
repository = "main/secret"
target = "{folder}/public"
base_url = "http://twin.example/npm"
"""


def test_the_server_keeps_its_twins_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKENS["admin"])
    twin = tmp_path / "twin"
    with running(tmp_path, CONFIG + TWINS.format(folder=tmp_path)) as server:
        npm = HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))
        http = HttpClient(server.url, (USER, PASSWORD))

        def publish(version: str) -> None:
            assert npm.put("/demo", make_publish("demo", version)).status == 201

        def states() -> dict[str, Any]:
            return {each["name"]: each for each in http.get("/api/system/twins").json}

        for version in ("1.0.0", "2.0.0"):
            publish(version)
            wait_for((twin / f"demo/-/demo-{version}.tgz").exists, server)
        wait_for(lambda: not states()["node"]["behind"], server)
        found = states()["node"]
        assert (found["problem"], found["signed"], found["files"]) == ("", True, 4)
        assert verify(twin, None)[1] == []
        wait_for(lambda: bool(states()["anyone"]["problem"]), server)
        assert not (tmp_path / "public" / ".twin" / "twin.json").exists()
        assert "twin anyone cannot be written" in http.get("/readyz").json["checks"]["twins"]
        metrics = http.get("/metrics").text
        assert 'pkgrepo_twin_sound{twin="anyone"} 0.0' in metrics
        assert 'pkgrepo_twin_sound{twin="node"} 1.0' in metrics
        run = http.post("/api/system/twins/node?wait=true", b"").json
        assert (run["written"], run["removed"]) == (0, 0)
        made = http.post_json("/api/user/token", {"name": "manager", "scopes": ["system"]})
        environ = clean_environment(PKGREPO_URL=server.url, PKGREPO_TOKEN=made.json["token"])
        for words, said in ((("list",), f"{twin} "), (("run", "node"), "node: 4 files, of which 0 were written")):
            done = run_pkgrepo("twin", *words, environ=environ, folder=tmp_path)
            assert (done.returncode, said in done.stdout) == (0, True), done
        assert http.post("/api/system/twins/absent", b"").status == 404
        assert HttpClient(server.url).post("/api/system/twins/node", b"").status == 401
        assert "node" in http.get("/ui/admin/health").text
