"""Hosted modules: uploads, what clients read of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.go_modules import go_mod, h1_of_zip, make_module, module_files, path
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.server


def put(client: HttpClient, module: str, version: str, data: bytes | None = None, status: int = 201) -> dict[str, str]:
    reply = client.ask("PUT", path(module, version), make_module(module, version) if data is None else data)
    assert reply.status == status, reply.text
    found: dict[str, str] = json.loads(reply.body) if status < 300 else {"text": reply.text}
    return found


def test_an_upload_is_read_in_all_forms(main: HttpClient) -> None:
    module, data = "example.com/Demo/lib", make_module("example.com/Demo/lib", "v1.0.0")
    made = put(main, module, "v1.0.0", data)
    assert made["h1"] == h1_of_zip(data)
    assert (made["module"], made["version"], made["h1_mod"][:3]) == (module, "v1.0.0", "h1:")
    assert main.get(path(module, "v1.0.0")).body == data
    assert main.get(path(module, "v1.0.0", "mod")).body == go_mod(module)
    info = main.get(path(module, "v1.0.0", "info"))
    assert json.loads(info.body)["Version"] == "v1.0.0"
    assert info.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert main.get("/example.com/!demo/lib/@v/list").body == b"v1.0.0\n"
    latest = main.get("/example.com/%21demo/lib/@latest")
    assert (latest.body, latest.headers["cache-control"]) == (info.body, "no-cache")
    assert main.head(path(module, "v1.0.0")).headers["content-length"] == str(len(data))


def test_the_same_files_again_change_nothing_and_others_are_refused(main: HttpClient) -> None:
    module = "example.com/again"
    first = put(main, module, "v1.0.0")
    assert put(main, module, "v1.0.0", make_module(module, "v1.0.0", stored=True), status=200) == first
    other = {**module_files(module), "more.go": b"package again\n"}
    assert "v1.0.0.zip" in put(main, module, "v1.0.0", make_module(module, "v1.0.0", other), status=409)["text"]


def test_lists_are_in_order_and_without_pseudo_versions(main: HttpClient) -> None:
    module, pseudo = "example.com/order", "v0.0.0-20240102030405-abcdefabcdef"
    for version in ("v1.10.0", "v1.2.0-rc.1", pseudo, "v1.2.0"):
        put(main, module, version)
    assert main.get("/example.com/order/@v/list").body == b"v1.2.0-rc.1\nv1.2.0\nv1.10.0\n"
    assert main.get("/example.com/order/@latest").body == main.get(path(module, "v1.10.0", "info")).body
    assert main.get(path(module, pseudo, "mod")).status == 200


def test_a_module_with_pseudo_versions_alone_has_an_empty_list_and_a_latest_version(main: HttpClient) -> None:
    module = "example.com/pseudo"
    for time in ("20240102030405", "20250102030405"):
        put(main, module, f"v0.0.0-{time}-abcdefabcdef")
    listed = main.get("/example.com/pseudo/@v/list")
    assert (listed.status, listed.body) == (200, b"")
    assert b"v0.0.0-20250102030405" in main.get("/example.com/pseudo/@latest").body


def test_modules_may_be_in_each_other(main: HttpClient) -> None:
    for module, version in (("a.example/b", "v1.0.0"), ("a.example/b/c", "v1.1.0"), ("a.example/b/v2", "v2.0.0")):
        put(main, module, version)
        assert main.get(f"/{module}/@v/list").body == f"{version}\n".encode()
    files = {"old.go": b"package old\n"}
    put(main, "a.example/old", "v2.1.0+incompatible", make_module("a.example/old", "v2.1.0+incompatible", files))
    assert main.get("/a.example/old/@v/list").body == b"v2.1.0+incompatible\n"
    assert main.get("/a.example/old/@v/v2.1.0+incompatible.mod").body == b"module a.example/old\n"
    assert main.get("/a.example/old/@v/v2.1.0%2Bincompatible.mod").status == 200


@pytest.mark.parametrize(
    "where", ["/example.com/none/@v/list", "/example.com/none/@latest", path("example.com/none", "v1.0.0", "info")]
)
def test_what_does_not_exist_is_404_with_a_text_that_go_prints(main: HttpClient, where: str) -> None:
    reply = main.get(where)
    assert reply.status == 404
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["cache-control"] == "no-store"
    assert "example.com/none" in reply.text
    assert reply.text.endswith("\n")


def test_a_query_stands_for_nothing_in_a_hosted_repository(main: HttpClient) -> None:
    put(main, "example.com/query", "v1.0.0")
    for query in ("main", "v2.0.0", "abcdefabcdef", "v1"):
        assert main.get(f"/example.com/query/@v/{query}.info").status == 404, query


def test_an_unescaped_path_is_refused(main: HttpClient) -> None:
    assert "not escaped" in main.get("/example.com/Demo/@v/list").text
    assert main.get("/example.com/Demo/@v/list").status == 400
    assert main.get("/example.com/x/@v/v9.0.0.zip").status == 404


@pytest.mark.parametrize(
    ("address", "data", "why"),
    [
        (path("example.com/a", "v1.0.0"), make_module("example.com/b", "v1.0.0"), "zip is of example.com/b@v1.0.0"),
        (path("example.com/a", "v1.0.1"), make_module("example.com/a", "v1.0.0"), "zip is of example.com/a@v1.0.0"),
        (path("example.com/a", "v1.0.0"), b"<html>", "zip archive"),
        (path("example.com/a", "v1.0.0"), b"", "zip archive"),
        (path("example.com/a", "v2.0.0"), make_module("example.com/a", "v2.0.0"), "major version"),
        (path("example.com/a", "1.0"), make_module("example.com/a", "v1.0.0"), "no version"),
        ("/upload", make_module("demo", "v1.0.0"), "no module path"),
        (
            path("example.com/a", "v1.0.0"),
            make_module("example.com/a", "v1.0.0", {"go.mod": go_mod("example.com/evil")}),
            "go.mod of 'example.com/evil'",
        ),
    ],
)
def test_bad_zips_are_refused_with_the_reason(main: HttpClient, address: str, data: bytes, why: str) -> None:
    reply = main.ask("PUT", address, data)
    assert (reply.status, why in reply.text) == (400, True), reply.text
    assert main.get("/example.com/a/@v/list").status == 404


def test_a_zip_that_is_too_large_is_refused(main: HttpClient) -> None:
    assert main.ask("PUT", path("example.com/a", "v1.0.0"), bytes(1024 * 1024 + 1)).status == 413


def test_what_other_servers_take_beside_a_zip_is_compared_with_it(main: HttpClient) -> None:
    module = "example.com/beside"
    mod, info = (path(module, "v1.0.0", each) for each in ("mod", "info"))
    for each in (mod, info):
        reply = main.ask("PUT", each, go_mod(module))
        assert (reply.status, "publish the zip" in reply.text) == (409, True), reply.text
    put(main, module, "v1.0.0")
    kept = [main.get(each).body for each in (mod, info)]
    for address, content, status, why in (
        (mod, go_mod(module), 200, module),
        (mod, go_mod(module, more="// other\n"), 409, "another go.mod"),
        (mod, bytes(17 * 1024 * 1024), 413, ""),
        (info, b'{"Version":"v1.0.0","Time":"2020-01-02T03:04:05Z"}', 200, "v1.0.0"),
        (info, b'{"Version":"v1.0.1"}', 400, "the .info of v1.0.1"),
        (info, b"x", 400, "no JSON"),
    ):
        reply = main.ask("PUT", address, content)
        assert (reply.status, why in reply.text) == (status, True), reply.text
    assert [main.get(each).body for each in (mod, info)] == kept


@pytest.mark.parametrize(("method", "kind"), [("POST", "mod"), ("DELETE", "info"), ("POST", "zip"), ("DELETE", "zip")])
def test_other_methods_are_told_what_to_do(main: HttpClient, method: str, kind: str) -> None:
    reply = main.ask(method, path("example.com/a", "v1.0.0", kind), b"x")
    assert (reply.status, "PUT of its zip" in reply.text) == (405, True), reply.text


def test_a_deleted_version_does_not_come_back(main: HttpClient, api: HttpClient) -> None:
    module = "example.com/deleted"
    put(main, module, "v1.0.0")
    gone = api.ask("DELETE", "/package/main%2Fown/example.com%2Fdeleted/versions/v1.0.0?trash=false")
    assert gone.status == 200, gone.text
    assert main.get(path(module, "v1.0.0")).status == 404
    put(main, module, "v1.0.0", status=409)


def test_a_yanked_version_is_not_listed(main: HttpClient, api: HttpClient) -> None:
    module = "example.com/yanked"
    for version in ("v1.0.0", "v1.1.0"):
        put(main, module, version)
    yank = "/package/main%2Fown/example.com%2Fyanked/versions/v1.1.0/yank"
    assert api.post_json(yank, {"reason": "bad"}).status == 200
    assert main.get("/example.com/yanked/@v/list").body == b"v1.0.0\n"
    assert main.get(path(module, "v1.1.0")).status == 200


def test_the_record_of_a_version_tells_what_its_zip_does(main: HttpClient, api: HttpClient) -> None:
    module = "example.com/told"
    files = {**module_files(module, "example.com/needed v1.2.0"), "README.md": b"# Told\n"}
    put(main, module, "v1.0.0", make_module(module, "v1.0.0", files, licence="MIT"))
    place = "/package/main%2Fown/example.com%2Ftold/versions/v1.0.0"
    record = api.get(place).json
    assert (record["license"], record["dependencies"]) == ("MIT", ["example.com/needed v1.2.0"])
    assert record["metadata"]["h1"].startswith("h1:")
    assert api.get(f"{place}/readme").text == "# Told\n"


def test_permissions_are_asked(format_server: ServerProcess, as_token: Callable[..., HttpClient]) -> None:
    reply = HttpClient(f"{format_server.url}/repositories/main/closed").get("/example.com/x/@v/list")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')
    limited, mine, other = as_token("one"), "example.com/mine/x", "example.com/other"
    assert limited.ask("PUT", path(mine, "v1.0.0"), make_module(mine, "v1.0.0")).status == 201
    refused = limited.ask("PUT", path(other, "v1.0.0"), make_module(other, "v1.0.0"))
    assert (refused.status, other in refused.text) == (403, True)
    assert limited.ask("PUT", "/upload", make_module(other, "v1.0.0")).status == 403


def test_a_hosted_repository_passes_no_checksum_database_on(main: HttpClient) -> None:
    for part in ("supported", "latest", "lookup/example.com/x@v1.0.0", "tile/8/0/000"):
        assert main.get(f"/sumdb/sum.example/{part}").status == 404, part
