"""The daily check of people who have logged in at a provider."""

from __future__ import annotations

import base64
import json
from urllib.parse import parse_qsl, urlsplit

import pytest
import pytest_twisted
from twisted.logger import globalLogPublisher

from pkgrepo.auth.external_accounts import CHECKED_S, DailyCheck
from pkgrepo.errors import Forbidden, IdentityRefused, IssuerUnavailable
from pkgrepo.model import SYSTEM, TokenKind
from pkgrepo.oidc.documents import Document
from pkgrepo.oidc.identity_tokens import IdentityToken
from pkgrepo.oidc.providers import Provider
from pkgrepo.oidc.sign_on import LOGOUT_EVENT, SignOn
from pkgrepo.storage.catalog.people.groups import add_group, is_member
from pkgrepo.storage.catalog.people.linked_identities import Person, ensure_linked, find_linked
from pkgrepo.storage.catalog.people.logins import add_session, list_sessions
from pkgrepo.storage.catalog.people.tokens import add_token, find_token
from pkgrepo.storage.catalog.people.users import add_user, find_user_by_name, get_user, remove_user, set_password
from pkgrepo.storage.secret_box import SecretBox
from tests.support.catalogs import SqliteCase

URL = "https://login.example"
NOW_S = 1_800_000_000
BOX = SecretBox(b"k" * 32)
IDENTITY = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    for part in ({"alg": "RS256"}, {"iss": URL}, "signature")
)
METADATA = {
    "authorization_endpoint": f"{URL}/authorize",
    "token_endpoint": f"{URL}/tokens",
    "userinfo_endpoint": f"{URL}/me",
}


class StubIssuer:
    """An issuer whose configuration is known; its identity tokens have ``claims``."""

    url = URL

    def __init__(self):
        self.claims = {}

    async def metadata(self):
        return METADATA

    async def verify(self, token, _audiences, _now_s, *, own=False, needed=()):
        assert own == (token.text == IDENTITY) == (not needed)
        return IdentityToken(URL, self.claims.get("sub", "id-ann"), NOW_S + 300, self.claims, b"digest")


class StubDocuments:
    """A provider that answers as a test says; ``asked`` are the refresh tokens that came."""

    def __init__(self):
        self.asked = []
        self.answer = 200, {"access_token": "a", "refresh_token": "second"}
        self.person = {"sub": "id-ann", "groups": []}

    async def post(self, name, _url, form, _fields):
        self.asked.append(form.get("refresh_token"))
        if self.answer is None:
            raise IssuerUnavailable(name, "it is away")
        status, value = self.answer
        return Document(status, json.dumps(value).encode())

    async def get(self, _name, _url, _fields):
        return Document(200, json.dumps(self.person).encode())


class Scene:
    """A catalog in which ann has logged in at a provider, by which she is in a group."""

    def __init__(self, catalog, scopes=("openid", "offline_access")):
        self.catalog = catalog
        self.issuer = StubIssuer()
        self.now_s = NOW_S
        self.documents = StubDocuments()
        self.entries = []
        provider = Provider(
            name="corp",
            issuer=self.issuer,
            client_id="us",
            secret="",
            scopes=scopes,
            username_claim="preferred_username",
            groups_claim="groups",
            admin_groups=frozenset({"chiefs"}),
            auto_create=True,
            link_by_email=False,
        )
        sign_on = self.sign_on = SignOn(
            [provider],
            self.documents,
            catalog=catalog,
            box=BOX,
            now_s=lambda: self.now_s,
            copy_entry=self.entries.append,
        )
        self.check_people = DailyCheck(
            sign_on.sources(), catalog, now_ms=lambda: self.now_s * 1000, copy_entry=self.entries.append
        )

    async def prepare(self):
        await self.catalog.write(add_user, username="admin", admin=True, now_ms=0)
        self.group = await self.catalog.write(add_group, name="crew", now_ms=0)
        ann = Person(URL, "id-ann", "ann", "Ann", "", ["crew", "chiefs"], admin=True)
        refresh = BOX.seal("first", "refresh token of an identity provider")
        self.user, self.linked = await self.catalog.write(
            ensure_linked, ann, auto_create=True, link_by_email=False, refresh=refresh, now_ms=NOW_S * 1000
        )
        session = {"user_id": self.user.id, "address": "", "client": "", "now_ms": NOW_S * 1000}
        await self.catalog.write(add_session, hash=b"1", linked_id=self.linked.id, **session)
        self.token = await self.catalog.write(
            add_token, user_id=self.user.id, hash=b"2", shown="x", kind=TokenKind.PERSONAL, name="x", now_ms=0
        )

    async def check(self, after_s=CHECKED_S + 1):
        self.now_s += after_s
        await self.check_people.run()

    async def state(self):
        """The number of sessions, whether the token is valid, in the group, and an admin."""
        look = self.catalog.look
        return (
            len(await look(list_sessions, self.user.id)),
            (await look(find_token, self.token.id)).revoked_at is None,
            await look(is_member, self.group.id, self.user.id),
            (await look(get_user, self.user.id)).admin,
        )


@pytest_twisted.async_yield_fixture
async def scene(tmp_path):
    case = SqliteCase(tmp_path)
    found = Scene(await case.another())
    await found.prepare()
    yield found
    await case.stop()


async def started(case, scopes):
    found = Scene(await case.another(), scopes)
    await found.prepare()
    return found


@pytest_twisted.ensureDeferred
async def test_people_are_checked_once_a_day_with_the_newest_refresh_token(scene):
    await scene.check(60)
    assert scene.documents.asked == []
    scene.documents.person["groups"] = ["crew", "chiefs"]
    await scene.check()
    await scene.check(60)
    assert scene.documents.asked == ["first"]
    assert await scene.state() == (1, True, True, True)
    scene.documents.person["groups"] = ["crew"]
    await scene.check()
    assert scene.documents.asked == ["first", "second"]
    assert await scene.state() == (1, True, True, False), "groups and the flag are read again"


@pytest_twisted.ensureDeferred
async def test_a_person_whom_the_provider_knows_no_more_loses_everything(scene):
    scene.documents.answer = 400, {"error": "invalid_grant"}
    await scene.check()
    assert await scene.state() == (0, False, False, False)
    assert [(each.action, each.object) for each in scene.entries] == [("session.end", "ann")]
    await scene.check()
    assert scene.documents.asked == ["first"], "there is nobody to ask for"


@pytest_twisted.ensureDeferred
async def test_tokens_of_a_person_with_a_password_here_stay(scene):
    await scene.catalog.write(set_password, scene.user.id, "$argon2id$x", now_ms=0)
    scene.documents.answer = 400, {"error": "invalid_grant"}
    await scene.check()
    assert await scene.state() == (0, True, False, False)


@pytest_twisted.ensureDeferred
async def test_the_last_admin_stays_one(scene):
    local = await scene.catalog.look(find_user_by_name, "admin")
    await scene.catalog.write(remove_user, local.id)
    scene.documents.answer = 400, {"error": "invalid_grant"}
    await scene.check()
    assert await scene.state() == (0, False, False, True)


@pytest.mark.parametrize("answer", [None, (503, {}), (400, {"error": "invalid_client"}), (200, [])])
@pytest_twisted.ensureDeferred
async def test_a_provider_that_is_away_or_misconfigured_takes_nothing_away(scene, answer):
    scene.documents.answer = answer
    await scene.check()
    assert (await scene.state())[:2] == (1, True)
    linked = await scene.catalog.look(find_linked, URL, "id-ann")
    assert linked.refresh


@pytest_twisted.ensureDeferred
async def test_an_identity_token_without_groups_says_that_there_are_none(scene):
    del scene.documents.person["groups"]
    await scene.check()
    assert await scene.state() == (1, True, True, True), "nothing tells of groups: they stay"
    scene.documents.answer = 200, {"access_token": "a", "refresh_token": "third", "id_token": IDENTITY}
    await scene.check()
    assert await scene.state() == (1, True, False, False)
    scene.issuer.claims = {"groups": ["/crew", "chiefs"]}
    await scene.check()
    assert await scene.state() == (1, True, True, True)
    scene.issuer.claims = {"sub": "somebody else"}
    await scene.check()
    assert await scene.state() == (1, True, True, True), "it is about another person"


@pytest.mark.parametrize("offline", [True, False])
@pytest_twisted.ensureDeferred
async def test_a_refresh_token_that_was_not_asked_for_tells_of_nobody_leaving(tmp_path, offline):
    case = SqliteCase(tmp_path)
    scene = await started(case, ("openid", "offline_access") if offline else ("openid",))
    begun = await scene.sign_on.begin("corp", "https://here/callback", "/")
    query = dict(parse_qsl(urlsplit(begun.url).query))
    scene.issuer.claims = {"nonce": query["nonce"], "groups": ["crew"]}
    scene.documents.answer = 200, {"access_token": "a", "refresh_token": "of the login", "id_token": IDENTITY}
    answer = {"code": "c", "state": query["state"]}
    ended = await scene.sign_on.end("corp", "https://here/callback", begun.cookie, answer)
    assert bool((await scene.catalog.look(find_linked, URL, "id-ann")).refresh) is offline
    assert ended.user.username == "ann"
    scene.documents.answer = 400, {"error": "invalid_grant"}  # Keycloak, when the login there has ended
    await scene.check()
    assert (await scene.state())[:2] == ((0, False) if offline else (1, True))
    await case.stop()


@pytest_twisted.ensureDeferred
async def test_a_login_ends_once(scene):
    begun = await scene.sign_on.begin("corp", "https://here/callback", "/")
    query = dict(parse_qsl(urlsplit(begun.url).query))
    scene.issuer.claims = {"nonce": query["nonce"]}
    scene.documents.answer = 200, {"access_token": "a", "id_token": IDENTITY}
    answer = {"code": "c", "state": query["state"]}
    assert (await scene.sign_on.end("corp", "https://here/callback", begun.cookie, answer)).user.username == "ann"
    with pytest.raises(IdentityRefused, match="ended already"):
        await scene.sign_on.end("corp", "https://here/callback", begun.cookie, answer)
    again = await scene.sign_on.begin("corp", "https://here/callback", "/")
    query = dict(parse_qsl(urlsplit(again.url).query))
    scene.issuer.claims = {"nonce": query["nonce"]}
    answer = {"code": "c", "state": query["state"]}
    assert (await scene.sign_on.end("corp", "https://here/callback", again.cookie, answer)).user.username == "ann"


@pytest.mark.parametrize(
    ("claims", "issuer", "ended"),
    [
        ({"sub": "id-ann"}, URL, True),
        ({"sub": "id-ann"}, "https://other.example", False),
        ({"sub": ""}, URL, False),
        ({"sid": ""}, URL, False),
        ({}, URL, False),
    ],
)
@pytest_twisted.ensureDeferred
async def test_logout_tokens_end_the_sessions_of_whom_they_name(scene, claims, issuer, ended):
    parts = ({"alg": "RS256", "typ": "logout+jwt"}, {"iss": issuer}, "signature")
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    scene.issuer.claims = {"events": {LOGOUT_EVENT: {}}, **claims}
    if ended:
        await scene.sign_on.end_by_provider("corp", text, SYSTEM)
    else:
        with pytest.raises(IdentityRefused):
            await scene.sign_on.end_by_provider("corp", text, SYSTEM)
    assert (await scene.state())[0] == (0 if ended else 1)


@pytest_twisted.ensureDeferred
async def test_the_log_says_why_a_login_is_refused(scene):
    begun = await scene.sign_on.begin("corp", "https://here/callback", "/")
    query = dict(parse_qsl(urlsplit(begun.url).query))
    scene.issuer.claims = {"sub": "id-zoe", "nonce": query["nonce"], "preferred_username": "zo\u00eb\n"}
    scene.documents.person = {"sub": "id-zoe"}
    scene.documents.answer = 200, {"access_token": "a", "id_token": IDENTITY}
    events = []
    globalLogPublisher.addObserver(events.append)
    answer = {"code": "the code", "state": query["state"]}
    try:
        with pytest.raises(Forbidden):
            await scene.sign_on.end("corp", "https://here/callback", begun.cookie, answer)
    finally:
        globalLogPublisher.removeObserver(events.append)
    [event] = [each for each in events if "reason" in each]
    assert event["reason"].startswith("no account can be made for 'zo\u00eb':")
    assert "the code" not in str(events)


@pytest_twisted.ensureDeferred
async def test_refresh_tokens_of_earlier_settings_are_not_used(tmp_path):
    case = SqliteCase(tmp_path)
    scene = await started(case, ("openid",))
    scene.documents.answer = 400, {"error": "invalid_grant"}
    await scene.check()
    assert scene.documents.asked == []
    assert await scene.state() == (1, True, True, True)
    await case.stop()
