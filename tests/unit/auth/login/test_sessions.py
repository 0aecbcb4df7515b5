"""Browser sessions: their secrets, and how they end by age."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.login.sessions import USE_RECORDED_S, BrowserSessions, csrf_of, is_csrf
from pkgrepo.errors import AuthenticationRequired
from pkgrepo.model import ANONYMOUS
from pkgrepo.storage.catalog.people.logins import MOST_SESSIONS, list_sessions
from pkgrepo.storage.catalog.people.users import update_user
from tests.support.auth import AuthServices

HOUR = 3600


class Scene:
    def __init__(self) -> None:
        self.services = AuthServices()
        self.user = self.services.user("ada")
        self.now = 1_000_000.0
        self.sessions = BrowserSessions(self.services.catalog, idle=timedelta(hours=12), clock=lambda: self.now)

    async def begin(self) -> bytes:
        return await self.sessions.begin(
            identity_of(self.user, via="password"), "192.0.2.1", "Mozilla/5.0 " + "x" * 500
        )

    async def stored(self) -> int:
        return len(await self.services.catalog.look(list_sessions, self.user.id))


async def test_a_session_that_is_used_lasts_seven_days() -> None:
    scene = Scene()
    secret = await scene.begin()
    for _ in range(14):
        found = await scene.sessions.find(secret)
        assert found is not None
        assert (found.username, found.via) == ("ada", "session")
        scene.now += 12 * HOUR
    scene.now += 1
    assert await scene.sessions.find(secret) is None


async def test_an_unused_session_ends_after_its_idle_time() -> None:
    scene = Scene()
    secret = await scene.begin()
    scene.now += 12 * HOUR + 1
    assert await scene.sessions.find(secret) is None
    await scene.sessions.remove_old()
    assert await scene.stored() == 0


async def test_frequent_uses_are_not_all_written() -> None:
    scene = Scene()
    secret = await scene.begin()
    [begun] = await scene.services.catalog.look(list_sessions, scene.user.id)
    scene.now += USE_RECORDED_S
    await scene.sessions.find(secret)
    assert await scene.services.catalog.look(list_sessions, scene.user.id) == [begun]
    scene.now += 1
    await scene.sessions.find(secret)
    [used] = await scene.services.catalog.look(list_sessions, scene.user.id)
    assert used.seen_at > begun.seen_at
    assert len(used.client) == 200


async def test_a_further_login_ends_the_session_that_was_not_used_for_the_longest_time() -> None:
    scene = Scene()
    secrets = []
    for _ in range(MOST_SESSIONS + 1):
        scene.now += 1
        secrets.append(await scene.begin())
    assert await scene.stored() == MOST_SESSIONS
    assert await scene.sessions.find(secrets[0]) is None
    assert await scene.sessions.find(secrets[1]) is not None


async def test_a_login_ends_the_session_that_the_browser_had() -> None:
    scene = Scene()
    first, other = await scene.begin(), await scene.begin()
    begun = await scene.sessions.begin(identity_of(scene.user, via="password"), "192.0.2.1", "", before=first)
    assert await scene.sessions.find(first) is None
    for kept in (other, begun):
        assert await scene.sessions.find(kept) is not None


async def test_the_session_of_a_user_who_was_switched_off_does_not_come_back() -> None:
    scene = Scene()
    secret = await scene.begin()
    scene.services.catalog.do(update_user, scene.user.id, now_ms=1, name="Ada")
    assert await scene.sessions.find(secret) is not None
    for active in (False, True):
        scene.services.catalog.do(update_user, scene.user.id, now_ms=1, active=active)
        assert await scene.sessions.find(secret) is None


async def test_nobody_has_no_session() -> None:
    with pytest.raises(AuthenticationRequired):
        await Scene().sessions.begin(ANONYMOUS, "", "")


@pytest.mark.parametrize("given", ["", "0" * 64, "\udcff", "é" * 64])
def test_another_csrf_value_is_wrong(given: str) -> None:
    secret = b"s" * 43
    assert is_csrf(secret, csrf_of(secret))
    assert not is_csrf(secret, given)
