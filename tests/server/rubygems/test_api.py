"""The JSON API, searches, and the dependencies that old versions of Bundler ask for."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.gems import make_gem
from tests.support.http_client import HttpClient

pytestmark = pytest.mark.server

EXTRA = """\
description: Describes it
homepage: https://json.example
licenses: [MIT, Ruby]
metadata: {source_code_uri: 'https://source.example'}
required_ruby_version: !ruby/object:Gem::Requirement
  requirements:
  - - ">="
    - !ruby/object:Gem::Version
      version: '2.5'
"""
NEEDS = {"rack": [(">=", "1.0"), ("<", "3")]}


@pytest.fixture
def gem(push):
    """A gem with three versions, the highest of which is a prerelease; the latest one has a build for a platform."""
    assert push("jsonny", "1.0.0").status == 200
    assert push("jsonny", "1.1.0", platform="java").status == 200
    assert push("jsonny", "1.1.0", dependencies=NEEDS, extra=EXTRA).status == 200
    assert push("jsonny", "2.0.0.rc1").status == 200


def test_a_gem_is_shown_in_its_latest_release(rb, gem):
    record = rb.get("/api/v1/gems/jsonny.json").json
    data = make_gem("jsonny", "1.1.0", dependencies=NEEDS, extra=EXTRA)
    assert record["version_created_at"].endswith("Z")
    del record["version_created_at"]
    assert record == {
        "name": "jsonny",
        "version": "1.1.0",
        "platform": "ruby",
        "authors": "A",
        "info": "Describes it",
        "licenses": ["MIT", "Ruby"],
        "metadata": {"source_code_uri": "https://source.example"},
        "yanked": False,
        "sha": hashlib.sha256(data).hexdigest(),
        "project_uri": f"{rb.url}/api/v1/gems/jsonny.json",
        "gem_uri": f"{rb.url}/gems/jsonny-1.1.0.gem",
        "homepage_uri": "https://json.example",
        "wiki_uri": None,
        "documentation_uri": None,
        "mailing_list_uri": None,
        "source_code_uri": "https://source.example",
        "bug_tracker_uri": None,
        "changelog_uri": None,
        "funding_uri": None,
        "dependencies": {"development": [], "runtime": [{"name": "rack", "requirements": "< 3, >= 1.0"}]},
    }


def test_versions_are_listed_the_highest_first(rb, gem):
    found = rb.get("/api/v1/versions/jsonny.json").json
    listed = [(each["number"], each["platform"], each["prerelease"]) for each in found]
    assert listed == [
        ("2.0.0.rc1", "ruby", True),
        ("1.1.0", "ruby", False),
        ("1.1.0", "java", False),
        ("1.0.0", "ruby", False),
    ]
    assert found[1]["ruby_version"] == ">= 2.5"
    assert found[1]["built_at"] == "2024-05-06T00:00:00.000Z"
    assert rb.get("/api/v1/versions/jsonny/latest.json").json == {"version": "1.1.0"}
    assert rb.get("/api/v1/versions/nothing/latest.json").json == {"version": "unknown"}


def test_one_version_is_shown_for_a_platform(rb, gem):
    assert rb.get("/api/v2/rubygems/jsonny/versions/1.0.0.json").json["version"] == "1.0.0"
    assert rb.get("/api/v2/rubygems/jsonny/versions/1.1.0.json?platform=java").json["platform"] == "java"
    missing = rb.get("/api/v2/rubygems/jsonny/versions/1.0.0.json?platform=java")
    assert (missing.status, missing.text) == (404, "This version could not be found.")


@pytest.mark.parametrize("path", ["/api/v1/gems/nothing.json", "/api/v1/versions/nothing.json"])
def test_unknown_gems_are_404_in_text(rb, path):
    reply = rb.get(path)
    assert (reply.status, reply.text) == (404, "This rubygem could not be found.")


def test_yanked_versions_are_not_shown(push, rb):
    for number in ("1", "2"):
        assert push("vanishing", number).status == 200
    assert rb.get("/api/v1/gems/vanishing.json").json["version"] == "2"
    for number, latest in (("2", "1"), ("1", None)):
        assert rb.ask("DELETE", "/api/v1/gems/yank", f"gem_name=vanishing&version={number}").status == 200
        reply = rb.get("/api/v1/gems/vanishing.json")
        assert (reply.json["version"] if latest else reply.status) == (latest or 404)
    assert rb.get("/api/v1/versions/vanishing.json").json == []
    assert names(rb, "vanishing") == []


def test_the_latest_version_is_no_prerelease_in_the_management_api(gem, rb, api):
    address = "/package/main%2Frb/jsonny"
    assert api.get(address).json["latest"] == "1.1.0"
    for version in ("1.1.0", "1.1.0&platform=java", "1.0.0"):
        assert rb.ask("DELETE", "/api/v1/gems/yank", f"gem_name=jsonny&version={version}").status == 200
    assert api.get(address).json["latest"] == "2.0.0.rc1"
    for version in ("1.1.0", "1.1.0&platform=java", "1.0.0"):
        assert rb.ask("PUT", "/api/v1/gems/unyank", f"gem_name=jsonny&version={version}").status == 200
    assert api.get(address).json["latest"] == "1.1.0"


def names(where: HttpClient, query: str, page: str = "1") -> list[str]:
    return [each["name"] for each in where.get(f"/api/v1/search.json?query={query}&page={page}").json]


def test_searches_find_words_of_names_and_summaries(push, rb):
    for number in range(3):
        assert push(f"findable-{number}", "1").status == 200
    assert sorted(names(rb, "findable")) == ["findable-0", "findable-1", "findable-2"]
    assert names(rb, "findable-1") == ["findable-1"]
    assert names(rb, "FINDABLE+gem+1") == ["findable-1"]
    assert names(rb, "findable", page="2") == []
    assert names(rb, "no-gem-has-this") == []
    for page in ("0", "x", "-1", "99999999999"):
        assert rb.get(f"/api/v1/search.json?query=findable&page={page}").status == 200


def test_ones_own_gems_are_listed(push, rb, api):
    assert push("my-own", "1").status == 200
    assert "my-own" in [each["name"] for each in rb.get("/api/v1/gems.json").json]
    assert api.post_json("/users", {"username": "third", "password": "correct horse battery"}).status == 201
    assert rb.ask("POST", "/api/v1/gems/my-own/owners", "email=third").status == 200
    assert rb.ask("DELETE", "/api/v1/gems/my-own/owners", "email=admin").status == 200
    assert "my-own" not in [each["name"] for each in rb.get("/api/v1/gems.json").json]
    assert rb.as_user().get("/api/v1/gems.json").status == 401


def test_dependencies_of_all_versions(rb, gem):
    path = "/api/v1/dependencies"
    rows = rb.get(f"{path}.json?gems=jsonny,nothing,jsonny").json
    assert [(each["number"], each["platform"]) for each in rows] == [
        ("1.0.0", "ruby"),
        ("1.1.0", "java"),
        ("1.1.0", "ruby"),
        ("2.0.0.rc1", "ruby"),
    ]
    assert rows[2]["dependencies"] == [["rack", ">= 1.0, < 3"]]
    assert rb.get(f"{path}.json").json == []
    marshal = rb.get(path)
    assert (marshal.body, marshal.headers["content-type"]) == (b"\x04\x08[\x00", "application/octet-stream")
    assert rb.get(f"{path}?gems=jsonny").body.startswith(b"\x04\x08[\x09{\x09:\x09name")
    many = ",".join(f"g{number}" for number in range(201))
    refused = rb.get(f"{path}?gems={many}")
    assert (refused.status, refused.text) == (422, "Too many gems! (use --full-index instead)")


def test_a_private_repository_shows_nothing_to_strangers(repository):
    private = repository("private")
    for path in ("gems/a.json", "versions/a.json", "search.json?query=a", "dependencies?gems=a", "gems.json"):
        assert private.as_user().get(f"/api/v1/{path}").status == 401, path
    assert private.get("/api/v1/search.json?query=zzz").json == []


def test_other_methods_are_refused_with_those_that_are_allowed(rb):
    reply = rb.post("/api/v1/search.json")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
