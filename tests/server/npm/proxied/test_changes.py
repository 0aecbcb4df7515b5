"""Changes that are sent to proxies and virtual repositories."""

from __future__ import annotations

import json

import pytest

from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


def test_own_packages_are_never_asked_upstream(at, upstream, publish):
    everything = at("all")
    upstream.add("private-one", "9.9.9")
    publish("private-one", "1.0.0")
    assert list(everything.get("/private-one").json["versions"]) == ["1.0.0"]
    assert everything.get("/private-one/-/private-one-9.9.9.tgz").status == 404
    assert everything.get("/private-one/-/private-one-1.0.0.tgz").status == 200
    assert upstream.count() == 0
    upstream.add("public-one")
    assert everything.get("/public-one/latest").json["version"] == "1.0.0"


def test_packages_are_published_through_a_virtual_repository(at, publish):
    everything, own = at("all"), at("own")
    publish("@own/through", where=everything)
    document = everything.get("/@own%2fthrough?write=true").json
    assert document["_rev"] == own.get("/@own%2fthrough").json["_rev"]
    assert everything.put("/-/package/@own%2fthrough/dist-tags/stable", b'"1.0.0"').status == 201
    assert own.get("/-/package/@own%2fthrough/dist-tags").json == {"latest": "1.0.0", "stable": "1.0.0"}
    assert everything.delete(f"/@own%2fthrough/-rev/{document['_rev']}").status in (200, 409)


@pytest.mark.parametrize("name", ["mirror", "readable"])
def test_repositories_without_a_target_take_no_changes(at, upstream, name, publish):
    where = at(name)
    upstream.add("fixed")
    for reply in (
        where.put("/new", make_publish("new", "1.0.0")),
        where.put("/", make_publish("new", "1.0.0")),
        where.put("/fixed/-rev/1-a", b"{}"),
        where.delete("/fixed/-rev/1-a"),
        where.delete("/fixed/-/fixed-1.0.0.tgz/-rev/1-a"),
        where.put("/-/package/fixed/dist-tags/x", b'"1.0.0"'),
        where.delete("/-/package/fixed/dist-tags/x"),
        where.post("/-/package/fixed/access", b"{}"),
        where.put("/-/user/v1/star", b"{}"),
    ):
        assert reply.status == 405, reply
        assert reply.headers["allow"] == "GET, HEAD"
        assert where.url.rpartition("/")[2] in reply.json["error"]


def test_login_at_a_virtual_repository_publishes_to_its_target_and_nowhere_else(at, publish):
    everything = at("all")
    body = json.dumps({"name": USER, "password": PASSWORD}).encode()
    token = everything.put("/-/user/org.couchdb.user:admin", body).json["token"]
    publish("by-login", where=everything.as_user("__token__", token))
    assert at("own").as_user("__token__", token).get("/by-login").status == 200
    assert at("mine").as_user("__token__", token).put("/new", make_publish("new", "1.0.0")).status == 403
    readable = at("readable").put("/-/user/org.couchdb.user:admin", body).json["token"]
    assert at("own").as_user("__token__", readable).put("/new", make_publish("new", "1.0.0")).status == 403


def test_users_log_in_at_a_proxy(mirror):
    login = mirror.put("/-/user/org.couchdb.user:admin", json.dumps({"name": USER, "password": PASSWORD}).encode())
    assert login.status == 201
    assert mirror.as_user("__token__", login.json["token"]).get("/-/whoami").json == {"username": USER}
    assert mirror.get("/-/ping").status == 200
