"""Questions that upstreams answer: keys, attestations, searches and audits."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.proxied import kept
from tests.support.upstreams.faults import HTML, failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

BULK, QUICK = "/-/npm/v1/security/advisories/bulk", "/-/npm/v1/security/audits/quick"
FULL = "/-/npm/v1/security/audits"
KEYS = "/-/npm/v1/keys"


def test_keys_of_the_upstream_are_passed_on(at, upstream, publish):
    mirror, everything = at("mirror"), at("all")
    publish("signed")
    odd = [{"keyid": ["list"]}, {"keyid": {}}, {}]
    upstream.serve(KEYS, json.dumps({"keys": [*odd, {"keyid": "theirs", "key": "x"}]}).encode())
    for _ in range(2):
        assert mirror.get(KEYS).json["keys"] == [{"keyid": "theirs", "key": "x"}]
    assert upstream.count(KEYS) == 1
    assert len(everything.get(KEYS).json["keys"]) == 2


def test_of_a_long_search_the_beginning_is_asked(at, upstream):
    for name in ("mirror", "all"):
        search(at(name), "a" * 9000)
    asked = max(each.path for each in upstream.requests() if each.path.startswith("/-/v1/search"))
    assert len(asked) < 1000


def test_packages_are_served_while_other_services_of_the_upstream_fail(at, upstream):
    upstream.add("served-on")
    for path in ("/-/v1/search", BULK, QUICK, KEYS, "/-/npm/v1/attestations/served-on@1.0.0"):
        upstream.misbehave(path, failing(500), repeat=True)
    for number in range(8):
        search(at("fragile"), f"text-{number}")
        at("fragile").get(KEYS)
        at("fragile").post(BULK, b'{"served-on":["1.0.0"]}')
        at("fragile").get("/-/npm/v1/attestations/served-on@1.0.0")
    assert at("fragile").get("/served-on").status == 200
    assert at("fragile").get("/served-on/-/served-on-1.0.0.tgz").status == 200


def test_packages_are_served_while_another_one_fails(at, upstream):
    upstream.add("beside-a-broken-one")
    upstream.misbehave("/broken-one", failing(500), repeat=True)
    with ThreadPoolExecutor(4) as clients:
        for reply in clients.map(lambda _: at("fragile").get("/broken-one"), range(12)):
            assert (reply.status, "it answers 500" in reply.json["error"]) == (502, True)
    assert at("fragile").get("/beside-a-broken-one").status == 200


@pytest.mark.parametrize("body", [b"{}", b'{"error":"no"}', b'{"keys":{}}', b'{"keys":[1]}', b"<html>"])
def test_answer_that_has_no_keys_does_not_mean_that_nothing_is_signed(at, upstream, body):
    upstream.misbehave(KEYS, Answer(body=body), repeat=True)
    assert at("faulty").get(KEYS).status == 502


def test_attestations_of_the_upstream_are_passed_on(mirror, upstream):
    upstream.add("@sc/attested", dist={"attestations": {"url": "https://registry.example/x", "provenance": {"a": 1}}})
    body = {"attestations": [{"predicateType": "p", "bundle": {}}]}
    upstream.serve("/-/npm/v1/attestations/@sc%2fattested@1.0.0", json.dumps(body).encode())
    url = mirror.get("/@sc%2fattested").json["versions"]["1.0.0"]["dist"]["attestations"]["url"]
    assert mirror.get(url.removeprefix(mirror.url)).json == body
    assert mirror.get("/-/npm/v1/attestations/@sc/attested@1.0.1").status == 404
    assert mirror.get("/-/npm/v1/attestations/@sc/attested@..%2f..%2fx").status == 404


def test_search_has_kept_packages_and_those_of_the_upstream(at, upstream, publish):
    mirror, everything = at("mirror"), at("all")
    upstream.add("findme-kept")
    kept(mirror, "/findme-kept/-/findme-kept-1.0.0.tgz")
    publish("findme-own")
    theirs = [{"package": {"name": name, "version": "7.0.0"}} for name in ("findme-own", "findme-kept", "findme-far")]

    def results(_request):
        return Answer(body=json.dumps({"objects": theirs, "total": 3, "time": ""}).encode())

    upstream.dynamic["/-/v1/search"] = results
    found = {each["package"]["name"]: each["package"]["version"] for each in search(mirror, "findme")}
    assert found == {"findme-kept": "7.0.0", "findme-own": "7.0.0", "findme-far": "7.0.0"}
    found = {each["package"]["name"]: each["package"]["version"] for each in search(everything, "findme")}
    assert found == {"findme-kept": "7.0.0", "findme-own": "1.0.0", "findme-far": "7.0.0"}
    upstream.forget()
    assert [each["package"]["name"] for each in search(at("beside_private"), "findme")] == ["findme-kept"]
    assert upstream.exchanges_of(None) == []
    upstream.misbehave("/-/v1/search", failing(500), repeat=True)
    assert [each["package"]["name"] for each in search(mirror, "findme")] == ["findme-kept"]


def test_search_shows_no_package_of_an_upstream_under_the_name_of_our_own(at, mirror, upstream, publish):
    upstream.add("twofold", "9.0.0", description="strange")
    kept(mirror, "/twofold/-/twofold-9.0.0.tgz")
    publish("twofold")
    upstream.misbehave("/-/v1/search", failing(500), repeat=True)
    assert [each["package"]["version"] for each in search(mirror, "strange")] == ["9.0.0"]
    assert search(at("readable"), "strange") == []
    assert [each["package"]["version"] for each in search(at("readable"), "twofold")] == ["1.0.0"]


def search(where, text):
    reply = where.get(f"/-/v1/search?text={text}&size=20")
    assert reply.status == 200, reply
    return reply.json["objects"]


def test_audits_are_passed_on_without_own_packages(at, upstream, publish):
    mirror, everything = at("mirror"), at("all")
    publish("secret")
    advisories = {"left": [{"id": 1, "severity": "high"}], "secret": [{"id": 2}], "unasked": []}
    upstream.serve(BULK, json.dumps(advisories).encode())
    asked = json.dumps({"left": ["1.0.0"], "secret": ["1.0.0"]}).encode()
    assert everything.post(BULK, gzip.compress(asked), Content_Encoding="gzip").json == {"left": advisories["left"]}
    assert json.loads(upstream.requests(BULK)[-1].body) == {"left": ["1.0.0"]}
    assert set(mirror.post(BULK, asked).json) == {"left", "secret"}


@pytest.mark.parametrize("path", [QUICK, FULL])
def test_audits_of_trees_ask_the_upstream_about_names_and_versions_only(at, upstream, publish, path):
    everything = at("all")
    hidden = f"hidden-{len(path)}"
    publish(hidden)
    entry = {"id": 7, "severity": "high", "title": "x", "url": "https://a.example", "vulnerable_versions": "<3.0.0"}
    upstream.serve(BULK, json.dumps({"deep": [entry]}).encode())
    tree = {
        "name": "our-project",
        "version": "1.2.3",
        "requires": {"left": "^1", hidden: "^1"},
        "dependencies": {
            "left": {"version": "1.0.0", "requires": {hidden: "1"}, "dependencies": {"deep": {"version": "2.0.0"}}},
            hidden: {"version": "1.0.0"},
        },
    }
    reply = everything.post_json(path, tree)
    assert json.loads(upstream.requests(BULK)[-1].body) == {"left": ["1.0.0"], "deep": ["2.0.0"]}
    assert reply.json["advisories"]["7"]["findings"][0]["paths"] == ["left>deep"]
    assert reply.json["metadata"]["vulnerabilities"]["high"] == 1
    assert upstream.count(path) == 0


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (failing(500), 502),
        (failing(403), 403),
        (HTML, 502),
        (Answer(body=b'{"error":"not allowed"}'), 502),
        (Answer(404), 404),
        (Answer(410), 404),
    ],
    ids=["error", "forbidden", "page", "json", "unknown", "retired"],
)
@pytest.mark.parametrize("path", [BULK, QUICK, FULL])
def test_audit_that_no_upstream_has_answered_is_not_clean(at, upstream, path, answer, status):
    upstream.misbehave(BULK, answer, repeat=True)
    body = {"left": ["1.0.0"]} if path == BULK else {"dependencies": {"left": {"version": "1.0.0"}}}
    for where in ("faulty", "all"):
        assert at(where).post_json(path, body).status == status


def test_audit_of_own_packages_asks_nobody(at, upstream, publish):
    publish("only-own")
    upstream.misbehave(BULK, failing(500), repeat=True)
    reply = at("all").post_json(BULK, {"only-own": ["1.0.0"]})
    assert (reply.status, "nothing was checked" in reply.text) == (404, True)
    assert at("all").post_json(BULK, {}).json == {}
    assert upstream.count(BULK) == 0


def test_tree_without_versions_is_refused_with_the_reason_of_the_upstream(at, upstream):
    """npm 10 sends it after the bulk request has failed, if its lock file is of version 3."""
    tree = {"name": "our-project", "requires": {"left": "^1"}}
    upstream.serve(BULK, b"{}")
    assert at("faulty").post_json(QUICK, tree).status == 400
    upstream.misbehave(BULK, failing(503), repeat=True)
    assert at("faulty").post_json(QUICK, tree).status == 503


@pytest.mark.parametrize(("name", "status", "asked"), [("both", 502, 0), ("copies", 200, 1)])
def test_while_a_route_fails_only_its_replica_is_asked_for_advisories(at, upstream, second, name, status, asked):
    upstream.misbehave(BULK, failing(500), repeat=True)
    second.serve(BULK, b"{}")
    question = json.dumps({f"asked-of-{name}": ["1.0.0"]}).encode()
    assert (at(name).post(BULK, question).status, second.count(BULK)) == (status, asked)
