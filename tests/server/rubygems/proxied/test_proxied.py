"""Gems of upstreams: their index, byte for byte, and their files, fetched once, verified and kept."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib

import pytest

from pkgrepo.formats.rubygems.legacy import list_row
from tests.support.gems import make_gem
from tests.support.proxied import answered
from tests.support.upstreams.faults import HTML, corrupted, failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

REFUSED_STATUS = 405


def check_digests(reply):
    """Check the fields by which Bundler verifies what it has put together."""
    assert reply.headers["etag"] == f'"{hashlib.md5(reply.body).hexdigest()}"'
    assert reply.headers["repr-digest"] == f"sha-256=:{base64.b64encode(hashlib.sha256(reply.body).digest()).decode()}:"


def test_index_is_that_of_the_upstream(mirror, upstream):
    upstream.add("plain", dependencies={"other": [(">=", "1.0"), ("<", "3")]})
    upstream.add("plain", "1.1.0", platform="java")
    upstream.add("empty")
    upstream.yank("empty", "1.0.0")
    for path, body in (
        ("/versions", upstream.versions),
        ("/info/plain", upstream.info("plain")),
        ("/info/empty", b"---\n"),
    ):
        reply = mirror.get(path)
        assert (reply.status, reply.body) == (200, body)
        check_digests(reply)
        assert mirror.get(path, If_None_Match=reply.headers["etag"]).status == 304
    names = mirror.get("/names").body.split()[1:]
    assert b"plain" in names
    assert b"empty" not in names
    assert mirror.get("/info/absent").status == 404


def test_new_versions_are_at_the_end_of_the_list(mirror, upstream):
    upstream.add("early")
    before = mirror.get("/versions").body
    upstream.add("late")
    reply = mirror.get("/versions", Range=f"bytes={len(before) - 1}-")
    assert (reply.status, before[:-1] + reply.body) == (206, upstream.versions)


@pytest.mark.parametrize(("proxy", "pad"), [("small", 0), ("large", 2_000_000)])
def test_gem_is_fetched_once_and_served_without_the_upstream(at, upstream, proxy, pad):
    mirror, name = at(proxy), f"kept-{proxy}"
    data = upstream.add(name, pad=pad)
    path = f"/gems/{name}-1.0.0.gem"
    for _ in range(2):
        reply = mirror.get(path)
        assert (reply.status, reply.body) == (200, data)
    assert upstream.count(path) == 1
    listed, info = mirror.get("/versions").body, mirror.get(f"/info/{name}").body
    for each in ("/versions", f"/info/{name}", path):
        upstream.misbehave(each, failing(), repeat=True)
    assert mirror.get(path).body == data
    assert (mirror.get("/versions").body, mirror.get(f"/info/{name}").body) == (listed, info)


def test_gem_with_another_checksum_is_refused_and_not_kept(mirror, upstream):
    data = upstream.add("tampered")
    path = "/gems/tampered-1.0.0.gem"
    upstream.misbehave(path, corrupted, repeat=True)
    reply = mirror.get(path)
    assert reply.status == 502
    upstream.behave()
    assert mirror.get(path).body == data


def test_replaced_gem_is_fetched_again(mirror, upstream):
    path = "/gems/replaced-1.0.0.gem"
    old = upstream.add("replaced")
    for _ in range(2):
        assert mirror.get(path).body == old
    upstream.yank("replaced", "1.0.0")
    new = upstream.add("replaced", pad=1000)
    assert mirror.get("/info/replaced").body == upstream.info("replaced")
    for _ in range(2):
        assert mirror.get(path).body == new
    assert upstream.count(path) == 2


def test_info_is_asked_for_once_more_when_a_gem_is_another_one(at, upstream):
    steady = at("steady")
    upstream.add("swapped")
    assert steady.get("/versions").status == steady.get("/info/swapped").status == 200
    upstream.yank("swapped", "1.0.0")
    new = upstream.add("swapped", pad=1000)
    assert steady.get("/gems/swapped-1.0.0.gem").body == new
    assert steady.get("/info/swapped").body == upstream.info("swapped")


def test_yanked_gem_that_is_kept_is_served_only_if_a_policy_says_so(at, upstream):
    data = upstream.add("withdrawn")
    upstream.add("withdrawn", "1.1.0")
    path = "/gems/withdrawn-1.0.0.gem"
    for where in ("mirror", "keeping"):
        assert at(where).get(path).body == data
    upstream.yank("withdrawn", "1.0.0")
    for where in ("mirror", "keeping"):
        assert at(where).get("/info/withdrawn").body.splitlines()[1].startswith(b"1.1.0 ")
    assert answered(at("mirror"), path, lambda reply: reply.status != 200).status == 404
    reply = answered(at("keeping"), path, lambda reply: "warning" in reply.headers)
    assert (reply.body, "removed" in reply.headers["warning"]) == (data, True)


def test_names_of_files_are_not_split_at_a_dash(mirror, upstream):
    wanted = upstream.add("two-2", "1.0.0", platform="x86_64-linux")
    upstream.add("two", "1.0.0")
    assert mirror.get("/gems/two-2-1.0.0-x86_64-linux.gem").body == wanted
    assert mirror.get("/gems/two-2-9.9.9.gem").status == 404
    spec = mirror.get("/quick/Marshal.4.8/two-2-1.0.0-x86_64-linux.gemspec.rz")
    assert zlib.decompress(spec.body) == b"specification of two-2 1.0.0-x86_64-linux"


def test_lists_of_the_legacy_index_are_passed_on(mirror, upstream):
    data = upstream.serve_specs("latest_specs.4.8.gz")
    assert mirror.get("/latest_specs.4.8.gz").body == data
    upstream.misbehave("/latest_specs.4.8.gz", failing(), repeat=True)
    assert mirror.get("/latest_specs.4.8.gz").body == data
    assert mirror.get("/prerelease_specs.4.8.gz").status == 404


@pytest.mark.parametrize("fault", [HTML, failing(500)], ids=["page", "error"])
def test_what_is_no_index_is_not_served(mirror, upstream, fault):
    name = f"broken-{fault.status}"
    upstream.add(name)
    upstream.misbehave(f"/info/{name}", fault, repeat=True)
    assert mirror.get(f"/info/{name}").status == 502
    upstream.behave()
    assert mirror.get(f"/info/{name}").status == 200


def test_page_of_a_portal_does_not_replace_the_list(at, upstream):
    upstream.add("listed-before")
    before = at("aged").get("/versions").body
    upstream.misbehave("/versions", HTML, repeat=True)
    assert at("aged").get("/versions").body == before


def test_list_without_its_date_is_taken(mirror, upstream):
    """As that of Gitea, which begins with the mark before the lines."""
    upstream.add("undated", platform="java")
    listed = upstream.versions.partition(b"\n")[2]
    upstream.misbehave("/versions", Answer(body=listed), repeat=True)
    assert mirror.get("/versions").body == listed
    assert b"undated" in mirror.get("/names").body.split()
    upstream.behave()


def test_nothing_is_pushed_to_a_proxy(mirror):
    reply = mirror.post("/api/v1/gems", make_gem("pushed"), Content_Type="application/octet-stream")
    assert reply.status == REFUSED_STATUS
    assert b"main/mirror" in reply.body


def test_young_versions_are_hidden_and_refused(at, upstream):
    upstream.add("young", created="2999-01-01T00:00:00Z")
    upstream.add("young", "0.9.0")
    assert [line.split()[0] for line in at("aged").get("/info/young").body.splitlines()[1:]] == [b"0.9.0"]
    reply = at("aged").get("/gems/young-1.0.0.gem")
    assert reply.status == 403
    assert at("aged").get("/gems/young-0.9.0.gem").status == 200


def test_hosted_gems_hide_those_of_upstreams(at, upstream):
    upstream.add("shared", "9.0.0")
    upstream.add("public")
    mine = make_gem("shared", "1.0.0")
    assert at("all").post("/api/v1/gems", mine, Content_Type="application/octet-stream").status == 200
    upstream.forget()
    merged = at("all")
    lines = merged.get("/versions").body.splitlines()
    assert [line.split()[1] for line in lines if line.startswith(b"shared ")] == [b"1.0.0"]
    assert any(line.startswith(b"public ") for line in lines)
    info = merged.get("/info/shared")
    assert f" {hashlib.md5(info.body).hexdigest()}".encode() in lines[-1]
    assert merged.get("/gems/shared-1.0.0.gem").body == mine
    assert merged.get("/gems/shared-9.0.0.gem").status == 404
    assert upstream.count("/info/shared") == upstream.count("/gems/shared-9.0.0.gem") == 0
    check_digests(merged.get("/versions"))
    assert {b"shared", b"public"} <= set(merged.get("/names").body.split())


def test_the_name_of_a_removed_gem_is_not_listed_as_that_of_an_upstream(at, upstream, api):
    upstream.add("gone", "9.0.0")
    assert at("own").post("/api/v1/gems", make_gem("gone"), Content_Type="application/gem").status == 200
    assert b"gone 1.0.0" in at("all").get("/versions").body
    package = api.ask("DELETE", "/package/main%2Fown/gone")
    assert package.status in (200, 204)
    assert b"gone 9.0.0" not in at("all").get("/versions").body
    assert b"gone" not in at("all").get("/names").body.split()
    assert list_row("gone", "9.0.0", "ruby") not in gzip.decompress(at("all").get("/specs.4.8.gz").body)
    assert at("all").get("/info/gone").status == 404


def test_lists_of_the_legacy_index_have_the_gems_of_all_members(at, upstream):
    upstream.add("preview", "1.0.0.pre")
    upstream.add("wide", "1.0.0", platform="java")
    upstream.add("wide", "0.9.0", platform="java")
    assert at("all").post("/api/v1/gems", make_gem("legacy"), Content_Type="application/gem").status == 200
    latest = gzip.decompress(at("all").get("/latest_specs.4.8.gz").body)
    assert b"legacy" in latest
    assert list_row("wide", "1.0.0", "java") in latest
    assert list_row("wide", "0.9.0", "java") not in latest
    assert b"preview" not in latest
    assert b"preview" in gzip.decompress(at("all").get("/prerelease_specs.4.8.gz").body)
    upstream.yank("wide", "0.9.0-java")
    assert list_row("wide", "0.9.0", "java") not in gzip.decompress(at("all").get("/specs.4.8.gz").body)


def test_each_push_to_a_virtual_repository_appends_a_line(at, upstream):
    upstream.add("base")
    before = at("all").get("/versions").body
    assert at("all").post("/api/v1/gems", make_gem("appended"), Content_Type="application/gem").status == 200
    after = at("all").get("/versions")
    assert after.body.startswith(before)
    assert after.body[len(before) :].startswith(b"appended 1.0.0 ")


def test_first_member_with_a_gem_serves_it(at, upstream, second):
    upstream.add("twice", "1.0.0")
    second.add("twice", "2.0.0")
    second.add("only-second")
    lines = at("both").get("/versions").body.splitlines()
    assert [line.split()[1] for line in lines if line.startswith(b"twice ")] == [b"1.0.0"]
    assert any(line.startswith(b"only-second ") for line in lines)
    assert at("both").get("/info/twice").body == upstream.info("twice")


def test_reserved_names_are_neither_listed_nor_asked(at, upstream):
    upstream.add("acme-tool")
    upstream.add("acme_free")
    upstream.add("acme")
    closed = at("closed")
    names = {line.split()[0] for line in closed.get("/versions").body.splitlines()[2:]}
    assert b"acme" in names
    assert not names & {b"acme-tool", b"acme_free"}
    upstream.forget()
    assert closed.get("/info/acme-tool").status == 404
    assert closed.get("/gems/acme-tool-1.0.0.gem").status == 404
    assert upstream.count("/info/acme-tool") == 0


def test_records_of_a_gem_follow_from_its_index(at, upstream):
    upstream.add("described", "1.0.0", dependencies={"other": [(">=", "1.0"), ("<", "3")]})
    data = upstream.add("described", "1.10.0")
    upstream.add("described", "2.0.0.pre")
    for name in ("mirror", "all"):
        gem = at(name).get("/api/v1/gems/described.json").json
        assert (gem["version"], gem["sha"]) == ("1.10.0", hashlib.sha256(data).hexdigest())
        assert gem["gem_uri"].endswith(f"/main/{name}/gems/described-1.10.0.gem")
        versions = at(name).get("/api/v1/versions/described.json").json
        assert [each["number"] for each in versions] == ["2.0.0.pre", "1.10.0", "1.0.0"]
        assert versions[0]["created_at"] == "2024-01-01T00:00:00.000Z"
    old = at("all").get("/api/v2/rubygems/described/versions/1.0.0.json").json
    assert old["dependencies"]["runtime"] == [{"name": "other", "requirements": "< 3, >= 1.0"}]
    assert at("all").get("/api/v1/versions/absent/latest.json").json == {"version": "unknown"}
    assert at("all").get("/api/v1/gems/absent.json").status == 404
    assert at("all").post("/api/v1/gems", make_gem("written"), Content_Type="application/gem").status == 200
    assert at("all").get("/api/v1/gems/written.json").json["authors"]
    for path in ("/api/v1/dependencies?gems=described", "/api/v1/search.json?query=described"):
        assert at("all").get(path).status == 404


def test_attestations_are_those_of_the_member_that_has_the_gem(at, upstream):
    for name, body in (("attested", b'[{"mediaType":"x"}]'), ("bare", b"[]"), ("unknown", None)):
        upstream.add(name)
        if body is not None:
            upstream.serve(f"/api/v1/attestations/{name}-1.0.0.json", Answer(body=body))
    assert at("own").post("/api/v1/gems", make_gem("own-gem", "1.0.0")).status == 200
    for where in ("mirror", "all"):
        for name, body in (("attested", b'[{"mediaType":"x"}]'), ("bare", b"[]"), ("unknown", b"[]")):
            reply = at(where).get(f"/api/v1/attestations/{name}-1.0.0.json")
            assert (reply.status, reply.body, reply.headers["content-type"]) == (200, body, "application/json")
        assert at(where).get("/api/v1/attestations/attested-9.json").status == 404
        assert at(where).get("/api/v1/attestations/nowhere-1.json").status == 404
    assert at("all").get("/api/v1/attestations/own-gem-1.0.0.json").body == b"[]"
    upstream.serve("/api/v1/attestations/attested-1.0.0.json", Answer(503))
    upstream.serve("/api/v1/attestations/bare-1.0.0.json", Answer(body=b"{}"))
    upstream.add("failing")
    upstream.serve("/api/v1/attestations/failing-1.0.0.json", Answer(500))
    assert at("mirror").get("/api/v1/attestations/attested-1.0.0.json").body == b'[{"mediaType":"x"}]'  # as it is kept
    assert at("mirror").get("/api/v1/attestations/failing-1.0.0.json").status == 502
