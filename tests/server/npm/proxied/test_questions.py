"""Questions that upstreams answer: keys, attestations, searches and audits."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.proxied import kept
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

BULK, QUICK = "/-/npm/v1/security/advisories/bulk", "/-/npm/v1/security/audits/quick"
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
    upstream.misbehave(BULK, failing(500), repeat=True)
    failed = mirror.post(BULK, asked)
    assert (failed.status, failed.json) == (200, {})


def test_audits_of_trees_are_passed_on_without_own_packages(at, upstream, publish):
    everything = at("all")
    publish("hidden")
    answer = {"actions": [], "advisories": {"1": {"module_name": "left"}}, "muted": [], "metadata": {"a": 1}}
    upstream.serve(QUICK, json.dumps(answer).encode())
    tree = {
        "name": "our-project",
        "version": "1.2.3",
        "requires": {"left": "^1", "hidden": "^1"},
        "dependencies": {
            "left": {"version": "1.0.0", "requires": {"hidden": "1"}, "dependencies": {"deep": {"version": "2.0.0"}}},
            "hidden": {"version": "1.0.0", "dependencies": {"only": {"version": "1.0.0"}}},
        },
    }
    assert everything.post(QUICK, json.dumps(tree).encode()).json == answer
    told = json.loads(upstream.requests(QUICK)[-1].body)
    assert told["requires"] == {"left": "^1"}
    assert set(told["dependencies"]) == {"left"}
    assert told["dependencies"]["left"]["dependencies"]["deep"]["version"] == "2.0.0"
    assert b"hidden" not in upstream.requests(QUICK)[-1].body
    assert b"our-project" not in upstream.requests(QUICK)[-1].body
    upstream.misbehave(QUICK, failing(500), repeat=True)
    failed = everything.post(QUICK, json.dumps(tree).encode())
    assert failed.json["metadata"]["totalDependencies"] == 4
