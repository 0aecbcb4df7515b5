"""Logins of programs, one-time links, passkeys and the lists of who is away, on every engine of the catalog."""

import pytest
from twisted.internet.defer import ensureDeferred, gatherResults

from pkgrepo.errors import Conflict, Forbidden, NotFound
from pkgrepo.model import TokenKind
from pkgrepo.storage.catalog.people import login_requests, one_time_links, passkeys
from pkgrepo.storage.catalog.people.login_requests import find_by_device_code, find_by_user_code, take_login
from pkgrepo.storage.catalog.people.logins import add_session, list_sessions
from pkgrepo.storage.catalog.people.tokens import add_token, count_working_tokens, list_working_tokens
from pkgrepo.storage.catalog.people.users import add_user, count_users, list_users, password_hash, remove_user

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def request_of():
    """The values of a login of a program."""

    def make(number, address="192.0.2.1", now_ms=NOW_MS):
        code = b"%032d" % number
        asked = {"name": "x", "scopes": ["api:read"], "days": None, "port": None, "address": address, "client": "c"}
        return {**asked, "device_hash": b"d" + code, "user_hash": b"u" + code, "now_ms": now_ms}

    return make


async def test_a_login_of_a_program_is_approved_and_taken_once(catalog, request_of):
    user = await catalog.write(add_user, username="ann", now_ms=NOW_MS)
    values, end = request_of(1), NOW_MS + 1000
    assert await catalog.write(login_requests.add_login_request, **values, expires_ms=end)
    found = await catalog.look(find_by_user_code, values["user_hash"], NOW_MS)
    assert (found.scopes, found.state) == (["api:read"], "pending")
    decision = {"user_id": user.id, "approved": True, "proof": b"p", "now_ms": NOW_MS}
    await catalog.write(login_requests.decide_login, found, **decision)
    with pytest.raises(NotFound):
        await catalog.write(login_requests.decide_login, found, **decision)
    assert await catalog.look(find_by_user_code, values["user_hash"], NOW_MS) is None
    decided = await catalog.look(find_by_device_code, values["device_hash"], NOW_MS)
    assert (decided.state, decided.user_id, decided.proof) == ("approved", user.id, b"p")
    taken = [ensureDeferred(catalog.write(take_login, decided)) for _ in range(4)]
    assert sorted(await gatherResults(taken)) == [False, False, False, True]
    await catalog.write(login_requests.add_login_request, **request_of(2), expires_ms=end)
    assert await catalog.look(find_by_device_code, request_of(2)["device_hash"], end) is None


async def test_only_so_many_logins_of_programs_wait_for_an_address(catalog, request_of):
    for number in range(login_requests.MOST_OF_ADDRESS):
        assert await catalog.write(login_requests.add_login_request, **request_of(number), expires_ms=NOW_MS + 1)
    assert not await catalog.write(login_requests.add_login_request, **request_of(900), expires_ms=NOW_MS + 1)
    other = request_of(901, "192.0.2.2")
    assert await catalog.write(login_requests.add_login_request, **other, expires_ms=NOW_MS + 1)
    later = request_of(902, now_ms=NOW_MS + 1)
    assert await catalog.write(login_requests.add_login_request, **later, expires_ms=NOW_MS + 9), "the rest has expired"


async def test_logins_of_programs_are_counted_for_a_network_of_ipv6(catalog, request_of):
    end = NOW_MS + 1
    for number in range(login_requests.MOST_OF_ADDRESS):
        values = request_of(number, f"2001:db8:0:1::{number:x}")
        assert await catalog.write(login_requests.add_login_request, **values, expires_ms=end)
    mate, neighbour = request_of(900, "2001:db8:0:1:ffff::1"), request_of(901, "2001:db8:0:2::1")
    assert not await catalog.write(login_requests.add_login_request, **mate, expires_ms=end)
    assert await catalog.write(login_requests.add_login_request, **neighbour, expires_ms=end)


async def test_a_link_sets_a_password_once(catalog):
    user = await catalog.write(add_user, username="ann", now_ms=NOW_MS)
    await catalog.write(one_time_links.add_link, user.id, b"first", now_ms=NOW_MS, expires_ms=NOW_MS + 1)
    await catalog.write(one_time_links.add_link, user.id, b"second", now_ms=NOW_MS, expires_ms=NOW_MS + 1)
    assert await catalog.look(one_time_links.find_link_user, b"first", NOW_MS) is None
    assert await catalog.look(one_time_links.find_link_user, b"second", NOW_MS + 1) is None
    assert (await catalog.write(one_time_links.use_link, b"second", "a hash", now_ms=NOW_MS)).id == user.id
    assert await catalog.look(password_hash, user.id) == "a hash"
    with pytest.raises(Forbidden):
        await catalog.write(one_time_links.use_link, b"second", "another", now_ms=NOW_MS)
    assert not await catalog.write(one_time_links.remove_link, user.id)


async def test_passkeys_are_counted_and_end_their_sessions(catalog):
    user = await catalog.write(add_user, username="ann", now_ms=NOW_MS)
    values = {"public_key": b"k", "sign_count": 3, "name": "x", "now_ms": NOW_MS}
    first = await catalog.write(passkeys.add_passkey, user.id, credential_id=b"1", **values)
    await catalog.write(passkeys.add_passkey, user.id, credential_id=b"2", **values)
    with pytest.raises(Conflict):
        await catalog.write(passkeys.add_passkey, user.id, credential_id=b"1", **values)
    await catalog.write(passkeys.note_passkey_use, first, 4, now_ms=NOW_MS)
    with pytest.raises(Conflict):
        await catalog.write(passkeys.note_passkey_use, first, 4, now_ms=NOW_MS)
    session = {"user_id": user.id, "address": "", "client": "", "now_ms": NOW_MS}
    for number, passkey_id in enumerate((None, first.id)):
        await catalog.write(add_session, hash=b"%d" % number, passkey_id=passkey_id, **session)
    assert await catalog.write(passkeys.remove_passkeys, user.id, first.id) == 1
    assert [each.passkey_id for each in await catalog.look(list_sessions, user.id)] == [None]
    with pytest.raises(NotFound):
        await catalog.write(passkeys.remove_passkeys, user.id, first.id)
    assert await catalog.write(passkeys.remove_passkeys, user.id) == 1
    assert await catalog.look(passkeys.list_passkeys, user.id) == []


async def test_who_is_away_and_whose_tokens_lack_a_second_factor(catalog):
    for name, days, flags in (("ann", 100, {"admin": True}), ("bob", 1, {}), ("cid", 100, {})):
        at_ms = NOW_MS - days * DAY_MS
        user = await catalog.write(add_user, username=name, password_hash="h", now_ms=at_ms, **flags)
        token = {"kind": TokenKind.PERSONAL, "name": name, "now_ms": at_ms}
        await catalog.write(add_token, user_id=user.id, hash=name.encode(), shown="x", **token)
    since_ms = NOW_MS - 50 * DAY_MS
    assert [each.username for each in await catalog.look(list_users, absent_since_ms=since_ms)] == ["ann", "cid"]
    assert await catalog.look(count_users, "", None, since_ms) == 2
    for lacking, names in ((0, ["ann"]), (1, ["ann", "bob", "cid"]), (None, ["ann", "bob", "cid"])):
        found = await catalog.look(list_working_tokens, None, None, lacking, NOW_MS, order="name")
        assert [each.name for each in found] == names
        assert await catalog.look(count_working_tokens, None, None, lacking, NOW_MS) == len(names)
    await catalog.write(remove_user, user.id)
    assert await catalog.look(count_users) == 2
