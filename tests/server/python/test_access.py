"""Read access to public, hidden, private and guarded repositories, and immediate effect of changes to it."""

import pytest

from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.server

JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture
def new_repository(api, repository):
    """Add a repository with one project. Returns an admin's client of it, and its id."""
    filename, data = make_wheel("inside", "1.0")

    def add(name, visibility="public", **config):
        value = {"name": name, "storage": "main", "format": "python", "visibility": visibility}
        reply = api.post_json("/repository", value | {"config": {"type": "Hosted", **config}})
        assert reply.status == 201, reply
        where = repository(name)
        assert where.put(f"/inside/1.0/{filename}", data).status == 201
        return where, reply.json["id"]

    return add


@pytest.fixture
def new_user(api):
    """Add a user, and return their credentials."""

    def add(name, **rest):
        reply = api.post_json("/users", {"username": name, "password": PASSWORD, **rest})
        assert reply.status == 201, reply
        return (name, PASSWORD), reply.json["id"]

    return add


READS = (
    "/",
    "/simple/",
    "/simple/inside/",
    "/simple/inside",
    "/packages/inside/1.0/inside-1.0-py3-none-any.whl",
    "/packages/inside/1.0/inside-1.0-py3-none-any.whl.metadata",
    "/packages/inside-1.0-py3-none-any.whl",
    "/simple/inside/inside-1.0-py3-none-any.whl",
    "/pypi/inside/json",
    "/pypi/inside/1.0/json",
    "/pypi/inside/1.0/",
    "/pypi-data/inside/json",
)
ABSENT = (
    "/simple/not-inside/",
    "/packages/not-inside-1.0-py3-none-any.whl",
    "/packages/inside/9.9/inside-9.9-py3-none-any.whl",
    "/packages/nonsense",
    "/pypi/not-inside/json",
)


@pytest.mark.parametrize("kind", ["private", "guarded"])
def test_a_closed_repository_requires_credentials_and_reveals_nothing(new_repository, new_user, kind):
    config = {"auth": {"enabled": True}} if kind == "guarded" else {}
    where, _ = new_repository(f"closed-{kind}", "private" if kind == "private" else "public", **config)
    stranger, _ = new_user(f"stranger-{kind}")
    for path in READS:
        assert where.get(path).status in (200, 301)
        assert where.get(path).status in (200, 301)  # may come from the cache
    for path in READS + ABSENT:
        nobody = where.as_user().get(path)
        assert (path, nobody.status) == (path, 401)
        assert nobody.headers["www-authenticate"] == 'Basic realm="pkgrepo"'
        assert nobody.headers["cache-control"] == "no-store"
        known = where.as_user(*stranger).get(path)
        if kind == "private":
            assert (path, known.status) == (path, 404)
        assert where.as_user(USER, "wrong").get(path).status == 401
    for path in ABSENT:
        assert where.get(path).status == 404


def test_responses_of_closed_repositories_are_cacheable_only_privately(new_repository):
    where, _ = new_repository("kept-private", "private")
    for path in READS:
        reply = where.get(path)
        if reply.status == 200:
            assert (path, "private" in reply.headers["cache-control"]) == (path, True)
            assert "access-control-allow-origin" not in reply.headers


def test_a_hidden_repository_is_readable_by_name(new_repository, api):
    where, _ = new_repository("unlisted", "hidden")
    for path in READS:
        assert where.as_user().get(path).status in (200, 301)
    assert "unlisted" not in api.as_user().get("/repository").text
    assert "unlisted" in api.get("/repository").text


def test_a_repository_that_turns_private_is_closed_at_once(new_repository, api):
    where, uid = new_repository("turning")
    nobody = where.as_user()
    for path in READS:
        assert nobody.get(path).status in (200, 301)
        assert nobody.get(path).status in (200, 301)
    assert "public" in nobody.get(READS[4]).headers["cache-control"]
    assert api.post_json(f"/repository/{uid}", {"visibility": "private"}, "PATCH").status == 200
    for path in READS:
        assert (path, nobody.get(path).status) == (path, 401)
    for path in READS:
        reply = where.get(path)
        if reply.status == 200:
            assert (path, reply.headers["cache-control"].startswith("private")) == (path, True)
    assert api.post_json(f"/repository/{uid}", {"visibility": "public"}, "PATCH").status == 200
    for path in READS:
        assert nobody.get(path).status in (200, 301)


def test_an_inactive_repository_refuses_all_requests(new_repository, api):
    where, uid = new_repository("sleeping")
    for path in READS:
        where.get(path)
    assert api.post_json(f"/repository/{uid}", {"active": False}, "PATCH").status == 200
    for path in READS:
        reply = where.get(path)
        assert (path, reply.status, reply.headers["retry-after"]) == (path, 503, "5")
    filename, data = make_wheel("inside", "1.1")
    assert where.put(f"/inside/1.1/{filename}", data).status == 503
    assert api.post_json(f"/repository/{uid}", {"active": True}, "PATCH").status == 200
    assert where.get("/simple/inside/").status == 200


def test_the_name_of_a_removed_repository_can_be_used_again(new_repository, api):
    where, uid = new_repository("phoenix")
    for path in READS:
        where.get(path)
    assert api.delete(f"/repository/{uid}?confirm=phoenix").status == 200
    for path in READS:
        assert (path, where.get(path).status) == (path, 404)
    value = {"name": "phoenix", "storage": "main", "format": "python", "config": {"type": "Hosted"}}
    assert api.post_json("/repository", value).status == 201
    for path in READS[2:]:
        assert (path, where.get(path).status in (404, 301)) == (path, True)
    assert where.get("/simple/", Accept=JSON).json["projects"] == []


def test_grants_and_revocations_take_effect_at_once(new_repository, new_user, api):
    where, _ = new_repository("granted", "private")
    user, uid = new_user("grantee")
    theirs = where.as_user(*user)
    assert theirs.get("/simple/inside/").status == 404
    grant = {"repositories": [{"repository": "main/granted", "actions": ["read"]}]}
    assert api.post_json(f"/users/{uid}/permissions", grant, "PUT").status == 200
    for path in READS:
        assert theirs.get(path).status in (200, 301)
        assert theirs.get(path).status in (200, 301)
    filename, data = make_wheel("inside", "1.1")
    assert theirs.put(f"/inside/1.1/{filename}", data).status == 403
    assert api.post_json(f"/users/{uid}/permissions", {"repositories": []}, "PUT").status == 200
    for path in READS:
        assert (path, theirs.get(path).status) == (path, 404)


def test_a_revoked_token_and_an_inactive_user_read_nothing_more(new_repository, new_user, api):
    where, _ = new_repository("revoking", "private")
    user, uid = new_user("revoked-one", default_repository_actions=["read"])
    reply = api.as_user(*user).post_json("/user/token", {"name": "mine"})
    assert reply.status == 201, reply
    text = reply.json["token"]
    by_token, by_password = where.as_user("__token__", text), where.as_user(*user)
    for path in READS:
        for who in (by_token, by_password):
            assert who.get(path).status in (200, 301)
    assert api.as_user(*user).delete(f"/user/token/{reply.json['id']}").status in (200, 204)
    for path in READS:
        assert (path, by_token.get(path).status) == (path, 401)
    assert by_password.get(READS[2]).status == 200
    assert api.post_json(f"/users/{uid}/status", {"active": False}, "PUT").status in (200, 204)
    for path in READS:
        assert by_password.get(path).status in (401, 403)


def test_credentials_are_checked_on_public_repositories_too(py):
    assert py.as_user(USER, "wrong").get("/simple/").status == 401
