"""What cargo sends to publish, yank and name owners, and what it prints when that is refused."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.server.cargo.conftest import MAX_UPLOAD, lines_of
from tests.support.crates import describe, make_crate, pack, publish_body

pytestmark = pytest.mark.server

NEW = "/api/v1/crates/new"


def detail(reply):
    """What cargo prints."""
    (error,) = reply.json["errors"]
    return error["detail"]


def test_a_crate_is_published_listed_and_downloaded(main, publish):
    data = make_crate("First", "1.0.0", license="MIT")
    reply = publish("First", license="MIT")
    assert (reply.status, reply.json) == (
        200,
        {"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}},
    )
    (line,) = lines_of(main, "/index/fi/rs/first")
    assert (line["name"], line["vers"], line["cksum"]) == ("First", "1.0.0", hashlib.sha256(data).hexdigest())
    assert line["yanked"] is False
    assert len(line["pubtime"]) == 20
    for name in ("First", "first", "FIRST"):
        found = main.get(f"/api/v1/crates/{name}/1.0.0/download")
        assert (found.status, found.body) == (200, data)
        assert found.headers["etag"] == f'"{line["cksum"]}"'
    assert main.get("/api/v1/crates/first/9.0.0/download").status == 404


def test_a_document_is_confirmed_by_its_etag_until_it_changes(main, publish):
    publish("tagged")
    before = main.get("/index/ta/gg/tagged")
    assert before.headers["content-type"] == "text/plain; charset=utf-8"
    etag = before.headers["etag"]
    assert main.get("/index/ta/gg/tagged", If_None_Match=etag).status == 304
    publish("tagged", "1.1.0")
    after = main.get("/index/ta/gg/tagged", If_None_Match=etag)
    assert (after.status, after.body.startswith(before.body)) == (200, True)


@pytest.mark.parametrize("name", ["a", "ab", "abc", "api", "index", "crates"])
def test_names_of_every_length_have_their_place(main, publish, name):
    assert publish(name).status == 200
    place = {1: "1", 2: "2", 3: f"3/{name[0]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
    for below in ("", "index/"):
        assert lines_of(main, f"/{below}{place}/{name}")[0]["name"] == name


def test_an_address_with_doubled_slashes_is_the_same(main, publish):
    publish("doubled")
    assert main.get("//index//do/ub/doubled").status == 200


@pytest.mark.parametrize(
    "path", ["/index/ca/se/Case", "/index/ca/sx/case", "/index/case", "/api/v1/crates/case", "/api/v2", "/", "/%00"]
)
def test_other_addresses_are_nothing(main, publish, path):
    publish("case")
    reply = main.get(path)
    assert reply.status in (400, 404)
    assert path == "/%00" or detail(reply)


def test_a_version_is_published_once(main, publish):
    assert publish("once").status == 200
    for other in ({}, {"license": "MIT"}):
        reply = publish("once", **other)
        assert (reply.status, detail(reply)) == (409, "crate version `once@1.0.0` is already uploaded")
    reply = publish("once", "1.0.0+build")
    assert reply.status == 409
    assert "differs in build metadata alone" in detail(reply)
    assert len(lines_of(main, "/index/on/ce/once")) == 1


def test_names_that_differ_in_spelling_alone_are_refused(main, publish, repository):
    assert publish("two-Words").status == 200
    for name in ("two_words", "two-words", "TWO-WORDS"):
        reply = publish(name, "2.0.0")
        assert reply.status == 409
        assert "previously named two-Words" in detail(reply)
    assert publish("two-Words", "2.0.0").status == 200
    assert main.get("/index/tw/o_/two_words").status == 404
    lax = repository("lax")
    for name in ("two-words", "two_words", "std"):
        assert publish(name, where=lax).status == 200
    assert publish("Two_words", "2.0.0", where=lax).status == 409


@pytest.mark.parametrize("name", ["std", "proc_macro", "nul", "_under"])
def test_reserved_names_are_refused(publish, name):
    assert publish(name).status == 400


def test_features_of_new_clients_are_apart(main, publish):
    more = '\n[features]\nplain = []\nnewer = ["dep:log"]\n[dependencies]\nlog = { version = "0.4", optional = true }\n'
    said = {
        "features": {"plain": [], "newer": ["dep:log"]},
        "deps": [
            {
                "name": "log",
                "version_req": "^0.4",
                "features": [],
                "optional": True,
                "default_features": True,
                "target": None,
                "kind": "normal",
                "registry": "https://elsewhere.example/index",
            }
        ],
    }
    assert publish("featured", more=more, said=said).status == 200
    (line,) = lines_of(main, "/index/fe/at/featured")
    assert (line["features"], line["features2"], line["v"]) == ({"plain": []}, {"newer": ["dep:log"]}, 2)
    assert line["deps"][0]["registry"] == "https://elsewhere.example/index"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"features": {"a": []}}, "other features"),
        ({"links": "z"}, "other links"),
        ({"rust_version": "1.2"}, "other rust-version"),
        ({"deps": [{"name": "a", "version_req": "*"}]}, "other dependencies"),
        ({"name": "lied-about"}, "is liar 1.0.0, and was sent as lied-about 1.0.0"),
        ({"vers": "2.0.0"}, "is liar 1.0.0, and was sent as liar 2.0.0"),
    ],
)
def test_a_description_that_is_not_of_the_crate_is_refused(main, publish, said, why):
    reply = publish("liar", said=said)
    assert reply.status == 400
    assert why in detail(reply)
    assert main.get("/index/li/ar/liar").status == 404


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"", 400, "the body ends before"),
        (b"\x09\x00", 400, "the body ends before"),
        (b"\xff\xff\xff\x7f", 413, "description"),
        (b"\x02\x00\x00\x00{}\x00\x00\x00\x00", 400, "the description of the crate"),
        (publish_body(describe("bad", "1.0.0"), b"no crate"), 400, "the crate"),
        (publish_body(describe("bad", "1.0.0"), make_crate("bad", "1.0.0"))[:-1], 400, "the body ends before"),
        (publish_body(describe("bad", "1.0.0"), make_crate("bad", "1.0.0")) + b"x", 400, "goes on"),
        (publish_body(describe("bad", "1.0"), b""), 400, "MAJOR.MINOR.PATCH"),
        (publish_body(describe("b d", "1.0.0"), b""), 400, "invalid crate name"),
        (publish_body(describe("bad", "1.0.0"), pack([("bad-1.0.0/a", b"")])), 400, "has no Cargo.toml"),
        (publish_body(describe("bad", "1.0.0"), make_crate("bad", "1.0.0", folder="x")), 400, "has the folder"),
    ],
)
def test_a_body_that_is_no_publish_is_refused_and_leaves_nothing(main, body, status, why):
    reply = main.put(NEW, body)
    assert reply.status == status
    assert why in detail(reply)
    assert main.get("/index/3/b/bad").status == 404


def test_a_large_crate_is_refused_before_it_is_read(main):
    said = json.dumps(describe("large", "1.0.0")).encode()
    head = len(said).to_bytes(4, "little") + said + (MAX_UPLOAD + 1).to_bytes(4, "little")
    reply = main.put(NEW, head)
    assert reply.status == 413
    assert detail(reply)


def test_yanks_are_in_the_line_and_the_crate_stays(main, publish):
    publish("yanked")
    place = "/api/v1/crates/Yanked/1.0.0"
    before = lines_of(main, "/index/ya/nk/yanked")
    for _ in range(2):
        assert main.delete(f"{place}/yank").json == {"ok": True}
    assert lines_of(main, "/index/ya/nk/yanked") == [{**before[0], "yanked": True}]
    assert main.get(f"{place}/download").status == 200
    for _ in range(2):
        assert main.put(f"{place}/unyank", b"").json == {"ok": True}
    assert lines_of(main, "/index/ya/nk/yanked") == before
    for version in ("9.0.0", "one"):
        assert main.delete(f"/api/v1/crates/yanked/{version}/yank").status == 404
    assert publish("yanked").status == 409


def test_owners_are_listed_added_and_removed(main, publish, api):
    publish("owned")
    place = "/api/v1/crates/owned/owners"
    assert api.post_json("/users", {"username": "second", "password": "correct horse battery"}).status == 201
    assert [each["login"] for each in main.get(place).json["users"]] == ["admin"]
    added = main.ask("PUT", place, b'{"users":["second"]}')
    assert (added.status, added.json["ok"], "second added to owned" in added.json["msg"]) == (200, True, True)
    owners = main.get(place).json["users"]
    assert [each["login"] for each in owners] == ["admin", "second"]
    assert all(isinstance(each["id"], int) for each in owners)
    assert main.ask("DELETE", place, b'{"users":["second"]}').json["ok"] is True
    assert main.ask("PUT", place, b'{"users":["nobody"]}').status == 404
    assert main.ask("DELETE", place, b'{"users":["admin"]}').status == 400
    for body in (b"", b"{}", b'{"users":[]}', b'{"users":[1]}'):
        assert main.ask("PUT", place, body).status == 400
    assert main.get("/api/v1/crates/unowned/owners").status == 404


def test_searches_find_names_and_descriptions(main, publish):
    publish("findable-one", description="a tool that calms otters")
    publish("findable-two", "2.0.0-rc.1")
    publish("findable-two", "1.0.0")
    found = main.get("/api/v1/crates?q=findable&per_page=10").json
    assert found["meta"] == {"total": 2}
    versions = {each["name"]: each["max_version"] for each in found["crates"]}
    assert versions == {"findable-one": "1.0.0", "findable-two": "1.0.0"}
    (otters,) = main.get("/api/v1/crates?q=calms%20otters").json["crates"]
    assert otters["description"] == "a tool that calms otters"
    assert len(main.get("/api/v1/crates?q=findable&per_page=1").json["crates"]) == 1
    main.delete("/api/v1/crates/findable-one/1.0.0/yank")
    assert [each["name"] for each in main.get("/api/v1/crates?q=findable&per_page=x").json["crates"]] == [
        "findable-two"
    ]


@pytest.mark.parametrize(("method", "path"), [("POST", NEW), ("PUT", "/config.json"), ("DELETE", "/index/1/a")])
def test_an_address_takes_its_methods_only(main, method, path):
    reply = main.ask(method, path, b"")
    assert (reply.status, bool(reply.headers["allow"])) == (405, True)
    assert detail(reply)


def test_folders_are_left_to_cargo(api, main):
    [folder] = api.get("/repository/main%2Fcrates/upload").json["folders"]
    assert (folder["marker"], folder["packing"]) == ("Cargo.toml", "")
    assert "cargo publish" in folder["advice"]
