"""Crates of upstreams: lines byte for byte, and files that are fetched once, verified and kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.crates import make_publish
from tests.support.timeouts import polled
from tests.support.upstreams.cargo import path_of
from tests.support.upstreams.faults import HTML, TRUNCATED, corrupted, failing, redirect
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server


def file_of(name: str, version: str = "1.0.0") -> str:
    return f"/api/v1/crates/{name}/{version}/download"


def versions(client, name: str) -> list[str]:
    reply = client.get(f"/index{path_of(name)}")
    assert reply.status == 200, reply.text
    return [json.loads(each)["vers"] for each in reply.body.splitlines()]


def test_the_document_is_that_of_the_upstream_and_the_configuration_is_not(mirror, upstream, format_server):
    upstream.add("Plain", line={"unknown": [1.50], "v": 2, "features2": {"a": ["dep:b"]}})
    upstream.add("Plain", "1.1.0", line={"yanked": True})
    reply = mirror.get("/index/pl/ai/plain")
    assert reply.body == bytes(upstream.document("plain").body)
    assert mirror.get("/index/pl/ai/plain", If_None_Match=reply.headers["etag"]).status == 304
    base = f"{format_server.url}/repositories/main/mirror"
    assert mirror.get("/index/config.json").json == {"dl": f"{base}/api/v1/crates", "api": base}
    assert mirror.get("/index/ab/se/absent").status == 404


def test_a_crate_is_fetched_once_from_where_the_upstream_says_and_served_without_it(mirror, upstream):
    data = upstream.add("Kept-One", license="MIT")
    for _ in range(2):
        assert mirror.get(file_of("Kept-One")).body == data
    assert upstream.count("/files/Kept-One-1.0.0.crate") == 1
    listed = mirror.get("/index/ke/pt/kept-one").body
    for path in ("/config.json", path_of("kept-one"), "/files/Kept-One-1.0.0.crate"):
        upstream.misbehave(path, failing(), repeat=True)
    assert mirror.get(file_of("kept-one")).body == data
    assert mirror.get("/index/ke/pt/kept-one").body == listed
    (found,) = mirror.get("/api/v1/crates?q=kept-one").json["crates"]
    assert (found["name"], found["max_version"]) == ("Kept-One", "1.0.0")


def test_an_upstream_that_moves_its_crates_is_followed(at, second):
    other, data = at("other"), second.add("moved")
    assert versions(other, "moved") == ["1.0.0"]
    second.serve("/elsewhere/moved/1.0.0", data)
    second.tell(dl=f"{second.url}/elsewhere/{{crate}}/{{version}}")
    second.serve("/files/moved-1.0.0.crate", Answer(404))
    try:
        assert versions(other, "moved") == ["1.0.0"]
        assert other.get(file_of("moved")).body == data
    finally:
        second.tell()


def test_a_crate_with_another_checksum_is_refused_and_not_kept(mirror, upstream):
    data = upstream.add("tampered")
    upstream.misbehave("/files/tampered-1.0.0.crate", corrupted, repeat=True)
    reply = mirror.get(file_of("tampered"))
    assert (reply.status, "digest" in reply.text or "sha256" in reply.text) == (502, True)
    upstream.behave()
    assert mirror.get(file_of("tampered")).body == data


def test_a_crate_that_ends_too_early_is_fetched_again(mirror, upstream):
    data = upstream.add("cut-off")
    upstream.misbehave("/files/cut-off-1.0.0.crate", TRUNCATED)
    assert mirror.get(file_of("cut-off")).body == data


def test_a_crate_on_another_host_is_fetched_by_the_redirect(mirror, upstream, second):
    data = upstream.add("elsewhere")
    second.serve("/there", data)
    upstream.serve("/files/elsewhere-1.0.0.crate", redirect(f"{second.url}/there"))
    assert mirror.get(file_of("elsewhere")).body == data


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        ("faulty-page", HTML, "web page that cannot be used"),
        ("faulty-name", Answer(body=b'{"name":"other","vers":"1.0.0"}\n'), "not the document of faulty"),
        ("faulty-line", Answer(body=b'{"name":"' + b"a" * 2**20 + b'"}'), "a line of more than"),
        ("faulty-status", failing(), "503"),
    ],
)
def test_a_document_that_cannot_be_used_is_an_error_with_the_reason(mirror, upstream, name, answer, why):
    upstream.add(name)
    upstream.misbehave(path_of(name), answer, repeat=True)
    reply = mirror.get(f"/index/fa/ul/{name}")
    assert reply.status in (502, 503)
    assert why in reply.json["errors"][0]["detail"]
    upstream.behave()
    assert versions(mirror, name) == ["1.0.0"]


@pytest.mark.parametrize(
    ("answer", "why"), [(Answer(404), "it has no config.json"), (HTML, "no configuration of an index")]
)
def test_an_index_without_a_configuration_is_none(at, first, answer, why):
    first.add("unsaid")
    first.misbehave("/config.json", answer, repeat=True)
    reply = at("bare").get("/index/un/sa/unsaid")
    assert (reply.status, why in reply.json["errors"][0]["detail"]) == (502, True)


def test_a_crate_that_a_publish_would_refuse_is_passed_on(mirror, upstream):
    data = upstream.add("oddly", folder="another-folder")
    assert mirror.get(file_of("oddly")).body == data


def test_nothing_is_published_to_a_proxy(mirror):
    for method, path in (("PUT", "/api/v1/crates/new"), ("DELETE", "/api/v1/crates/a/1.0.0/yank")):
        reply = mirror.ask(method, path, make_publish("new", "1.0.0"))
        assert (reply.status, bool(reply.json["errors"][0]["detail"])) == (405, True)


def test_a_young_version_is_left_out_by_its_time(at, upstream):
    upstream.add("aging", "1.0.0", line={"pubtime": "2020-01-01T00:00:00Z"})
    upstream.add("aging", "2.0.0", line={"pubtime": "2999-01-01T00:00:00Z"})
    aged = at("aged")
    reply = aged.get("/index/ag/in/aging")
    assert reply.body == upstream.lines["aging"][0] + b"\n"
    assert aged.get(file_of("aging", "2.0.0")).status == 403


def test_a_crate_of_which_all_is_hidden_does_not_exist_for_cargo(at, upstream):
    upstream.add("all-young", line={"pubtime": "2999-01-01T00:00:00Z"})
    reply = at("aged").get("/index/al/l-/all-young")
    assert (reply.status, "all-young" in reply.json["errors"][0]["detail"]) == (451, True)


def test_a_hosted_crate_is_not_asked_of_the_upstream(at, upstream):
    upstream.add("inside", "9.0.0")
    own, both = at("own"), at("all")
    assert both.put("/api/v1/crates/new", make_publish("inside", "1.0.0")).status == 200
    assert own.get("/index/in/si/inside").status == 200
    before = upstream.count(path_of("inside"))
    assert versions(both, "inside") == ["1.0.0"]
    assert both.get(file_of("inside", "9.0.0")).status == 404
    assert upstream.count(path_of("inside")) == before
    upstream.add("outside")
    assert versions(both, "outside") == ["1.0.0"]


def test_versions_of_members_are_merged_and_the_first_has_its_checksum(at, upstream, second):
    first = upstream.add("joined", "1.0.0", license="MIT")
    other = second.add("joined", "1.0.0", license="Apache-2.0")
    later = second.add("joined", "2.0.0")
    both = at("both")
    assert versions(both, "joined") == ["1.0.0", "2.0.0"]
    assert both.get(file_of("joined")).body == first != other
    assert both.get(file_of("joined", "2.0.0")).body == later


def test_a_merged_name_has_own_versions_and_those_of_the_upstream(at, upstream):
    upstream.add("merged-a", "1.0.0")
    upstream.add("merged-a", "2.0.0")
    at("own").put("/api/v1/crates/new", make_publish("merged-a", "1.0.0", license="MIT"))
    merged = at("merged")
    assert sorted(versions(merged, "merged-a")) == ["1.0.0", "2.0.0"]
    assert merged.get(file_of("merged-a")).body == at("own").get(file_of("merged-a")).body


def found(client, text: str, size: int = 10) -> list[tuple[str, str]]:
    reply = client.get(f"/api/v1/crates?q={text}&per_page={size}")
    assert reply.status == 200, reply.text
    return [(each["name"], each["max_version"]) for each in reply.json["crates"]]


def search_of(upstream, *crates: tuple[str, str], total: int = 0) -> None:
    """Have an upstream find crates, whatever is searched."""
    upstream.behave()
    upstream.tell()
    rows = [{"name": name, "max_version": version, "description": None} for name, version in crates]
    body = json.dumps({"crates": rows, "meta": {"total": total or len(rows)}}).encode()
    upstream.serve("/api/v1/crates", Answer(body=body))


def test_searches_find_what_the_upstream_finds_behind_what_is_kept(mirror, upstream):
    upstream.add("seek-kept", "0.9.0")
    assert mirror.get(file_of("seek-kept", "0.9.0")).status == 200
    search_of(upstream, ("seek-far", "2.0.0"), ("Seek-Kept", "9.9.9"), ("../bad", "1.0.0"), total=70)
    polled(lambda: ("seek-kept", "0.9.0") in found(mirror, "seek-kept"))
    assert found(mirror, "seek-kept") == [("seek-kept", "0.9.0"), ("seek-far", "2.0.0")]
    assert mirror.get("/api/v1/crates?q=seek-kept&per_page=10").json["meta"]["total"] == 70
    assert any("/api/v1/crates?q=seek-kept&per_page=10" in str(each) for each in upstream.exchanges)
    search_of(upstream, ("seek-far", "2.0.0"))
    assert found(mirror, "seek-kept", 1) == [("seek-kept", "0.9.0")]


def test_searches_do_without_an_upstream_that_answers_nothing_of_use(mirror, upstream):
    address = "/api/v1/crates"
    upstream.behave()
    for answer in (Answer(404), Answer(body=b"x"), Answer(body=b"[]"), Answer(body=b'{"crates":[1],"meta":{}}'), HTML):
        upstream.misbehave(address, answer)
        assert found(mirror, "useless") == []


def test_an_upstream_that_names_no_api_is_not_searched(at, second):
    search_of(second, ("seek-second", "1.0.0"))
    for api, wanted in ((7, []), (None, []), ("ftp://x", []), (second.url, [("seek-second", "1.0.0")])):
        second.tell(api=api)
        assert found(at("other"), "second") == wanted, api


def test_searches_of_an_upstream_show_no_private_names(at, upstream):
    assert at("own").put("/api/v1/crates/new", make_publish("seek-own", "1.0.0")).status == 200
    search_of(upstream, ("seek-own", "6.6.6"), ("seek-other", "1.0.0"))
    assert found(at("all"), "seek-o") == [("seek-own", "1.0.0"), ("seek-other", "1.0.0")]


def test_searches_of_an_upstream_show_nothing_that_a_rule_hides_or_that_is_not_known(at, upstream):
    young = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    upstream.add("seek-old", line={"pubtime": "2020-01-02T03:04:05Z"})
    upstream.add("seek-young", line={"pubtime": young})
    search_of(upstream, ("seek-young", "1.0.0"), ("seek-absent", "1.0.0"), ("seek-old", "1.0.0"))
    assert found(at("aged"), "seek-") == [("seek-old", "1.0.0")]
