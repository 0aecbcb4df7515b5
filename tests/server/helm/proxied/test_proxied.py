"""Indexes of upstreams, whose archives come through here, and indexes of several members."""

import hashlib
import json

import pytest

from tests.support.charts import make_chart, make_provenance
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server


def versions(client):
    """The versions in the index, by chart."""
    reply = client.get("/index.yaml")
    assert reply.status == 200, reply.body
    found = json.loads(reply.body)["entries"]
    return {name: [each["version"] for each in listed] for name, listed in found.items()}


def test_archives_of_any_address_come_through_here(mirror, upstream, second):
    relative = upstream.add("relative")
    absolute = make_chart("absolute", "1.0.0")
    second.serve("/far/away.tgz", absolute)
    upstream.add("absolute", urls=[f"{second.url}/far/away.tgz"], digest=None)
    assert versions(mirror)["absolute"] == ["1.0.0"]
    for name, data in (("relative", relative), ("absolute", absolute)):
        assert mirror.get(f"/charts/{name}-1.0.0.tgz").body == data
        assert mirror.get(f"/charts/{name}-1.0.0.tgz").body == data
    assert (upstream.count("/relative-1.0.0.tgz"), second.count("/far/away.tgz")) == (1, 1)


def test_provenance_is_asked_for_when_it_is_wanted(mirror, upstream):
    upstream.add("signed")
    upstream.serve("/signed-1.0.0.tgz.prov", make_provenance("signed-1.0.0.tgz", "0" * 64))
    assert mirror.get("/charts/signed-1.0.0.tgz").status == 200
    assert upstream.count("/signed-1.0.0.tgz.prov") == 0
    assert mirror.get("/charts/signed-1.0.0.tgz.prov").body.startswith(b"-----BEGIN PGP")
    upstream.add("unsigned")
    assert mirror.get("/charts/unsigned-1.0.0.tgz.prov").status == 404


def test_a_broken_entry_does_not_take_the_others_with_it(mirror, upstream):
    upstream.add("whole")
    upstream.entries["broken"] = [
        {"name": "broken"},
        "text",
        {"name": "broken", "version": "1.0.0", "urls": ["oci://x/y"]},
    ]
    upstream.publish(weird=1)
    found = versions(mirror)
    assert ("whole" in found, "broken" in found) == (True, False)


def test_an_archive_with_another_digest_is_not_served(mirror, upstream):
    upstream.add("wrong", digest="0" * 64)
    refused = mirror.get("/charts/wrong-1.0.0.tgz")
    assert (refused.status, "sha256" in refused.json["error"]) == (502, True)


def test_a_digest_that_changes_is_another_archive(mirror, upstream):
    assert mirror.get("/charts/rebuilt-1.0.0.tgz").status == 404
    first = upstream.add("rebuilt")
    assert mirror.get("/charts/rebuilt-1.0.0.tgz").body == first
    again = make_chart("rebuilt", "1.0.0", description="again")
    upstream.entries["rebuilt"] = []
    upstream.add("rebuilt", digest=hashlib.sha256(again).hexdigest())
    upstream.serve("/rebuilt-1.0.0.tgz", again)
    assert versions(mirror)["rebuilt"] == ["1.0.0"]
    assert mirror.get("/charts/rebuilt-1.0.0.tgz").body == again


def test_a_web_page_is_no_index(at, upstream):
    mirror = at("paged")
    upstream.add("before")
    assert "before" in versions(mirror)
    page = Answer(body=b"<!DOCTYPE html><html><body>Log in</body></html>", fields={"Content-Type": "text/html"})
    upstream.misbehave("/index.yaml", page, repeat=True)
    assert "before" in versions(mirror)  # what there was


def test_what_is_kept_is_served_while_the_upstream_is_down(at, upstream):
    mirror = at("failing")
    data = upstream.add("kept")
    assert mirror.get("/charts/kept-1.0.0.tgz").body == data
    assert "kept" in versions(mirror)
    upstream.misbehave("/index.yaml", failing(503), repeat=True)
    assert "kept" in versions(mirror)
    assert mirror.get("/charts/kept-1.0.0.tgz").body == data


def test_an_upload_to_a_proxy_is_refused(mirror):
    assert mirror.ask("POST", "/api/charts", make_chart("demo", "1.0.0")).status == 405


def test_a_virtual_repository_has_each_chart_of_its_first_member(at, upstream, second):
    own, every = at("own"), at("all")
    upstream.add("mine", "9.0.0")
    upstream.add("theirs", "1.0.0")
    second.add("theirs", "2.0.0")
    second.add("last", "1.0.0")
    assert every.ask("POST", "/api/charts", make_chart("mine", "1.0.0")).status == 201
    found = versions(every)
    assert (found["mine"], found["theirs"], found["last"]) == (["1.0.0"], ["1.0.0"], ["1.0.0"])
    assert versions(own) == {"mine": ["1.0.0"]}
    assert versions(at("merged"))["theirs"] == ["2.0.0", "1.0.0"]
    assert every.get("/charts/mine-9.0.0.tgz").status == 404
    assert every.get("/charts/last-1.0.0.tgz").status == 200


def test_reserved_names_are_of_no_upstream(at, upstream):
    upstream.add("acme-app")
    upstream.add("free")
    found = versions(at("closed"))
    assert ("acme-app" in found, "free" in found) == (False, True)
