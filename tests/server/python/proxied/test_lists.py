"""Lists of all projects of proxies and virtual repositories."""

from __future__ import annotations

import json

import pytest

from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.python import JSON

pytestmark = pytest.mark.server


def names(where):
    reply = where.get("/simple/", Accept=JSON)
    assert (reply.status, reply.headers["content-type"]) == (200, JSON)
    return [project["name"] for project in reply.json["projects"]]


def test_list_is_that_of_the_upstream_and_follows_it(at, upstream):
    short = at("short")
    upstream.add("listed-b")
    upstream.add("listed-a")
    found = names(short)
    assert found == sorted(upstream.projects)
    upstream.add("listed-aa")
    assert names(short) == sorted(upstream.projects)
    assert '<a href="listed-aa/">listed-aa</a>' in short.get("/simple/").text


def test_list_is_asked_once_and_has_a_validator(mirror, upstream):
    first = mirror.get("/simple/", Accept=JSON)
    upstream.forget()
    again = mirror.get("/simple/", Accept=JSON, If_None_Match=first.headers["etag"])
    assert (again.status, again.headers["vary"]) == (304, "Accept, Accept-Encoding")
    assert upstream.count() == 0


def test_list_in_html_is_read(at, old_upstream):
    old_upstream.add("old-listed")
    assert "old-listed" in names(at("old"))


def test_spellings_of_the_upstream_are_kept_and_odd_names_left_out(at, upstream):
    projects = [{"name": each} for each in ("Zope.Interface", "../x", "", "é", "a b")]
    body = json.dumps({"meta": {"api-version": "1.0"}, "projects": projects}).encode()
    upstream.misbehave("/simple/", Answer(body=body))
    assert names(at("short")) == ["Zope.Interface"]


def test_list_of_a_virtual_repository_has_the_names_of_all_members(at, upstream, publish):
    publish("own-listed")
    upstream.add("their-listed")
    upstream.add("shared-listed")
    publish("Shared.Listed")
    found = names(at("readable"))
    assert found == sorted(found, key=lambda name: name.lower().replace(".", "-"))
    assert "own-listed" in found
    assert [name for name in found if name.lower().replace(".", "-") == "shared-listed"] == ["Shared.Listed"]


def test_upstream_without_a_list_gives_the_names_that_are_kept(at, upstream, keep):
    """The address above the index of Gitea is for uploads only."""
    lonely = at("lonely")
    upstream.misbehave("/simple/", Answer(404), repeat=True)
    upstream.misbehave("/", Answer(405), repeat=True)
    wheel, _ = upstream.add("kept-one")
    before = names(lonely)  # of other tests
    assert "kept-one" not in before
    keep(lonely, f"/packages/kept-one/1.0/{wheel}")
    assert names(lonely) == sorted([*before, "kept-one"])


def test_failing_upstream_is_no_empty_list(at, upstream):
    upstream.misbehave("/simple/", failing(500), repeat=True)
    assert at("aged").get("/simple/").status == 502
