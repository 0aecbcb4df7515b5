"""The go command downloads, requires and builds modules of hosted, proxy and virtual repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted, virtual
from tests.support.container_clients import ADMIN
from tests.support.go_clients import GoBench, put_module
from tests.support.go_modules import go_mod, h1_of_zip, make_module, module_files, path
from tests.support.http_client import HttpClient
from tests.support.ports import reserve_port
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.clients

CONFIG = (
    'proxy.allow_private = ["127.0.0.1"]\n'
    + hosted("go", "own")
    + hosted("go", "upstream", "leaving")
    + virtual("go", "all", "main/own", "main/upstream", publish_to="main/own")
)
LIB = "example.com/Demo/lib"


@pytest.fixture
def own(server: ServerProcess) -> HttpClient:
    return HttpClient(f"{server.url}/repositories/main/own", ADMIN)


@pytest.fixture
def bench(server: ServerProcess, tmp_path: Path) -> GoBench:
    return GoBench(tmp_path, f"{server.url}/repositories/main/own")


@pytest.mark.shows("install", by=("go",))
def test_a_module_is_required_and_built(own: HttpClient, bench: GoBench) -> None:
    needed = {**module_files("example.com/needed"), "lib.go": b"package needed\n\nconst Name = 1\n"}
    put_module(own, path("example.com/needed", "v0.1.0"), make_module("example.com/needed", "v0.1.0", needed))
    files = module_files(LIB, "example.com/needed v0.1.0")
    files["lib.go"] = b'package lib\n\nimport _ "example.com/needed"\n\nfunc Hello() string { return "hi" }\n'
    data = make_module(LIB, "v1.0.0", files)
    put_module(own, path(LIB, "v1.0.0"), data)
    bench.go("get", f"{LIB}@v1.0.0")
    assert f"{LIB} v1.0.0 {h1_of_zip(data)}" in bench.sums
    (bench.place / "main.go").write_text(f'package main\n\nimport "{LIB}"\n\nfunc main() {{ println(lib.Hello()) }}\n')
    bench.go("mod", "tidy")
    assert "hi" in bench.go("run", ".")
    found = json.loads(bench.go("mod", "download", "-json", f"{LIB}@v1.0.0"))
    assert (found["Sum"], found["Version"]) == (h1_of_zip(data), "v1.0.0")
    assert "all modules verified" in bench.go("mod", "verify")


def test_versions_are_chosen_as_go_does(own: HttpClient, bench: GoBench) -> None:
    module = "example.com/chosen"
    for version in ("v1.0.0", "v1.10.0", "v1.2.0", "v1.11.0-rc.1"):
        put_module(own, path(module, version), make_module(module, version))
    put_module(own, path(f"{module}/v2", "v2.0.0"), make_module(f"{module}/v2", "v2.0.0"))
    assert bench.go("list", "-m", "-versions", module).split() == [
        module,
        "v1.0.0",
        "v1.2.0",
        "v1.10.0",
        "v1.11.0-rc.1",
    ]
    for query, version in (("latest", "v1.10.0"), ("v1.2", "v1.2.0"), ("<v1.2.0", "v1.0.0")):
        bench.go("get", f"{module}@{query}")
        assert f"{module} {version}" in (bench.place / "go.mod").read_text(), query
    bench.go("get", f"{module}/v2@latest")
    assert f"{module}/v2 v2.0.0" in (bench.place / "go.mod").read_text()


def test_old_modules_and_pseudo_versions(own: HttpClient, bench: GoBench) -> None:
    old, pseudo = "v2.1.0+incompatible", "v0.0.0-20240102030405-abcdefabcdef"
    put_module(own, path("example.com/old", old), make_module("example.com/old", old, {"old.go": b"package old\n"}))
    put_module(own, path("example.com/early", pseudo), make_module("example.com/early", pseudo))
    bench.go("get", "example.com/old@latest", "example.com/early@latest")
    text = (bench.place / "go.mod").read_text()
    assert f"example.com/old {old}" in text
    assert f"example.com/early {pseudo}" in text


@pytest.mark.shows("yank", by=("go",))
def test_retractions_and_deprecations_are_told(own: HttpClient, bench: GoBench) -> None:
    module = "example.com/retracted"
    for version, more in (("v1.0.0", ""), ("v1.1.0", ""), ("v1.2.0", "\nretract v1.1.0 // it leaks\n")):
        files = {"go.mod": go_mod(module, more=more), "lib.go": b"package retracted\n"}
        if version == "v1.2.0":
            files["go.mod"] = b"// Deprecated: use something else\n" + files["go.mod"]
        put_module(own, path(module, version), make_module(module, version, files))
    assert "v1.1.0" not in bench.go("list", "-m", "-versions", module)
    said = bench.go("get", f"{module}@v1.1.0")
    assert "it leaks" in said
    assert "use something else" in said


@pytest.mark.shows("refusal", by=("go",))
def test_what_is_not_there_and_what_is_refused(
    server: ServerProcess, own: HttpClient, bench: GoBench, tmp_path: Path
) -> None:
    said = bench.go("get", "example.com/absent@v1.0.0", status=1)
    assert "404" in said
    assert "does not exist" in said
    put_module(own, path("example.com/blocked", "v1.0.0"), make_module("example.com/blocked", "v1.0.0"))
    api = HttpClient(f"{server.url}/api", ADMIN)
    block = {"repository": "main/own", "package": "example.com/blocked", "reason": "malware"}
    assert api.post_json("/policy/blocks", block).status in (200, 201)
    both = GoBench(tmp_path / "both", f"{server.url}/repositories/main/own,{server.url}/repositories/main/upstream")
    for each in (bench, both):  # a refusal does not lead to the next proxy
        said = each.go("mod", "download", "example.com/blocked@v1.0.0", status=1)
        assert "403" in said
        assert "malware" in said
    put_module(HttpClient(f"{server.url}/repositories/main/upstream", ADMIN), *later("example.com/later", "v1.0.0"))
    both.go("mod", "download", "example.com/later@v1.0.0")  # and what does not exist does


def later(module: str, version: str) -> tuple[str, bytes]:
    return path(module, version), make_module(module, version)


@pytest.mark.shows("virtual", by=("go",))
def test_a_virtual_repository_takes_and_gives(server: ServerProcess, tmp_path: Path) -> None:
    client = HttpClient(f"{server.url}/repositories/main/all", ADMIN)
    put_module(client, *later("example.com/through", "v1.0.0"))
    bench = GoBench(tmp_path, f"{server.url}/repositories/main/all")
    bench.go("get", "example.com/through@latest")
    assert any(each.startswith("example.com/through v1.0.0 h1:") for each in bench.sums)


def test_a_private_module_asks_no_checksum_database_only_if_it_is_told_so(own: HttpClient, bench: GoBench) -> None:
    put_module(own, *later("example.com/private", "v1.0.0"))
    _, reserved = reserve_port()
    with reserved:
        key = "sum.example.test+dbbb7240+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
        bench.settings = {"GONOSUMDB": "example.com/*", "GOSUMDB": key}
        bench.go("get", "example.com/private@v1.0.0")


@pytest.mark.shows("proxy", by=("go",))
def test_modules_come_through_a_proxy_and_stay_without_its_upstream(tmp_path: Path, server: ServerProcess) -> None:
    put_module(HttpClient(f"{server.url}/repositories/main/leaving", ADMIN), *later("example.com/Far/away", "v1.0.0"))
    api = HttpClient(f"{server.url}/api", ADMIN)
    config = {"type": "Proxy", "proxy": {"routes": [{"url": f"{server.url}/repositories/main/leaving"}]}}
    body = {"name": "mirror", "storage": "main", "format": "go", "visibility": "public", "config": config}
    assert api.post_json("/repository", body).status == 201
    first = GoBench(tmp_path / "first", f"{server.url}/repositories/main/mirror")
    first.go("get", "example.com/Far/away@latest")
    assert api.ask("DELETE", "/repository/main%2Fleaving?confirm=leaving").status in (200, 204)
    second = GoBench(tmp_path / "second", first.proxy)
    second.go("mod", "download", "example.com/Far/away@v1.0.0")
    assert "v1.0.0" in second.go("list", "-m", "-versions", "example.com/Far/away")
