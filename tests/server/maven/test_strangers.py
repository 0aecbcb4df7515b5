"""Reads without credentials: the same refusal for what is private and for what does not exist."""

from __future__ import annotations

import pytest

from tests.support.http_client import HttpClient
from tests.support.maven_files import JAR

pytestmark = pytest.mark.server

PATH = "/com/example/hidden/1.0/hidden-1.0.jar"
VARYING = ("date", "x-request-id", "content-length")


@pytest.fixture
def refused(repository):
    """Return how a path of a repository is refused without credentials, without the name (of seven letters)."""

    def ask(name, path, method="GET", **fields):
        reply = repository(name).as_user().ask(method, path, headers=fields)
        headers = {key: value for key, value in reply.headers.items() if key not in VARYING}
        length = reply.headers["content-length"]
        return reply.status, reply.reason.replace(name, "X"), headers, length, reply.body.replace(name.encode(), b"X")

    return ask


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", [PATH, f"{PATH}.sha1", "/absent.txt", "/com/", "", "/a//b", "/%ff"])
def test_a_private_repository_is_refused_like_one_that_does_not_exist(repository, refused, method, path):
    assert repository("private").put(PATH, JAR).status in (200, 201)
    for _ in range(2):
        private, nothere = refused("private", path, method), refused("nothere", path, method)
        while path == "/%ff" and 400 in (private[0], nothere[0]):  # the catalog cannot tell at once who may read
            refused("private", PATH), refused("nothere", PATH)
            private, nothere = refused("private", path, method), refused("nothere", path, method)
        assert private == nothere
    status, reason, headers, _, body = private
    assert (status, reason) == (401, "there is no repository main/X here, or it needs credentials")
    assert (headers["www-authenticate"], headers["cache-control"]) == ('Basic realm="pkgrepo"', "no-store")
    assert (b"main/X" in body) is (method == "GET")


def test_conditions_and_ranges_do_not_matter(refused):
    for fields in ({"If-None-Match": "*"}, {"Range": "bytes=0-1"}, {"If-Match": '"x"'}, {"Accept": "text/html"}):
        assert refused("private", PATH, **fields) == refused("private", PATH)


def test_the_name_is_repeated_as_it_was_spelt(format_server):
    nobody = HttpClient(f"{format_server.url}/repositories/MAIN")
    assert "MAIN/Priv%61te" not in nobody.get("/Priv%61te/x").text
    assert "MAIN/Private" in nobody.get("/Priv%61te/x").text


def test_credentials_and_public_repositories_are_not_affected(repository, mvn, as_token):
    where = repository("private")
    assert where.put(PATH, JAR).status in (200, 201)
    for _ in range(2):
        assert where.as_user().get(PATH).status == 401
        assert where.get(PATH).status == 200
        assert where.as_user("admin", "wrong").get(PATH).status == 401
        assert as_token("reader", "private").get(PATH).status == 200
        assert mvn.as_user().get("/absent.txt").status == 404


def test_a_repository_that_becomes_private_is_refused_at_once(api, format_server):
    value = {"name": "turning", "storage": "main", "format": "maven", "visibility": "public"}
    made = api.post_json("/repository", {**value, "config": {"type": "Hosted"}})
    assert made.status == 201
    admin = HttpClient(f"{format_server.url}/repositories/main/turning", ("admin", "correct horse battery"))
    nobody = admin.as_user()
    assert nobody.get(PATH).status == 404
    assert admin.put(PATH, JAR).status == 201
    assert nobody.get(PATH).body == JAR
    for visibility, status in (("private", 401), ("public", 200), ("private", 401)):
        changed = api.post_json(f"/repository/{made.json['id']}", {"visibility": visibility}, "PATCH")
        assert changed.status == 200, changed
        assert [nobody.get(PATH).status, nobody.get(PATH).status] == [status] * 2
