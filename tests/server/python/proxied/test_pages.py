"""Pages of projects of upstreams."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.upstreams.faults import HTML, failing
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.python import JSON, PUBLISHED

pytestmark = pytest.mark.server

PIP = f"{JSON}, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"


def test_page_of_the_upstream_has_our_addresses(mirror, upstream):
    wheel, _ = upstream.add("paged", "1.0", requires_python=">=3.8", yanked="bad", provenance="https://h.example/p")
    sdist, _ = upstream.add("paged", "1.1", sdist=True, **{"x-extra": [1]})
    page = mirror.get("/simple/paged/", Accept=PIP)
    assert (page.status, page.headers["content-type"]) == (200, JSON)
    assert page.json["name"] == "paged"
    assert page.json["versions"] == ["1.0", "1.1"]
    theirs = {file["filename"]: file for file in upstream.projects["paged"]}
    first, second = page.json["files"]
    url = f"../../packages/paged/1.0/{wheel}"
    expected = {key: value for key, value in theirs[wheel].items() if key != "version"}
    assert first == {**expected, "url": url, "provenance": f"{url}.provenance"}
    assert (second["url"], second["x-extra"]) == (f"../../packages/paged/1.1/{sdist}", [1])
    assert second["upload-time"] == PUBLISHED
    (asked,) = upstream.requests()
    assert asked.path == "/simple/paged/"
    assert asked.fields["accept"].startswith(JSON)


def test_page_in_html_has_the_same_files(mirror, upstream):
    wheel, _ = upstream.add("anchored", requires_python=">=3.8")
    page = mirror.get("/simple/anchored/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    digest = upstream.projects["anchored"][0]["hashes"]["sha256"]
    assert f'<a href="../../packages/anchored/1.0/{wheel}#sha256={digest}" data-requires-python="&gt;=3.8"' in page.text
    assert upstream.count() == 1


def test_upstream_in_html_gives_pages_in_json(at, old_upstream):
    wheel, _ = old_upstream.add("elderly", requires_python=">=3.8", yanked=True)
    (file,) = at("old").get("/simple/elderly/", Accept=PIP).json["files"]
    assert (file["filename"], file["hashes"], file["requires-python"], file["yanked"]) == (wheel, {}, ">=3.8", True)
    assert file["core-metadata"]["sha256"]
    seen = datetime.fromisoformat(file["upload-time"])
    assert (datetime.now(UTC) - seen < timedelta(hours=1), file["_first-seen"]) == (True, True)


def test_page_has_validators_of_its_own_and_is_compressed(mirror, upstream):
    for version in range(20):
        upstream.add("validated", f"{version}.0")
    first = mirror.get("/simple/validated/", Accept=PIP)
    assert mirror.get("/simple/validated/", Accept=PIP, If_None_Match=first.headers["etag"]).status == 304
    packed = mirror.get("/simple/validated/", Accept=PIP, Accept_Encoding="gzip")
    assert json.loads(gzip.decompress(packed.body)) == first.json
    head = mirror.head("/simple/validated/", Accept=PIP)
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(first.body)), b"")
    assert upstream.count() == 1


@pytest.mark.parametrize("path", ["/simple/Nor.Malised/", "/simple/nor-malised", "/+simple/Nor_Malised/"])
def test_other_spellings_are_redirected_without_asking(mirror, upstream, path):
    upstream.add("nor-malised")
    assert mirror.get(path).status == 301
    assert upstream.count() == 0


def test_route_may_be_the_root_or_the_index(at, upstream):
    upstream.add("rooted")
    for name in ("mirror", "short"):
        assert at(name).get("/simple/rooted/").status == 200
    assert [each.path for each in upstream.requests()] == ["/simple/rooted/", "/simple/rooted/"]


def test_index_at_the_root_is_found_too(at, upstream):
    upstream.add("bare")
    body = json.dumps({"meta": {"api-version": "1.0"}, "name": "flat", "files": []}).encode()
    upstream.serve("/flat/", Answer(body=body, fields={"Content-Type": "application/octet-stream"}))
    assert at("short").get("/simple/flat/", Accept=PIP).json["files"] == []
    assert [each.path for each in upstream.requests()] == ["/simple/flat/", "/flat/"]


@pytest.mark.one_process("a worker hears of negative_cache at others a moment later")
def test_unknown_project_is_not_found_and_the_answer_remembered(mirror, upstream):
    for _ in range(2):
        assert mirror.get("/simple/nowhere/").status == 404
    assert upstream.count("/simple/nowhere/") == 1


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (failing(500), 502),
        (failing(403), 403),
        (failing(401), 424),
        (HTML, 502),
        (Answer(body=b'{"meta":{"api-version":"2.0"},"name":"x","files":[]}'), 502),
        (Answer(body=b'{"meta":{"api-version":"1.0"},"name":"other","files":[]}'), 502),
    ],
)
def test_failing_upstream_is_no_missing_project(mirror, upstream, step, status):
    name = f"broken-{step.status}-{len(step.body)}"
    upstream.add(name)
    upstream.misbehave(f"/simple/{name}/", step, repeat=True)
    reply = mirror.get(f"/simple/{name}/", Accept=PIP)
    assert reply.status == status, reply
    upstream.behave()
    assert mirror.get(f"/simple/{name}/", Accept=PIP).status == 200


def test_changes_upstream_are_seen_after_the_ttl(at, upstream, files):
    short = at("short")
    upstream.add("moving", "1.0")
    assert len(files("moving", short)) == 1
    upstream.add("moving", "1.1")
    upstream.projects["moving"][0]["yanked"] = "old"
    found = files("moving", short)
    assert [file["yanked"] for file in found.values()] == ["old", False]
    assert short.get("/simple/moving/", Accept=PIP).status == 200
    last = upstream.requests()[-1].fields
    assert "if-none-match" in last


def test_page_is_served_while_the_upstream_fails(at, upstream, files):
    short = at("short")
    wheel, _ = upstream.add("stale-one")
    assert wheel in files("stale-one", short)
    upstream.misbehave("/simple/stale-one/", failing(500), repeat=True)
    assert wheel in files("stale-one", short)


def test_young_files_are_hidden_and_refused(at, upstream, files):
    aged = at("aged")
    old, _ = upstream.add("growing", "1.0")
    young, _ = upstream.add("growing", "2.0", published="2999-01-01T00:00:00Z")
    assert list(files("growing", aged)) == [old]
    assert aged.get("/simple/growing/", Accept=PIP).json["versions"] == ["1.0"]
    reply = aged.get(f"/packages/growing/2.0/{young}")
    assert reply.status == 403
    assert young in reply.text
    assert aged.get(f"/packages/growing/1.0/{old}").status == 200


def test_large_page_of_unknown_length_is_no_page(at, old_upstream):
    links = "".join(
        f'<a href="/f/long_page-1.{number}.tar.gz">long_page-1.{number}.tar.gz</a>\n' for number in range(9000)
    )
    path = "/simple/long-page/"
    old_upstream.serve(path, Answer(body=links.encode(), fields={"Content-Type": "text/html"}))
    old_upstream.misbehave(path, Fault(unframed=True), repeat=True)
    assert at("old").get(path).status == 502
    old_upstream.behave()
    assert at("old").get(path).status == 200


def test_metadata_of_a_kept_wheel_is_as_old_as_the_wheel(at, upstream, keep):
    filename, _ = upstream.add("aging-kept", "1.0")
    aged, path = at("aged"), f"/packages/aging-kept/1.0/{filename}"
    keep(aged, path)
    assert aged.get(f"{path}.metadata").status == 200


def test_own_projects_are_never_asked_upstream(at, upstream, publish, files):
    everything = at("all")
    theirs, _ = upstream.add("secretlib", "99")
    ours, _ = publish("secretlib", "1.0")
    assert list(files("secretlib", everything)) == [ours]
    assert everything.get(f"/packages/secretlib/99/{theirs}").status == 404
    assert everything.get(f"/packages/{theirs}").status == 404
    assert upstream.count() == 0
    public, _ = upstream.add("publiclib")
    assert list(files("publiclib", everything)) == [public]


def test_status_and_locations_of_the_upstream_are_passed_on(mirror, upstream):
    page: Mapping[str, object] = {
        "meta": {"api-version": "1.4", "tracks": ["https://a.example/"]},
        "name": "told",
        "project-status": {"status": "archived", "reason": "done"},
        "alternate-locations": ["https://b.example/"],
        "files": [],
    }
    upstream.serve("/simple/told/", json.dumps(page).encode())
    found = mirror.get("/simple/told/", Accept=PIP).json
    assert found["project-status"] == page["project-status"]
    assert found["alternate-locations"] == page["alternate-locations"]
    assert found["meta"]["tracks"] == ["https://a.example/"]
    text = mirror.get("/simple/told/").text
    assert '<meta name="pypi:tracks" content="https://a.example/">' in text
    assert '<meta name="pypi:project-status-reason" content="done">' in text
