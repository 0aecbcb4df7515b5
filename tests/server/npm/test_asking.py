"""Search, audits, keys: what clients ask beside packages."""

import base64
import gzip
import json
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.server.npm.conftest import BOB

pytestmark = pytest.mark.server


@pytest.fixture
def shop(registry, publish):
    """A repository with some packages to be found."""
    where = registry("search")
    if where.get("/apple-pie").status == 404:
        publish("apple-pie", where=where, description="Sweet thing", keywords=["food", "fruit"], license="MIT")
        publish("apple-pie", "2.0.0-rc.1", where=where, tag="next")
        publish("pie", where=where, author={"name": "Ann Other"}, repository="git+https://example.org/pie.git")
        publish("@food/stew", where=where, description='Hot "thing"', keywords="food, hot")
        publish("@food/apple", where=where, description="Äpfel")
    return where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pie", ["pie", "apple-pie"]),
        ("apple", ["@food/apple", "apple-pie"]),
        ("PIE apple", ["apple-pie"]),
        ("thing", ["@food/stew", "apple-pie"]),
        ('"thing"', ["@food/stew"]),
        ("äpfel", ["@food/apple"]),
        ("@food", ["@food/apple", "@food/stew"]),
        ("scope:food stew", ["@food/stew"]),
        ("keywords:hot,fruit", ["@food/stew", "apple-pie"]),
        ("author:ann", ["pie"]),
        ("maintainer:admin stew", ["@food/stew"]),
        ("nothing-of-that", []),
        ("", ["@food/apple", "@food/stew", "apple-pie", "pie"]),
        ("%_", []),
    ],
)
def test_search_finds_what_fits(shop, text, expected):
    reply = shop.get(f"/-/v1/search?text={quote(text)}&size=20&from=0")
    assert reply.status == 200
    assert sorted(each["package"]["name"] for each in reply.json["objects"]) == sorted(expected)
    assert reply.json["total"] == len(expected)
    if expected and text in ("pie", "apple"):
        assert reply.json["objects"][0]["package"]["name"] == expected[0]


def test_a_result_says_what_clients_print(shop):
    found = {each["package"]["name"]: each for each in shop.get("/-/v1/search?text=pie").json["objects"]}
    package = found["apple-pie"]["package"]
    assert (package["version"], package["scope"], package["license"]) == ("1.0.0", "unscoped", "MIT")
    assert package["publisher"]["username"] == "admin"
    assert package["date"].endswith("Z")
    assert found["pie"]["package"]["links"]["repository"] == "https://example.org/pie"
    assert found["pie"]["score"]["detail"].keys() == {"quality", "popularity", "maintenance"}


def test_results_come_in_pages_and_follow_changes(shop, publish):
    first = shop.get("/-/v1/search?text=&size=2").json
    second = shop.get("/-/v1/search?text=&size=2&from=2").json
    names = [each["package"]["name"] for each in first["objects"] + second["objects"]]
    assert (len(names), len(set(names)), first["total"]) == (4, 4, 4)
    publish("brand-new", where=shop)
    assert shop.get("/-/v1/search?text=brand-new").json["total"] == 1
    rev = shop.get("/brand-new?write=true").json["_rev"]
    shop.ask("DELETE", f"/brand-new/-rev/{rev}")
    assert shop.get("/-/v1/search?text=brand-new").json["total"] == 0


def test_the_old_list_names_everything(shop):
    for path in ("/-/all", "/-/all/since?stale=update_after&startkey=1"):
        listed = shop.get(path).json
        assert {"apple-pie", "pie", "@food/stew", "_updated"} <= listed.keys()


def test_the_old_list_follows_changes(shop, publish):
    shop.get("/-/all")
    publish("late-comer", where=shop)
    assert shop.get("/-/all").json["late-comer"]["versions"] == {"1.0.0": "latest"}
    rev = shop.get("/late-comer?write=true").json["_rev"]
    shop.ask("DELETE", f"/late-comer/-rev/{rev}")
    assert "late-comer" not in shop.get("/-/all").json


def test_who_may_read_some_packages_only_is_told_of_those(registry, publish, as_token):
    private, some = registry("private"), as_token("scoped in private", "private")
    names = {"@team/to-be-seen", "not-to-be-seen"}
    for name in names:
        publish(name, where=private)
    for where, expected in ((private, names), (some, {"@team/to-be-seen"})):
        found = where.get("/-/v1/search?text=be-seen").json
        assert {each["package"]["name"] for each in found["objects"]} == expected
        assert found["total"] == len(expected)
        assert where.get("/-/all").json.keys() & names == expected
    assert private.as_user().get("/-/all").status == 401


def test_a_bulk_audit_names_what_is_vulnerable(npm):
    body = json.dumps({"biter": ["1.0.0", "1.2.0"], "harmless": ["1.0.0"]}).encode()
    for sent, headers in ((body, {}), (gzip.compress(body), {"Content_Encoding": "gzip"})):
        reply = npm.as_user().post("/-/npm/v1/security/advisories/bulk", sent, **headers)
        assert reply.status == 200
        (found,) = reply.json["biter"]
        assert (found["severity"], found["title"], found["cwe"]) == ("high", "It bites", ["CWE-1"])
        assert found["vulnerable_versions"] == ">=1.0.0 <1.2.0"
        assert reply.json.keys() == {"biter"}
    assert npm.post("/-/npm/v1/security/advisories/bulk", b'{"biter":["1.2.0"]}').json == {}


def test_who_may_read_some_packages_only_may_audit(registry, as_token):
    private = registry("private")
    for path in ("advisories/bulk", "audits/quick"):
        where = f"/-/npm/v1/security/{path}"
        assert as_token("scoped in private", "private").post_json(where, {}).status == 200
        assert as_token("scoped", "private").post_json(where, {}).status == 404
        assert private.as_user(*BOB).post_json(where, {}).status == 404
        assert private.as_user().post_json(where, {}).status == 401


@pytest.mark.parametrize("path", ["/-/npm/v1/security/audits/quick", "/-/npm/v1/security/audits"])
def test_a_quick_audit_names_the_paths(npm, path):
    tree = {"name": "app", "dependencies": {"a": {"version": "1.0.0", "dependencies": {"biter": {"version": "1.1.0"}}}}}
    reply = npm.post_json(path, tree)
    (advisory,) = reply.json["advisories"].values()
    assert advisory["findings"][0]["paths"] == ["a>biter"]
    assert reply.json["metadata"]["vulnerabilities"]["high"] == 1
    clean = npm.post_json(path, {"name": "app", "dependencies": {}}).json
    assert (clean["advisories"], clean["metadata"]["totalDependencies"]) == ({}, 0)


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"x":1}', b"[" * 100_000])
def test_an_audit_of_nonsense_is_refused(npm, body):
    assert npm.post("/-/npm/v1/security/advisories/bulk", body).status == 400


def test_a_small_body_of_nothing_but_brackets_is_refused_before_it_is_parsed(npm):
    reply = npm.ask("PUT", "/-/user/org.couchdb.user:nobody", b"[" + b"[]," * 20_000 + b"[]]")
    assert reply.status == 400
    assert reply.json["error"] == "the body has more than 5000 values"


def test_an_audit_does_not_unfold_without_end(npm):
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    assert npm.post("/-/npm/v1/security/advisories/bulk", bomb, Content_Encoding="gzip").status == 413


def test_signatures_are_those_of_the_published_key(npm, publish):
    publish("@signed/x", "1.0.0")
    (key,) = npm.get("/-/npm/v1/keys").json["keys"]
    assert (key["keytype"], key["scheme"], key["expires"]) == ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", None)
    public = serialization.load_der_public_key(base64.b64decode(key["key"]))
    for form in ("application/vnd.npm.install-v1+json", "application/json"):
        dist = npm.get("/@signed%2fx", Accept=form).json["versions"]["1.0.0"]["dist"]
        (signature,) = dist["signatures"]
        assert signature["keyid"] == key["keyid"]
        message = f"@signed/x@1.0.0:{dist['integrity']}".encode()
        public.verify(base64.b64decode(signature["sig"]), message, ec.ECDSA(hashes.SHA256()))
