"""Documents of packages of upstreams."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.http_client import HttpClient
from tests.support.upstreams import faults
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import ABBREVIATED

pytestmark = pytest.mark.server


def test_document_of_the_upstream_has_our_addresses(mirror, upstream):
    upstream.add("@sc/doc", "1.0.0", dependencies={"left": "^1"}, scripts={"install": "x"})
    upstream.add("@sc/doc", "1.1.0-rc.1", tag="next", dist={"signatures": [{"keyid": "k", "sig": "s"}]})
    for path in ("/@sc%2fdoc", "/@sc/doc", "/package/@sc%2fdoc"):
        document = mirror.get(path).json
        assert document["dist-tags"] == {"latest": "1.0.0", "next": "1.1.0-rc.1"}
        version = document["versions"]["1.1.0-rc.1"]
        assert version["dist"]["tarball"] == mirror.url + "/@sc/doc/-/doc-1.1.0-rc.1.tgz"
        assert version["dist"]["signatures"] == [{"keyid": "k", "sig": "s"}]
        assert document["versions"]["1.0.0"]["dependencies"] == {"left": "^1"}
    (asked,) = upstream.requests()
    assert (asked.path, asked.fields["accept"]) == ("/@sc%2fdoc", "application/json")
    short = mirror.get("/@sc%2fdoc", Accept=ABBREVIATED)
    assert short.headers["content-type"] == ABBREVIATED
    assert short.json["versions"]["1.0.0"]["hasInstallScript"] is True
    assert set(short.json["time"]) == {"created", "modified", "1.0.0", "1.1.0-rc.1"}
    assert upstream.count() == 1


def test_document_has_validators_of_its_own_and_is_compressed(mirror, upstream):
    upstream.add("validated", keywords=["x" * 2000])
    first = mirror.get("/validated")
    assert mirror.get("/validated", If_None_Match=first.headers["etag"]).status == 304
    packed = mirror.get("/validated", Accept_Encoding="gzip")
    assert json.loads(gzip.decompress(packed.body)) == first.json
    assert packed.headers["etag"] != first.headers["etag"]
    assert mirror.head("/validated").headers["content-length"] == str(len(first.body))


def test_versions_and_tags_are_selected(mirror, upstream):
    upstream.add("chosen", "1.0.0")
    upstream.add("chosen", "2.0.0-rc.1", tag="next")
    for selector, version in (("latest", "1.0.0"), ("next", "2.0.0-rc.1"), ("v1.0.0", "1.0.0")):
        found = mirror.get(f"/chosen/{selector}").json
        assert (found["version"], found["dist"]["tarball"]) == (
            version,
            f"{mirror.url}/chosen/-/chosen-{version}.tgz",
        )
        assert mirror.get(f"/package/chosen/{selector}").json == found
    assert mirror.get("/chosen/3.0.0").status == 404
    assert mirror.get("/-/package/chosen/dist-tags").json == {"latest": "1.0.0", "next": "2.0.0-rc.1"}
    assert mirror.get("/-/package/chosen/visibility").json == {"public": True}
    assert upstream.count() == 1


def test_versions_that_differ_in_build_metadata_alone_are_all_served(mirror, api, upstream):
    data = {text: upstream.add("builds", text) for text in ("1.0.0", "1.0.0+one", "1.0.0+two")}
    document = mirror.get("/builds").json
    assert set(document["versions"]) == set(data)
    for text, tarball in data.items():
        assert mirror.get(f"/builds/{text.replace('+', '%2B')}").json["version"] == text
        address = document["versions"][text]["dist"]["tarball"]
        assert mirror.get(address.removeprefix(mirror.url)).body == tarball
        explained = api.get(f"/explain?repository=main%2Fmirror&package=builds&version={text.replace('+', '%2B')}").json
        assert explained["version"]["version"] == text, explained


def test_unknown_package_is_not_found_and_the_answer_remembered(mirror, upstream):
    for _ in range(2):
        reply = mirror.get("/nowhere")
        assert (reply.status, reply.json["error"]) == (404, "not_found")
    assert upstream.count("/nowhere") == 1


def test_failing_upstream_is_no_missing_package(mirror, upstream):
    upstream.add("broken")
    upstream.misbehave("/broken", failing(500), repeat=True)
    reply = mirror.get("/broken")
    assert reply.status == 502
    assert "127.0.0.1" not in reply.json["error"].replace("'127.0.0.1'", "")
    upstream.behave()
    assert mirror.get("/broken").status == 200


def test_changes_upstream_are_seen_after_the_ttl_or_on_request(at, upstream):
    short, mirror = at("short"), at("mirror")
    for name, where, headers in (("moving", short, {}), ("asked", mirror, {})):
        upstream.add(name, "1.0.0")
        assert list(where.get(f"/{name}").json["versions"]) == ["1.0.0"]
        upstream.add(name, "1.1.0")
        upstream.change(name)["versions"]["1.0.0"]["deprecated"] = "old"
        upstream.change(name)
        again = where.get(f"/{name}", **headers).json
        if where is short:
            assert again["dist-tags"] == {"latest": "1.1.0"}
            assert again["versions"]["1.0.0"]["deprecated"] == "old"
        else:
            assert list(again["versions"]) == ["1.0.0"]


def test_repository_describes_itself(mirror):
    assert mirror.get("/").json["db_name"] == "mirror"


def test_young_versions_are_hidden_and_latest_is_the_highest_of_the_others(at, upstream):
    aged = at("aged")
    now = datetime.now(UTC)
    for version, days in (("1.0.0", 30), ("1.1.0", 20), ("2.0.0-rc.1", 10), ("1.2.0", 1)):
        tag = "next" if "-" in version else "latest"
        published = (now - timedelta(days=days)).isoformat().replace("+00:00", "Z")
        upstream.add("aging", version, published=published, tag=tag, description=version)
    for accept in ("application/json", ABBREVIATED):
        document = aged.get("/aging", Accept=accept).json
        assert list(document["versions"]) == ["1.0.0", "1.1.0", "2.0.0-rc.1"]
        assert document["dist-tags"] == {"latest": "1.1.0", "next": "2.0.0-rc.1"}
        assert "1.2.0" not in document["time"]
    assert aged.get("/aging").json["description"] == "1.1.0"
    assert aged.get("/aging/latest").json["version"] == "1.1.0"
    assert aged.get("/aging/1.2.0").status == 403
    refused = aged.get("/aging/-/aging-1.2.0.tgz")
    assert refused.status == 403
    assert "minimum_release_age" in refused.json["error"]


def test_next_route_is_asked_for_what_the_first_lacks_or_cannot_answer(at, upstream, second):
    both = at("both")
    second.add("second-only")
    assert both.get("/second-only/latest").json["version"] == "1.0.0"
    assert (upstream.count(), second.count()) == (1, 1)
    upstream.add("in-both", "2.0.0")
    second.add("in-both", "1.0.0")
    upstream.misbehave("/in-both", failing(500))
    assert both.get("/in-both").status == 502
    upstream.misbehave("/in-both", failing(500))
    assert list(at("copies").get("/in-both").json["versions"]) == ["1.0.0"]
    assert list(both.get("/in-both").json["versions"]) == ["2.0.0"]


def test_versions_of_several_proxies_are_merged(at, upstream, second):
    upstream.add("shared", "1.0.0", description="first")
    second.add("shared", "1.0.0", description="second")
    second.add("shared", "1.1.0", tag="next")
    document = at("merged").get("/shared").json
    assert {version: each["description"] for version, each in document["versions"].items()} == {
        "1.0.0": "first",
        "1.1.0": "shared for tests",
    }
    assert document["dist-tags"] == {"latest": "1.0.0", "next": "1.1.0"}
    assert at("merged").get("/-/package/shared/dist-tags").json == document["dist-tags"]


@pytest.mark.parametrize(
    "fault",
    [
        faults.HTML,
        faults.TRUNCATED,
        faults.RESET,
        faults.NO_ANSWER,
        faults.not_modified,
        faults.gzip_bomb(256 * faults.MIB),
        faults.failing(400),
        faults.redirect("/again"),
        Answer(body=b'{"name":"other","versions":{}}'),
        Answer(body=b'{"name":"faulty","versions":[]}'),
        Answer(body=b'{"name":"faulty","versions":' + b"[" * 100_000),
        faults.failing(429, retry_after="60"),  # the last one: nothing is asked for a minute
    ],
    ids=range(12),
)
def test_document_that_cannot_be_used_is_an_error_and_no_missing_package(at, upstream, fault):
    faulty = at("faulty")
    upstream.add("fine")
    assert faulty.get("/fine").status == 200  # so that faults in a row do not end all requests
    upstream.add("faulty")
    upstream.misbehave("/again", faults.redirect("/again"), repeat=True)
    upstream.misbehave("/faulty", fault, repeat=True)
    reply = faulty.get("/faulty")
    assert reply.status in (502, 503, 504), reply
    assert "upstream" in reply.json["error"]
    assert upstream.count("/faulty") > 0


FORBIDDEN = Answer(403, b'{"error":"blocked by policy: CVE-2026-1"}', {"Content-Type": "application/json"})
UNAUTHORIZED = Answer(401, b"{}", {"WWW-Authenticate": "Basic"})


@pytest.mark.parametrize("where", ["both", "ordered"])
def test_a_decision_of_the_better_upstream_ends_the_search(at, upstream, second, where):
    """No upstream behind it is asked, and its sentence reaches the client."""
    name = f"decided-{where}"
    second.add(name)
    upstream.misbehave(f"/{name}", FORBIDDEN, repeat=True)
    for _ in range(2):
        reply = at(where).get(f"/{name}")
        assert reply.status == 403
        assert "blocked by policy: CVE-2026-1" in reply.json["error"]
    assert second.count(f"/{name}") == 0
    told = HttpClient(at(where).url.partition("/repositories")[0]).get(
        f"/api/explain?repository=main/{where}&package={name}"
    )
    assert (told.json["outcome"], told.json["steps"][-1]["step"]) == ("denied", "denied")


def test_a_sentence_in_any_script_is_passed_on(at, upstream):
    sentence = "gesperrt: \u00fcberpr\u00fcft \u65e5\u672c \U0001f512"
    upstream.misbehave("/any-script", Answer(403, json.dumps({"error": sentence}).encode()), repeat=True)
    reply = at("short").get("/any-script")
    assert (reply.status, sentence in reply.json["error"]) == (403, True)


def test_a_decision_is_passed_on_also_where_an_answer_is_kept(at, upstream):
    upstream.add("decided-later")
    assert at("short").get("/decided-later").status == 200
    upstream.misbehave("/decided-later", FORBIDDEN, repeat=True)
    assert at("short").get("/decided-later").status == 403
    upstream.behave()
    assert at("short").get("/decided-later").status == 200


def test_a_decision_of_a_later_member_leaves_the_versions_of_earlier_ones(at, upstream, second):
    upstream.add("half-decided")
    second.misbehave("/half-decided", FORBIDDEN, repeat=True)
    assert list(at("merged").get("/half-decided").json["versions"]) == ["1.0.0"]
    second.behave()
    second.add("half-decided-too")
    upstream.misbehave("/half-decided-too", FORBIDDEN, repeat=True)
    assert at("merged").get("/half-decided-too").status == 403


def test_missing_credentials_are_no_question_to_the_client_and_are_logged_once(at, format_server, upstream):
    upstream.add("unauthorized")
    upstream.misbehave("/unauthorized", UNAUTHORIZED, repeat=True)
    for _ in range(3):
        reply = at("short").get("/unauthorized")
        assert (reply.status, "auth of the route" in reply.json["error"]) == (424, True)
        assert "www-authenticate" not in reply.headers
    format_server.lines("/main/short/unauthorized 424 ", 3)
    assert len(format_server.lines("it wants credentials, and the route has none", 1)) == 1


def test_kept_documents_are_served_while_credentials_are_missing(at, upstream):
    upstream.add("known-before")
    assert at("short").get("/known-before").status == 200
    upstream.misbehave("/known-before", UNAUTHORIZED, repeat=True)
    assert at("short").get("/known-before").status == 200


def test_callers_who_may_not_read_cause_no_requests_upstream(at, upstream):
    upstream.add("unseen")
    anonymous = at("hidden").as_user()
    for path in (
        "/unseen",
        "/unseen/latest",
        "/unseen/-/unseen-1.0.0.tgz",
        "/package/unseen",
        "/package/unseen/1.0.0",
        "/-/package/unseen/dist-tags",
        "/-/npm/v1/attestations/unseen@1.0.0",
        "/-/npm/v1/keys",
        "/-/v1/search?text=unseen",
    ):
        assert anonymous.get(path).status == 401, path
    assert anonymous.post("/-/npm/v1/security/advisories/bulk", b'{"unseen":["1.0.0"]}').status == 401
    assert anonymous.put("/unseen", b"{}").status == 401
    assert upstream.count() == 0
    assert at("hidden").get("/unseen").status == 200


def test_log_has_only_the_requests_of_an_install(format_server, mirror, upstream):
    """Neither each connection nor each file is an event for an operator, beside the access log."""
    upstream.add("loud")
    path = upstream.tarball_path("loud", "1.0.0")
    assert mirror.get("/loud").status == mirror.get(path).status == 200
    answered = format_server.lines(f"GET {mirror.parts.path}{path} ", 1)
    others = [line for line in format_server.output.splitlines() if "loud" in line and "GET" not in line]
    assert (len(answered), others, "factory" in format_server.output) == (1, [], False)
