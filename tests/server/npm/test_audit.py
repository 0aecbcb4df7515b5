"""Audit requests, bulk and quick."""

import gzip
import json

import pytest

from tests.server.npm.conftest import ADVISORY, BOB
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


def test_a_bulk_audit_lists_advisories(npm):
    body = json.dumps({"biter": ["1.0.0", "1.2.0"], "harmless": ["1.0.0"]}).encode()
    for sent, headers in ((body, {}), (gzip.compress(body), {"Content_Encoding": "gzip"})):
        reply = npm.as_user().post("/-/npm/v1/security/advisories/bulk", sent, **headers)
        assert reply.status == 200
        (found,) = reply.json["biter"]
        assert (found["severity"], found["title"], found["cwe"]) == ("high", "It bites", ["CWE-1"])
        assert found["vulnerable_versions"] == ">=1.0.0 <1.2.0"
        assert reply.json.keys() == {"biter"}
    assert npm.post("/-/npm/v1/security/advisories/bulk", b'{"biter":["1.2.0"]}').json == {}


def test_a_reader_of_some_packages_may_audit(repository, as_token):
    private = repository("private")
    for path in ("advisories/bulk", "audits/quick"):
        where = f"/-/npm/v1/security/{path}"
        assert as_token("scoped in private", "private").post_json(where, {}).status == 200
        assert as_token("scoped", "private").post_json(where, {}).status == 404
        assert private.as_user(*BOB).post_json(where, {}).status == 404
        assert private.as_user().post_json(where, {}).status == 401


@pytest.mark.parametrize("path", ["/-/npm/v1/security/audits/quick", "/-/npm/v1/security/audits"])
def test_a_quick_audit_lists_the_paths(npm, path):
    tree = {"name": "app", "dependencies": {"a": {"version": "1.0.0", "dependencies": {"biter": {"version": "1.1.0"}}}}}
    reply = npm.post_json(path, tree)
    (advisory,) = reply.json["advisories"].values()
    assert advisory["findings"][0]["paths"] == ["a>biter"]
    assert reply.json["metadata"]["vulnerabilities"]["high"] == 1
    clean = npm.post_json(path, {"name": "app", "dependencies": {}}).json
    assert (clean["advisories"], clean["metadata"]["totalDependencies"]) == ({}, 0)


def test_a_version_shows_its_advisories(publish, format_server):
    for version in ("1.0.0", "1.2.0"):
        publish("biter", version)
    place = "/package/main%2Fnpm/biter/versions"
    api = HttpClient(f"{format_server.url}/api", (USER, PASSWORD))
    known = api.get(f"{place}/1.0.0/advisories").json
    assert (known["checked"], known["total"]) == (True, 1)
    assert known["items"] == [
        {
            "id": ADVISORY["id"],
            "title": "It bites",
            "severity": "high",
            "score": None,
            "url": known["items"][0]["url"],
            "aliases": [],
            "affected": ">=1.0.0 <1.2.0",
            "fixed": ">=1.2.0",
            "fixed_versions": ["1.2.0"],
            "published_at": "2026-01-01T00:00:00Z",
            "components": [],
        }
    ]
    assert api.get(f"{place}/1.2.0/advisories").json == {
        "items": [],
        "total": 0,
        "checked": True,
        "problem": "",
    }
    assert api.get(f"{place}/9.0.0/advisories").status == 404
    pages = HttpClient(f"{format_server.url}/ui/repositories/main/npm/packages/biter/versions")
    assert "It bites" in pages.get("/1.0.0").body.decode()
    clean = pages.get("/1.2.0").body.decode()
    assert "It bites" not in clean
    assert "None of the advisories" in clean


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"x":1}', b"[" * 100_000])
def test_a_malformed_audit_is_refused(npm, body):
    assert npm.post("/-/npm/v1/security/advisories/bulk", body).status == 400


def test_a_compression_bomb_is_refused(npm):
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    assert npm.post("/-/npm/v1/security/advisories/bulk", bomb, Content_Encoding="gzip").status == 413
