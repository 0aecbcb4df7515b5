"""Login, tokens and profile, with the requests that npm sends."""

import re
from urllib.parse import urlencode, urlsplit

import pytest

from tests.server.npm.conftest import BOB
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


class Bearer(HttpClient):
    """A client that sends a token."""

    def __init__(self, where, token):
        super().__init__(where.url)
        self._token = token

    def ask(self, method, path, body=None, headers=None):
        return super().ask(method, path, body, {"Authorization": f"Bearer {self._token}", **(headers or {})})


@pytest.fixture
def login(npm):
    def put(username=USER, password=PASSWORD, where=npm):
        document = {"_id": f"org.couchdb.user:{username}", "name": username, "password": password, "type": "user"}
        return where.as_user().post_json(f"/-/user/org.couchdb.user:{username}", document, "PUT")

    return put


@pytest.fixture
def bearer(npm, login):
    return Bearer(npm, login().json["token"])


def test_whoami_accepts_all_credentials(npm, bearer, as_token):
    for who in (npm, bearer, as_token("reader")):
        assert who.get("/-/whoami").json == {"username": USER}
    assert npm.as_user().get("/-/whoami").status == 401
    assert Bearer(npm, "pkgr_p_nothing").get("/-/whoami").status == 401


def test_a_login_gives_a_token_for_this_repository(npm, repository, login, bearer):
    reply = login()
    assert (reply.status, reply.json["ok"], reply.json["id"]) == (201, True, "org.couchdb.user:admin")
    assert bearer.get("/-/package/nothing/dist-tags").status == 404
    assert Bearer(repository("private"), reply.json["token"]).get("/anything").status == 404
    assert bearer.ask("PUT", "/nothing", "{}").status == 400  # the user may write to this repository


@pytest.mark.parametrize("member", [{"name": "bob"}, {"_id": "org.couchdb.user:bob"}, {"_id": USER}, {"_id": 1}])
def test_a_login_with_another_user_s_document_is_refused(npm, member):
    document = {"_id": f"org.couchdb.user:{USER}", "name": USER, "password": PASSWORD, "type": "user"}
    reply = npm.as_user().post_json(f"/-/user/org.couchdb.user:{USER}", document | member, "PUT")
    assert (reply.status, reply.json) == (400, {"error": "the document is of another user than 'admin'"})


def test_a_wrong_password_is_refused_with_a_sentence(login):
    for username in (USER, "nobody-here"):
        reply = login(username, "wrong")
        assert (reply.status, reply.json) == (401, {"error": "incorrect username or password"})


def test_a_login_document_must_be_of_its_user(npm):
    body = {"name": "bob", "password": BOB[1]}
    assert npm.as_user().post_json("/-/user/org.couchdb.user:admin", body, "PUT").status == 400
    assert npm.as_user().post_json("/-/user/org.couchdb.user:bob", {"name": "bob"}, "PUT").status == 400
    assert npm.as_user().post_json("/-/user/org.anydb.user:bob", body, "PUT").status == 201
    assert npm.as_user().post_json("/-/user/org.couchdb.user:bob/-rev/1-2", body, "PUT").status == 201


def test_a_token_as_password_issues_no_other_token(login, token_texts):
    assert login(password=token_texts["reader"]).json["token"] == token_texts["reader"]


def test_a_user_document_contains_no_secret(npm):
    reply = npm.get("/-/user/org.couchdb.user:bob")
    assert reply.json.keys() == {"_id", "name", "email", "type", "roles", "date"}
    assert npm.as_user().get("/-/user/org.couchdb.user:bob").status == 401
    nobody = npm.get("/-/user/org.couchdb.user:nobody")
    assert (nobody.status, nobody.json) == (404, {"error": "user 'nobody' does not exist"})


def test_the_email_of_a_user_is_for_that_user_and_those_who_manage_users(npm, api):
    api.post_json("/users", {"username": "curious", "password": "curious keeps cats"})
    path = "/-/user/org.couchdb.user:bob"
    assert npm.get(path).json["email"] == "bob@example.org"
    assert npm.as_user(*BOB).get(path).json["email"] == "bob@example.org"
    seen = npm.as_user("curious", "curious keeps cats").get(path)
    assert (seen.status, seen.json["name"], seen.json["email"]) == (200, "bob", "")
    assert b"bob@example.org" not in seen.body


def test_logout_revokes_the_token_and_is_not_logged(format_server, npm, login):
    token = login().json["token"]
    bearer = Bearer(npm, token)
    assert bearer.ask("DELETE", f"/-/user/token/{token}").json == {"ok": True}
    assert bearer.get("/-/whoami").status == 401
    assert format_server.lines("/-/user/token/***", 1)
    assert token not in format_server.output


def test_tokens_are_made_listed_and_revoked(npm, bearer):
    for body in (
        {"password": PASSWORD, "readonly": True, "cidr_whitelist": ["127.0.0.0/8"]},
        {"password": PASSWORD, "name": "ci", "expires": 30},
    ):
        reply = bearer.post_json("/-/npm/v1/tokens", body)
        assert reply.status == 201
        made = reply.json
        assert Bearer(npm, made["token"]).get("/-/whoami").json == {"username": USER}
        listed = {each["key"]: each for each in bearer.get("/-/npm/v1/tokens").json["objects"]}
        assert listed[made["key"]]["token"] == made["token"][:6]
        assert listed[made["key"]]["readonly"] is bool(body.get("readonly"))
        assert listed[made["key"]]["cidr_whitelist"] == body.get("cidr_whitelist")
        assert bearer.ask("DELETE", f"/-/npm/v1/tokens/token/{made['key']}").status == 204
        assert Bearer(npm, made["token"]).get("/-/whoami").status == 401
        assert made["key"] not in bearer.get("/-/npm/v1/tokens").text


def test_a_read_only_token_neither_publishes_nor_changes_the_account(npm, bearer, login):
    made = bearer.post_json("/-/npm/v1/tokens", {"password": PASSWORD, "readonly": True}).json
    reader = Bearer(npm, made["token"])
    assert reader.ask("PUT", "/x", "{}").status == 403
    assert reader.get("/-/npm/v1/tokens").status == 403
    assert reader.ask("DELETE", f"/-/npm/v1/tokens/token/{made['key']}").status == 403
    assert reader.post_json("/-/npm/v1/user", {"fullname": "x"}).status == 403
    assert reader.ask("DELETE", f"/-/user/token/{made['token']}").status == 200


def test_a_token_is_limited_to_the_packages_that_npm_11_sends(npm, bearer, publish):
    publish("narrow")
    publish("@narrow/x")
    publish("wide")
    asked = {"packages": ["narrow"], "scopes": ["@narrow", "other"], "packages_and_scopes_permission": "read-write"}
    made = bearer.post_json("/-/npm/v1/tokens", {"name": "ci", "description": "d", "password": PASSWORD, **asked})
    assert made.json["packages"] == ["narrow", "@narrow/*", "@other/*"]
    client = Bearer(npm, made.json["token"])
    for name, status in (("narrow", 201), ("@narrow/x", 201), ("@other/y", 201), ("wide", 403), ("narrower", 403)):
        assert client.put(f"/{name.replace('/', '%2f')}", make_publish(name, "2.0.0")).status == status, name
    assert client.get("/-/npm/v1/tokens").status == 403


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"packages_and_scopes_permission": "read-only"}, 403),
        ({"packages_and_scopes_permission": "read-only", "packages_all": True}, 403),
        ({"packages_and_scopes_permission": "read-write", "packages": ["x"], "packages_all": True}, 201),
        ({}, 201),
    ],
)
def test_a_token_without_packages_is_for_all(npm, bearer, asked, status):
    made = bearer.post_json("/-/npm/v1/tokens", {"name": "all", "password": PASSWORD, **asked}).json
    name = f"permitted-{len(asked)}-{status}"
    assert Bearer(npm, made["token"]).put(f"/{name}", make_publish(name, "1.0.0")).status == status
    assert made["readonly"] is (status == 403)


def test_tokens_come_in_pages(bearer):
    for index in range(3):
        bearer.post_json("/-/npm/v1/tokens", {"password": PASSWORD, "name": f"page {index}"})
    keys, path = [], "/-/npm/v1/tokens?perPage=2"
    while path:
        page = bearer.get(path).json
        assert len(page["objects"]) <= 2
        keys += [each["key"] for each in page["objects"]]
        following = page["urls"].get("next")
        path = following and following.removeprefix(bearer.url)
    assert len(keys) == len(set(keys)) >= 3


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"password": "wrong"}, 401),
        ({"password": PASSWORD, "cidr_whitelist": ["nowhere"]}, 400),
        ({"password": PASSWORD, "expires": 0}, 400),
        ({"password": PASSWORD, "name": "\n"}, 400),
        ({"password": PASSWORD, "description": "\n"}, 400),
        ({"password": PASSWORD, "packages": "x"}, 400),
        ({"password": PASSWORD, "packages": ["a b"]}, 400),
        ({"password": PASSWORD, "packages": ["@sc/*"]}, 400),
        ({"password": PASSWORD, "packages": [""]}, 400),
        ({"password": PASSWORD, "scopes": ["@"]}, 400),
        ({"password": PASSWORD, "scopes": ["*"]}, 400),
        ({"password": PASSWORD, "orgs": ["team"]}, 400),
        ({"password": PASSWORD, "packages_and_scopes_permission": "no-access"}, 400),
    ],
)
def test_a_malformed_token_request_is_refused(bearer, body, status):
    assert bearer.post_json("/-/npm/v1/tokens", body).status == status


def test_a_token_of_another_user_cannot_be_revoked(npm, bearer, login):
    key = bearer.post_json("/-/npm/v1/tokens", {"password": PASSWORD}).json["key"]
    bob = Bearer(npm, login(*BOB).json["token"])
    assert bob.ask("DELETE", f"/-/npm/v1/tokens/token/{key}").status == 404
    assert key in bearer.get("/-/npm/v1/tokens").text


def test_a_profile_is_shown_and_changed(npm, login):
    bob = Bearer(npm, login(*BOB).json["token"])
    assert bob.get("/-/npm/v1/user").json["email"] == "bob@example.org"
    assert bob.post_json("/-/npm/v1/user", {"fullname": "Bob B."}).json["fullname"] == "Bob B."
    assert bob.post_json("/-/npm/v1/user", {"email": "a\nb"}).status == 400
    assert bob.post_json("/-/npm/v1/user", {"tfa": {"mode": "auth-only", "password": BOB[1]}}).status == 400
    fresh = "bob moved to the woods"
    for old, new, status in (("wrong", fresh, 401), (BOB[1], "short", 400), (BOB[1], fresh, 200)):
        reply = bob.post_json("/-/npm/v1/user", {"password": {"old": old, "new": new}})
        assert reply.status == status, reply
    assert login("bob", BOB[1]).status == 401
    assert login("bob", fresh).status == 201
    assert bob.post_json("/-/npm/v1/user", {"password": {"old": fresh, "new": BOB[1]}}).status == 200


def follow(where, url):
    assert url.startswith(where.url + "/")
    parts = urlsplit(url)
    return f"{parts.path.removeprefix(where.parts.path)}?{parts.query}"


def test_a_login_through_a_browser(npm):
    client = npm.as_user()
    begun = client.post_json("/-/v1/login", {"hostname": "laptop"})
    assert begun.status == 200
    page, done = follow(npm, begun.json["loginUrl"]), follow(npm, begun.json["doneUrl"])
    waiting = client.get(done)
    assert (waiting.status, waiting.headers["retry-after"]) == (202, "2")
    shown = client.get(page)
    assert shown.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert "main/npm" in shown.text
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    wrong = client.post(page, urlencode({"username": "<b>admin", "password": "no"}), **form)
    assert wrong.status == 401
    assert "<b>admin" not in wrong.text
    assert client.get(done).status == 202
    right = client.post(page, urlencode({"username": USER, "password": PASSWORD}), **form)
    assert right.status == 200
    assert "Logged in" in right.text
    token = client.get(done)
    assert token.status == 200
    assert Bearer(npm, token.json["token"]).get("/-/whoami").json == {"username": USER}
    assert client.get(done).status == 404
    assert client.post(page, urlencode({"username": USER, "password": PASSWORD}), **form).status == 404


def test_who_is_logged_in_to_the_console_agrees_without_a_password(format_server, npm):
    root, client = HttpClient(format_server.url), npm.as_user()
    session = root.post_json("/api/user/login", {"username": USER, "password": PASSWORD})
    cookie = {"Cookie": session.headers["set-cookie"].partition(";")[0]}
    form = {**cookie, "Content-Type": "application/x-www-form-urlencoded"}
    begun = client.post_json("/-/v1/login", {}).json
    page, done = follow(npm, begun["loginUrl"]), follow(npm, begun["doneUrl"])
    shown = client.ask("GET", page, headers=cookie)
    assert f"Go on as {USER}" in shown.text
    assert "password" not in shown.text
    assert client.get(done).status == 202, "showing the page agrees to nothing"
    csrf = session.json["csrf"]
    for body, headers in (
        ({}, form),
        ({"csrf": "guessed"}, form),
        ({"csrf": csrf}, {"Content-Type": form["Content-Type"]}),
        ({"csrf": csrf}, {**form, "Origin": "https://evil.example"}),
    ):
        assert "Logged in" not in client.ask("POST", page, urlencode(body), headers).text
        assert client.get(done).status == 202
    assert "Logged in" in client.ask("POST", page, urlencode({"csrf": csrf}), form).text
    assert Bearer(npm, client.get(done).json["token"]).get("/-/whoami").json == {"username": USER}


def test_addresses_of_a_web_login_cannot_be_forged(npm):
    begun = npm.as_user().post_json("/-/v1/login", {}).json
    page, done = follow(npm, begun["loginUrl"]), follow(npm, begun["doneUrl"])
    swapped = done.partition("?")[2]
    for path in (
        re.sub(r"=\d", "=9", done),
        done[:-1] + ("A" if done[-1] != "A" else "B"),
        f"/-/v1/login?{swapped}",
        f"/-/v1/done?{page.partition('?')[2]}",
        "/-/v1/done?session=",
        "/-/v1/done?session=1.2.3",
        "/-/v1/done",
        "/-/v1/login",
    ):
        assert npm.as_user().get(path).status == 404, path


def test_secrets_of_a_web_login_are_not_logged(format_server, npm):
    begun = npm.as_user().post_json("/-/v1/login", {}).json
    done = follow(npm, begun["doneUrl"])
    npm.as_user().get(done)
    format_server.lines("/-/v1/done", 1)
    assert done.partition("session=")[2] not in format_server.output


def test_a_small_body_of_nothing_but_brackets_is_refused_before_it_is_parsed(npm):
    reply = npm.ask("PUT", "/-/user/org.couchdb.user:nobody", b"[" + b"[]," * 20_000 + b"[]]")
    assert reply.status == 400
    assert reply.json["error"] == "the body has more than 5000 values"
