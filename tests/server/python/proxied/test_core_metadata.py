"""The METADATA of wheels that are not kept, of upstreams that do not have it; and parts of files that are not kept."""

from __future__ import annotations

import hashlib
import re

import pytest
from attrs import evolve

from tests.server.python.proxied.conftest import JSON
from tests.support.python_packages import make_metadata
from tests.support.timeouts import polled
from tests.support.upstreams.faults import without_ranges
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

LARGE = 1_000_000  # bytes of padding: such a wheel is not fetched for its METADATA


def without_metadata(upstream, project, *, offered, **options):
    """Add a wheel whose METADATA the upstream does not have. Returns its name, bytes and METADATA."""
    name, data = upstream.add(project, requires=["left"], metadata=offered, **options)
    upstream.serve(f"{upstream.file_path(name)}.metadata", Answer(404))
    return name, data, make_metadata(project, "1.0", fields=[("Requires-Dist", "left")])


def statuses(upstream, name):
    """The statuses of all responses with a wheel, or with a part of it."""
    return [each.status for each in upstream.exchanges_of(upstream.file_path(name))]


@pytest.mark.parametrize("offered", [False, True])
def test_metadata_is_read_out_of_a_few_parts_of_the_wheel(mirror, upstream, files, offered):
    project = f"parted-{offered}".lower()
    name, data, metadata = without_metadata(upstream, project, offered=offered, pad=LARGE)
    listed = files(project)[name]["core-metadata"]
    assert listed == ({"sha256": hashlib.sha256(metadata).hexdigest()} if offered else True)
    path = f"/packages/{project}/1.0/{name}"
    for _ in range(2):
        assert mirror.get(f"{path}.metadata").body == metadata
    assert set(statuses(upstream, name)) == {206}
    assert len(statuses(upstream, name)) <= 3
    assert mirror.get(path).body == data


def test_metadata_of_an_index_in_html_is_offered_and_read_out(at, old_upstream):
    old = at("old")
    name, _, metadata = without_metadata(old_upstream, "old-parted", offered=False, pad=LARGE)
    assert "data-core-metadata" in old.get("/simple/old-parted/", Accept="text/html").text
    assert old.get(f"/packages/old-parted/1.0/{name}.metadata").body == metadata
    asked = old_upstream.exchanges_of(old_upstream.file_path(name))
    assert {each.status for each in asked if each.request.method == "GET"} == {206}


@pytest.mark.parametrize("pad", [0, LARGE])
def test_wheel_is_fetched_whole_if_the_upstream_sends_no_parts(mirror, upstream, pad):
    name, data, metadata = without_metadata(upstream, f"whole-{pad}", offered=False, pad=pad)
    theirs = upstream.file_path(name)
    upstream.misbehave(theirs, without_ranges, repeat=True)
    path = f"/packages/whole-{pad}/1.0/{name}"
    assert mirror.get(f"{path}.metadata").body == metadata
    assert upstream.count(theirs) <= 2
    upstream.misbehave(theirs, Answer(500), repeat=True)
    assert mirror.get(path).body == data  # it is kept


def test_small_wheel_is_fetched_whole_and_verified(mirror, upstream):
    name, data, metadata = without_metadata(upstream, "small-whole", offered=False)
    path = f"/packages/small-whole/1.0/{name}"
    assert mirror.get(f"{path}.metadata").body == metadata
    assert mirror.get(path).body == data
    assert statuses(upstream, name) == [200]


def test_metadata_that_is_not_the_announced_one_is_refused(mirror, upstream):
    name, _, _ = without_metadata(upstream, "differing", offered=True, pad=LARGE)
    upstream.projects["differing"][0]["core-metadata"] = {"sha256": "0" * 64}
    assert mirror.get(f"/packages/differing/1.0/{name}.metadata").status == 502


@pytest.mark.parametrize("changed", [b"PK\x05\x06", b"PK\x01\x02"])
def test_damaged_wheel_has_no_metadata(mirror, upstream, changed):
    project = f"damaged-{changed[2]}"
    name, data, _ = without_metadata(upstream, project, offered=False, pad=LARGE)
    broken = data.replace(changed, b"PK\x00\x00")
    upstream.serve(upstream.file_path(name), broken)
    upstream.projects[project][0]["hashes"] = {"sha256": hashlib.sha256(broken).hexdigest()}
    assert mirror.get(f"/packages/{project}/1.0/{name}.metadata").status == 404


def add_unreadable(upstream, project):
    """Add a wheel whose METADATA cannot be read here. Returns the path of it and its bytes."""
    name, data = upstream.add(project, metadata=False, pad=LARGE)
    odd = b"#!/bin/sh" + data  # as archives begin that unpack themselves; clients read them
    upstream.serve(upstream.file_path(name), odd)
    upstream.projects[project][0].update({"hashes": {"sha256": hashlib.sha256(odd).hexdigest()}, "size": len(odd)})
    return f"/packages/{project}/1.0/{name}", odd


def offering(where, project, form):
    """How many files of a page offer their metadata."""
    return len(
        re.findall(
            ' data-core-metadata="|"core-metadata":(?!false)', where.get(f"/simple/{project}/", Accept=form).text
        )
    )


@pytest.mark.parametrize("form", [JSON, "text/html"])
@pytest.mark.parametrize("first", [".metadata", ""])
def test_metadata_that_cannot_be_read_is_offered_until_that_is_known(at, mirror, upstream, keep, form, first):
    project = f"unreadable-{len(form)}-{len(first)}"
    path, data = add_unreadable(upstream, project)
    assert [offering(each, project, form) for each in (mirror, at("all"))] == [1, 1]
    if first:
        assert mirror.get(path + first).status == 404
    else:
        keep(mirror, path)
    polled(lambda: offering(mirror, project, form) == 0)
    assert offering(at("all"), project, form) == 0
    assert mirror.get(path).body == data


def test_metadata_that_cannot_be_read_stays_known_when_the_page_changes(at, upstream):
    short, project = at("short"), "unreadable-still"
    path, data = add_unreadable(upstream, project)
    assert short.get(path + ".metadata").status == 404
    assert offering(short, project, JSON) == 0
    upstream.add(project, "2.0")
    assert offering(short, project, JSON) == 1
    _, data = upstream.add(project, "1.0", metadata=False)  # another wheel of the same name
    upstream.projects[project] = upstream.projects[project][1:]
    assert offering(short, project, JSON) == 2
    assert short.get(path + ".metadata").status == 200
    assert short.get(path).body == data


def test_missing_wheel_has_no_metadata_and_a_failing_upstream_is_no_404(mirror, upstream):
    name, _, _ = without_metadata(upstream, "gone-wheel", offered=False, pad=LARGE)
    path = f"/packages/gone-wheel/1.0/{name}.metadata"
    upstream.misbehave(upstream.file_path(name), Answer(500), repeat=True)
    assert mirror.get(path).status == 502
    upstream.misbehave(upstream.file_path(name), Answer(404), repeat=True)
    assert mirror.get(path).status == 404


def test_wheel_that_changes_between_two_parts_is_fetched_whole(mirror, upstream):
    extra = {f"member{number}.txt": bytes(20) for number in range(2000)}
    name, data, metadata = without_metadata(upstream, "restless", offered=False, pad=LARGE, extra_files=extra)
    theirs = upstream.file_path(name)
    upstream.misbehave(theirs, lambda answer: evolve(answer, fields={"ETag": '"another"'}))
    path = f"/packages/restless/1.0/{name}"
    assert mirror.get(f"{path}.metadata").body == metadata
    assert mirror.get(path).body == data


def test_document_of_a_project_costs_no_whole_wheel(mirror, upstream):
    name, _, _ = without_metadata(upstream, "described-whole", offered=False, pad=LARGE)
    upstream.misbehave(upstream.file_path(name), without_ranges, repeat=True)
    assert mirror.get("/pypi/described-whole/json").json["info"]["version"] == "1.0"
    assert mirror.get(f"/packages/described-whole/1.0/{name}").headers.get("last-modified") is None  # it is not kept


def test_far_part_of_a_wheel_that_is_not_kept_is_passed_on(mirror, upstream):
    name, data = upstream.add("far-part", pad=3_000_000)
    path = f"/packages/far-part/1.0/{name}"
    for wanted, part in (("bytes=-100", data[-100:]), ("bytes=2000000-2000099", data[2_000_000:2_000_100])):
        reply = mirror.get(path, Range=wanted)
        assert (reply.status, reply.body) == (206, part)
        assert reply.headers["content-range"].endswith(f"/{len(data)}")
    assert statuses(upstream, name) == [206, 206]
    assert mirror.get(path).body == data


def test_far_part_comes_out_of_the_whole_if_the_upstream_sends_no_parts(mirror, upstream):
    name, data = upstream.add("no-parts", pad=3_000_000)
    path = f"/packages/no-parts/1.0/{name}"
    upstream.misbehave(upstream.file_path(name), without_ranges, repeat=True)
    reply = mirror.get(path, Range="bytes=-100")
    assert (reply.status, reply.body) == (206, data[-100:])
    asked = upstream.count(upstream.file_path(name))
    assert mirror.get(path).body == data
    assert upstream.count(upstream.file_path(name)) == asked


def test_failing_upstream_is_no_broken_part(mirror, upstream):
    name, _ = upstream.add("failing-part", pad=3_000_000)
    upstream.misbehave(upstream.file_path(name), Answer(500), repeat=True)
    assert mirror.get(f"/packages/failing-part/1.0/{name}", Range="bytes=-100").status == 502


def test_head_and_far_part_of_a_file_of_unknown_size_cost_no_transfer(at, old_upstream):
    old = at("old")
    name, data = old_upstream.add("unsized", pad=3_000_000, metadata=False)
    path = f"/packages/unsized/1.0/{name}"
    assert old.head(path).headers["content-length"] == str(len(data))
    assert old.get(path, Range="bytes=-100").body == data[-100:]
    asked = old_upstream.exchanges_of(old_upstream.file_path(name))
    assert [(each.request.method, each.status) for each in asked] == [("HEAD", 200), ("HEAD", 200), ("GET", 206)]
