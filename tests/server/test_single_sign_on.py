"""Logins of people at an OpenID Connect provider, with a browser that the test is."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import jwt
import pytest
import requests
from attrs import frozen

from pkgrepo.auth.login.sessions import csrf_of
from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.issuer import CLIENT, SECRET, Issuer, listening
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

COOKIE, LOGIN_COOKIE = "pkgrepo_session", "pkgrepo_session_login"
STRONG = 'acr_values = ["gold", "silver"]\namr = ["otp", "hwk"]\nlogout_ends_tokens = true\n'
LOGOUT = {"http://schemas.openid.net/event/backchannel-logout": {}}


class Browser:
    """A browser with cookies, which stops at redirects."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.headers["Accept"] = "text/html"

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that it has."""
        return dict(self._session.cookies)

    def get(self, path: str) -> requests.Response:
        """Open an address of the server."""
        return self._session.get(self._url + path, allow_redirects=False, timeout=TIMEOUT_S)

    def make_token(self) -> str:
        """An access token of the person who has logged in."""
        headers = {"X-CSRF": csrf_of(self.cookies[COOKIE].encode()), "Origin": self._url}
        body = {"name": "a token", "scopes": ["api:read"]}
        made = self._session.post(f"{self._url}/api/user/token", json=body, headers=headers, timeout=TIMEOUT_S)
        token: str = made.json()["token"]
        return token


@frozen
class Scene:
    """A server with the providers "main", which makes accounts, "strict", which does not, and "strong"."""

    server: ServerProcess
    issuer: Issuer
    api: HttpClient
    strong: Issuer

    def browser(self) -> Browser:
        """A new browser."""
        return Browser(self.server.url)

    def begin(self, browser: Browser, provider: str = "main", target: str = "") -> str:
        """Begin a login. Returns the address that the browser is sent to."""
        reply = browser.get(f"/ui/login/oidc/{provider}?next={quote(target)}")
        assert reply.status_code == 303, reply.text
        issuer = self.strong if provider == "strong" else self.issuer
        assert reply.headers["location"].startswith(f"{issuer.url}/authorize?")
        return reply.headers["location"]

    def end(self, browser: Browser, answer: dict[str, str], provider: str = "main") -> requests.Response:
        """Come back from the provider."""
        return browser.get(f"/ui/login/oidc/{provider}/callback?{urlencode(answer)}")

    def log_in(self, person: dict[str, Any], browser: Browser | None = None, **claims: Any) -> Browser:
        """A browser in which a person has logged in."""
        found = browser or self.browser()
        reply = self.end(found, self.issuer.approve(self.begin(found), person, **claims))
        assert reply.status_code == 303, reply.text
        assert COOKIE in found.cookies
        return found

    def log_in_strongly(self, name: str, **claims: Any) -> requests.Response:
        """What a browser is shown that comes back from the provider "strong", which says how it logged somebody in."""
        browser = self.browser()
        answer = self.strong.approve(self.begin(browser, "strong"), person(name), **claims)
        return self.end(browser, answer | {"iss": self.strong.url}, "strong")

    def whoami(self, browser: Browser) -> Any:
        """Who the browser is logged in as."""
        return browser.get("/api/user/whoami").json()

    def user(self, name: str) -> Any:
        """The record of a user."""
        return self.api.ask("GET", f"/users/{name}").json


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The server."""
    folder = tmp_path_factory.mktemp("sign_on")
    (folder / "secret").write_text(SECRET)
    with (
        listening() as issuer,
        listening() as other,
        listening() as strong,
        running(folder, configuration(folder, main=issuer, strict=other, strong=strong)) as server,
    ):
        strong.metadata["authorization_response_iss_parameter_supported"] = True
        api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
        for group in ("crew", "other"):
            assert api.post_json("/groups", {"name": group}).status == 201
        yield Scene(server, issuer, api, strong)


def configuration(folder: Path, **providers: Issuer) -> str:
    """The settings of a server with these providers."""
    common = f'client_id = "{CLIENT}"\nclient_secret_file = "{folder / "secret"}"\nadmin_groups = ["chiefs"]\n'
    sections = "".join(
        f'[auth.oidc.{name}]\nissuer = "{issuer.url}"\n{common}auto_create = {str(name != "strict").lower()}\n'
        f"{STRONG if name == 'strong' else ''}"
        f"link_by_email = {str(name == 'main').lower()}\n"
        'group_names = { "IT Staff" = "crew" }\n'
        for name, issuer in providers.items()
    )
    return f'bootstrap.admin.password = "{PASSWORD}"\n{sections}' + hosted("python", "py")


def person(name: str, **claims: Any) -> dict[str, Any]:
    """The claims of a person."""
    return {"sub": f"id-{name}", "preferred_username": name, "name": name.title(), **claims}


def test_the_first_login_makes_an_account_and_later_ones_find_it(scene: Scene) -> None:
    browser = scene.log_in(person("ann", email="ann@corp.example", email_verified=True))
    assert scene.whoami(browser)["username"] == "ann"
    assert LOGIN_COOKIE not in browser.cookies
    assert scene.user("ann")["email"] == "ann@corp.example"
    again = scene.log_in(person("renamed") | {"sub": "id-ann"})
    assert scene.whoami(again)["username"] == "ann", "the subject decides, not the name"
    assert "Log in with main" in scene.browser().get("/ui/login").text


def test_the_account_says_where_its_person_logs_in(scene: Scene) -> None:
    browser = scene.log_in(person("lea"))
    page = browser.get("/ui/account").text
    assert "You log in at main, where your password and your second factor are." in page
    assert "Present password" not in page
    assert "Your password alone logs you in" not in page


def test_groups_and_the_admin_flag_are_those_of_the_last_login(scene: Scene) -> None:
    def members(group: str) -> list[str]:
        return [each["username"] for each in scene.api.ask("GET", f"/groups/{group}/members").json["items"]]

    scene.log_in(person("bea", groups=["crew", "chiefs", "unknown"]))
    assert scene.user("bea")["admin"] is True
    assert members("crew") == ["bea"]
    assert scene.api.post_json("/groups/other/members", {"user": "bea"}).status < 300
    scene.log_in(person("bea", groups=[]))
    assert scene.user("bea")["admin"] is False
    assert members("crew") == []
    assert members("other") == ["bea"], "an admin has put them there"


def test_groups_have_the_names_of_the_settings_and_paths_of_one_part_are_names(scene: Scene) -> None:
    def groups(*names: str) -> tuple[list[str], bool]:
        scene.log_in(person("gus", groups=list(names)))
        listed = (each["name"] for each in scene.api.ask("GET", "/groups").json["items"])
        members = {each: scene.api.ask("GET", f"/groups/{each}/members").json["items"] for each in listed}
        found = [name for name, people in members.items() if "gus" in {each["username"] for each in people}]
        return found, scene.user("gus")["admin"]

    assert groups("IT Staff") == (["crew"], False)
    assert groups("/other", "/chiefs") == (["other"], True), "as Keycloak sends them"
    assert groups("/ship/other", "/ship/chiefs", "it staff") == ([], False)


def test_a_refusal_says_what_cannot_be_read(scene: Scene) -> None:
    def refused(answer: tuple[int, bytes], **claims: Any) -> str:
        browser = scene.browser()
        sent = scene.issuer.approve(scene.begin(browser), person("ned"), **claims)
        scene.issuer.answer = lambda path: answer if path == "/me" else None
        try:
            page = scene.end(browser, sent)
        finally:
            scene.issuer.answer = lambda _path: None
        assert page.status_code == (503 if answer[0] == 503 else 403)
        return page.text

    assert "(userinfo) is no JSON object" in refused((200, b"e30.e30.c2ln")), "a signed one"
    assert "(userinfo) is about another one" in refused((200, b'{"sub": "id-eve"}'))
    assert "answers 401 when it is asked for the person" in refused((401, b"{}"))
    assert "answers 503 for the person" in refused((503, b"{}"))
    claims = {**dict.fromkeys(scene.issuer.claims), "aud": CLIENT, "iss": scene.issuer.url}
    secret = jwt.encode({key: value for key, value in claims.items() if value}, "k" * 32, "HS256")
    browser = scene.browser()
    sent = scene.issuer.approve(scene.begin(browser), person("ned"))
    tokens = json.dumps({"id_token": secret, "access_token": "a"}).encode()
    scene.issuer.answer = lambda path: (200, tokens) if path == "/tokens" else None
    try:
        assert "is signed with &#39;HS256&#39;, which is not accepted" in scene.end(browser, sent).text
    finally:
        scene.issuer.answer = lambda _path: None


def test_a_refusal_says_what_the_provider_says(scene: Scene) -> None:
    browser = scene.browser()
    state = scene.issuer.approve(scene.begin(browser), person("ann"))["state"]
    told = {"state": state, "error": "invalid_scope", "error_description": "Invalid scopes: openid <groups>"}
    page = scene.end(browser, told)
    assert page.status_code == 403
    assert "refuses the login: invalid_scope (Invalid scopes: openid &lt;groups&gt;)" in page.text


@pytest.mark.parametrize("name", ["gr\u00e4fin", "al", "corp\\eve", "x" * 33, "ann+b@corp.example"])
def test_a_name_that_no_user_can_have_is_named(scene: Scene, name: str) -> None:
    browser = scene.browser()
    page = scene.end(browser, scene.issuer.approve(scene.begin(browser), person(name)))
    assert page.status_code == 403
    assert "a user name has 3 to 32 letters" in page.text
    assert name.partition("@")[0] in page.text


def test_an_account_is_never_taken_over_by_its_name(scene: Scene) -> None:
    browser = scene.browser()
    reply = scene.end(browser, scene.issuer.approve(scene.begin(browser), person(USER)))
    assert reply.status_code == 403
    assert "is taken by an account that is not linked" in reply.text
    assert COOKIE not in browser.cookies


def test_only_a_verified_address_links_an_account(scene: Scene) -> None:
    body = {"username": "carl", "password": "carl keeps cats at home", "email": "carl@corp.example"}
    assert scene.api.post_json("/users", body).status == 201
    for verified in ({}, {"email_verified": False}, {"email_verified": "true"}):
        browser = scene.browser()
        mallory = person(f"mallory{len(str(verified))}", email="carl@corp.example", **verified)
        scene.end(browser, scene.issuer.approve(scene.begin(browser), mallory))
        assert scene.whoami(browser)["username"] == mallory["preferred_username"]
    linked = scene.log_in(person("carl2", email="Carl@corp.example", email_verified=True))
    assert scene.whoami(linked)["username"] == "carl"
    carl = scene.api.as_user("carl", "carl keeps cats at home")
    assert carl.post_json("/user/me", {"name": "Carl"}, "PATCH").status == 200
    assert carl.post_json("/user/me", {"email": "ann@corp.example"}, "PATCH").status == 403, "it decides who logs in"


def test_where_addresses_decide_who_logs_in_only_the_providers_that_they_are_trusted_with_tell_them(
    scene: Scene,
) -> None:
    told = {"email": "nora@corp.example", "email_verified": True}
    for _ in range(2):
        assert scene.log_in_strongly("mona", acr="gold", amr=["otp"], **told).status_code == 303
        assert scene.user("mona")["email"] == ""
    nora = scene.log_in(person("nora", **told))
    assert scene.whoami(nora)["username"] == "nora", "mona is somebody else"


def test_answers_that_this_browser_did_not_ask_for_are_refused(scene: Scene) -> None:
    mallory, victim = scene.browser(), scene.browser()
    answer = scene.issuer.approve(scene.begin(mallory), person("mallory"))
    # login CSRF: the victim's browser is sent to the callback with the attacker's code
    assert scene.end(victim, answer).status_code == 403
    scene.begin(victim)
    assert scene.end(victim, answer).status_code == 403, "nor does a login of its own help"
    assert COOKIE not in victim.cookies
    assert scene.end(mallory, answer | {"state": answer["state"][:-1]}).status_code == 403
    assert scene.end(mallory, answer, "strict").status_code == 403, "the cookie is of another provider"
    assert scene.end(mallory, answer | {"iss": "https://evil.example"}).status_code == 403
    assert scene.end(mallory, {"state": answer["state"], "error": "access_denied"}).status_code == 403
    assert scene.end(mallory, answer).status_code == 303
    assert scene.end(mallory, answer).status_code == 403, "a code is used once"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "other"},
        {"nonce": None},
        {"audience": "another client"},
        {"azp": "another client"},
        {"exp": int(time.time()) - 600},
        {"iss": "https://evil.example"},
        {"sub": "somebody else"},  # than the userinfo endpoint says
        {"algorithm": "RS256", "kid": "unknown"},
    ],
)
def test_identity_tokens_that_are_not_right_log_nobody_in(scene: Scene, claims: dict[str, Any]) -> None:
    browser = scene.browser()
    reply = scene.end(browser, scene.issuer.approve(scene.begin(browser), person("eve"), **claims))
    assert reply.status_code == 403
    assert COOKIE not in browser.cookies
    assert scene.api.ask("GET", "/users/eve").status == 404


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/", "/ui/../../x", "/ui/\\evil", "javascript:0"]
)
def test_a_login_ends_at_a_page_of_the_console(scene: Scene, target: str) -> None:
    browser = scene.browser()
    reply = scene.end(browser, scene.issuer.approve(scene.begin(browser, target=target), person("dora")))
    assert urlsplit(reply.headers["location"]).netloc == urlsplit(scene.server.url).netloc
    assert urlsplit(reply.headers["location"]).path == "/ui/"
    reply = scene.end(browser, scene.issuer.approve(scene.begin(browser, target="/ui/account"), person("dora")))
    assert urlsplit(reply.headers["location"]).path == "/ui/account"


def test_a_logout_token_ends_the_sessions_that_it_names(scene: Scene) -> None:
    first = scene.log_in(person("fay"), sid="one")
    second = scene.log_in(person("fay"), sid="two")
    client = HttpClient(f"{scene.server.url}/api/user/login/oidc/main/logout")
    empty = dict.fromkeys(scene.issuer.claims)

    def order(**claims: Any) -> int:
        given = {"audience": CLIENT, "events": LOGOUT, **empty, **claims}
        token = scene.issuer.token(**given)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return client.ask("POST", "", urlencode({"logout_token": token}), headers).status

    for wrong in ({"events": {}}, {"events": None}, {"nonce": "x"}, {"audience": "other"}, {"jti": None}, {}):
        assert order(**{"sid": "one" if wrong else None, **wrong}) == 400, wrong
    again = {"sid": "one", "jti": uuid.uuid4().hex}
    assert [order(**again), order(**again)] == [204, 400], "a logout token counts once"
    assert scene.whoami(first)["authenticated"] is False
    assert scene.whoami(second)["username"] == "fay"
    assert order(sub="id-fay") == 204
    assert scene.whoami(second)["authenticated"] is False


def test_a_login_must_be_as_strong_as_the_settings_say(scene: Scene) -> None:
    address = scene.begin(scene.browser(), "strong")
    assert parse_qs(urlsplit(address).query)["acr_values"] == ["gold silver"]
    for claims in (
        {},
        {"acr": "gold"},
        {"acr": "tin", "amr": ["otp"]},
        {"acr": "gold", "amr": ["pwd"]},
        {"amr": "otp"},
    ):
        assert scene.log_in_strongly("hal", **claims).status_code == 403, claims
    assert scene.api.ask("GET", "/users/hal").status == 404
    assert scene.log_in_strongly("hal", acr="silver", amr=["pwd", "otp"]).status_code == 303


def test_an_answer_says_from_which_provider_it_is_where_that_promises_it(scene: Scene) -> None:
    for wrong in ({}, {"iss": scene.issuer.url}):
        browser = scene.browser()
        answer = scene.strong.approve(scene.begin(browser, "strong"), person("ivy"), acr="gold", amr=["otp"])
        assert scene.end(browser, answer | wrong, "strong").status_code == 403, wrong
    # a code of one provider is of no use at another, whose login this browser has begun
    browser = scene.browser()
    stolen = scene.issuer.approve(scene.begin(scene.browser()), person("ivy"))
    answer = scene.strong.approve(scene.begin(browser, "strong"), person("ivy"), acr="gold", amr=["otp"])
    assert scene.end(browser, answer | {"code": stolen["code"], "iss": scene.strong.url}, "strong").status_code == 403
    assert scene.api.ask("GET", "/users/ivy").status == 404


def test_a_logout_ends_tokens_where_the_settings_say_so(scene: Scene) -> None:
    weak, strong = scene.browser(), scene.browser()
    scene.log_in(person("kim"), weak)
    answer = scene.strong.approve(scene.begin(strong, "strong"), person("jan"), acr="gold", amr=["hwk"])
    assert scene.end(strong, answer | {"iss": scene.strong.url}, "strong").status_code == 303
    for browser, issuer, name, status in ((weak, scene.issuer, "main", 200), (strong, scene.strong, "strong", 401)):
        headers = {"Authorization": f"Bearer {browser.make_token()}"}
        assert scene.api.ask("GET", "/user/me", headers=headers).status == 200
        claims = {**dict.fromkeys(issuer.claims), "sub": "id-kim" if name == "main" else "id-jan"}
        form = urlencode({"logout_token": issuer.token(audience=CLIENT, events=LOGOUT, **claims)})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        client = HttpClient(f"{scene.server.url}/api/user/login/oidc/{name}/logout")
        assert client.ask("POST", "", form, kind).status == 204
        assert scene.whoami(browser)["authenticated"] is False
        assert scene.api.ask("GET", "/user/me", headers=headers).status == status, name


def test_people_without_an_account_are_told_so_where_none_is_made(scene: Scene) -> None:
    browser = scene.browser()
    assert browser.get("/ui/login/oidc/strict").status_code == 303
    assert browser.get("/ui/login/oidc/nothing").status_code == 404
    assert scene.end(browser, {"code": uuid.uuid4().hex, "state": "x"}, "strict").status_code == 403


def test_a_provider_that_is_away_delays_no_local_login(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    with listening() as issuer:
        settings = configuration(tmp_path, main=issuer)
        with running(tmp_path, settings) as server:
            scene = Scene(server, issuer, HttpClient(f"{server.url}/api", (USER, PASSWORD)), issuer)
            browsers = [scene.browser() for _ in range(1000)]
            answers = [scene.issuer.approve(scene.begin(each), person("gil")) for each in browsers]
            issuer.answer = lambda path: (200, b"[" * (4 << 20)) if path == "/tokens" else None
            with ThreadPoolExecutor(100) as pool:
                ended = [pool.submit(scene.end, *pair) for pair in zip(browsers, answers, strict=True)]
                for _ in range(5):
                    assert scene.api.ask("GET", "/user/me").status == 200
                assert {each.result().status_code for each in ended} == {503}
            issuer.answer = lambda _path: None
            scene.log_in(person("gil"))
