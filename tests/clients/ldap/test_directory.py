"""What OpenLDAP's server says of people, and what is made of it."""

from __future__ import annotations

import pytest
import pytest_twisted
from twisted.internet import reactor

from pkgrepo.auth.external_accounts import CHECKED_S, DailyCheck
from pkgrepo.composition.directories import make_directories
from pkgrepo.config import read_config
from pkgrepo.errors import DirectoryUnavailable
from pkgrepo.model import TokenKind
from pkgrepo.storage.catalog.people.groups import add_group, is_member
from pkgrepo.storage.catalog.people.linked_identities import ensure_linked, find_linked
from pkgrepo.storage.catalog.people.logins import add_session, list_sessions
from pkgrepo.storage.catalog.people.tokens import add_token, find_token
from tests.support.catalogs import SqliteCase
from tests.support.certificates import write_certificate
from tests.support.slapd import BASE, PASSWORDS

pytestmark = [pytest.mark.clients]


@pytest.fixture
def open_directory(slapd, tmp_path):
    """Make a directory with other settings than those of the fixture."""
    opened = []

    def open_(**settings):
        file = tmp_path / f"{len(opened)}.toml"
        file.write_text(slapd.settings(**settings))
        [found] = make_directories(read_config(file), reactor)
        opened.append(found)
        return found

    yield open_
    for each in opened:
        each.close()


WAYS = {
    "plain": lambda slapd: {"url": f'"{slapd.url}"'},
    "tls": lambda _slapd: {},
    "start_tls": lambda slapd: {"url": f'"{slapd.url}"', "start_tls": "true"},
    "second": lambda slapd: {"url": '"ldaps://127.0.0.1:9"', "more_urls": f'["{slapd.tls_url}"]'},
}


@pytest.mark.parametrize("way", WAYS)
@pytest_twisted.ensureDeferred
async def test_a_person_is_found_and_the_password_checked(open_directory, slapd, way):
    directory = open_directory(admin_groups='["chiefs"]', **WAYS[way](slapd))
    for _ in range(2):  # over the same connection
        ann = await directory.log_in("ann", PASSWORDS["ann"])
        assert (ann.issuer, ann.username, ann.name, ann.email) == (
            "ldap:corp",
            "ann",
            "Ann of Corp",
            "ann@corp.example",
        )
        assert (ann.subject[:10], ann.groups, ann.admin) == ("entryUUID=", ["crew"], False)
        bob = await directory.log_in("bob", PASSWORDS["bob"])
        assert (sorted(bob.groups), bob.admin) == (["chiefs", "crew"], True)
        assert await directory.log_in("ann", PASSWORDS["bob"]) is None
        assert await directory.log_in("nobody", "words") is None


@pytest.mark.parametrize(
    "name", ["*", "a*", "ann)(uid=*", "*)(|(uid=*", "ann\\", "\\61nn", "ann\0", "(ann)", "{username}", "é"]
)
@pytest_twisted.ensureDeferred
async def test_no_name_is_a_part_of_a_filter(open_directory, name):
    directory = open_directory(user_filter='"(|(uid={username})(&(cn={username})(objectClass=person)))"')
    for password in (PASSWORDS["ann"], "words"):
        assert await directory.log_in(name, password) is None
    assert await directory.log_in("ann", PASSWORDS["ann"])


@pytest_twisted.ensureDeferred
async def test_an_empty_password_logs_nobody_in(open_directory):
    directory = open_directory()
    assert await directory.log_in("ann", "") is None
    assert await directory.log_in("", "words") is None


@pytest_twisted.ensureDeferred
async def test_nested_groups_count_if_they_should_also_in_a_circle(open_directory):
    ann = await open_directory(nested_groups="true").log_in("ann", PASSWORDS["ann"])
    assert sorted(ann.groups) == ["crew", "house", "town"]
    ann = await open_directory(group_filter='""').log_in("ann", PASSWORDS["ann"])
    assert ann.groups == []


@pytest_twisted.ensureDeferred
async def test_a_filter_keeps_people_out_who_are_not_in_a_group(open_directory):
    chiefs = f'"(&(uid={{username}})(memberOf=cn=chiefs,ou=groups,{BASE}))"'
    directory = open_directory(user_filter=chiefs)
    assert await directory.log_in("ann", PASSWORDS["ann"]) is None
    assert await directory.log_in("bob", PASSWORDS["bob"])


CASES = {
    "two people of this name": ({}, "several entries have this name"),
    "certificate": ({"ca_file": "OTHER"}, "its certificate is not trusted; ca_file"),
    "host": ({"url": "OTHER HOST"}, "its certificate is for another host"),
    "own password": ({"bind_password_file": "WRONG"}, "it refuses this server's own login"),
    "base": ({"base_dn": '"dc=other"'}, "the base of the search is not there"),
    "no id": ({"id_attribute": '"employeeNumber"'}, "no id (employeeNumber"),
    "dead": ({"url": '"ldaps://127.0.0.1:9"'}, "it refuses connections"),
    "no tls there": ({"url": "PLAIN"}, "it closed the connection before its answer"),
}


@pytest.mark.parametrize("case", CASES)
@pytest_twisted.ensureDeferred
async def test_what_nobody_knows_is_not_a_wrong_password(open_directory, slapd, tmp_path, case):
    settings, reason = CASES[case]
    other = tmp_path / "other"
    other.mkdir()
    write_certificate(other)
    (tmp_path / "wrong").write_text("wrong")
    named = {
        "OTHER": other / "server.crt",
        "WRONG": tmp_path / "wrong",
        "OTHER HOST": slapd.other_url,
        "PLAIN": slapd.url.replace("ldap:", "ldaps:"),
    }
    directory = open_directory(
        **{key: f'"{named[value]}"' if value in named else value for key, value in settings.items()}
    )
    person = "twin" if case.startswith("two") else "ann"
    with pytest.raises(DirectoryUnavailable) as refused:
        await directory.log_in(person, f"words of {person}" if person == "twin" else PASSWORDS[person])
    assert reason in str(refused.value)
    assert "words" not in str(refused.value)


@pytest_twisted.ensureDeferred
async def test_a_directory_that_came_back_is_asked_again(open_directory, slapd):
    directory = open_directory()
    assert await directory.log_in("ann", PASSWORDS["ann"])
    slapd.stop()
    slapd.start()
    assert await directory.log_in("ann", PASSWORDS["ann"]), "the connection from before has ended"
    assert "it answers" in await directory.check()


class Checked:
    """A catalog in which people of the directory have logged in, each with a session, a token and a group."""

    def __init__(self, catalog, directory):
        self.catalog = catalog
        self.directory = directory
        self.now_ms = 1_800_000_000_000
        self.entries = []
        self.daily = DailyCheck([directory], catalog, now_ms=lambda: self.now_ms, copy_entry=self.entries.append)
        self.users = {}

    async def prepare(self, *names):
        self.group = await self.catalog.write(add_group, name="crew", now_ms=0)
        for number, name in enumerate(names):
            person = await self.directory.log_in(name, PASSWORDS.get(name, f"words of {name}"))
            user, linked = await self.catalog.write(
                ensure_linked, person, auto_create=True, link_by_email=False, refresh="x", now_ms=self.now_ms
            )
            session = {"user_id": user.id, "address": "", "client": "", "now_ms": self.now_ms}
            await self.catalog.write(add_session, hash=b"%d" % number, **session)
            token = await self.catalog.write(
                add_token,
                user_id=user.id,
                hash=b"t%d" % number,
                shown="x",
                kind=TokenKind.PERSONAL,
                name="x",
                now_ms=0,
            )
            self.users[name] = (user, token, linked)

    async def check(self):
        self.now_ms += (CHECKED_S + 1) * 1000
        await self.daily.run()

    async def state(self, name):
        """The number of sessions, whether the token is valid, and in the group."""
        user, token, _ = self.users[name]
        look = self.catalog.look
        return (
            len(await look(list_sessions, user.id)),
            (await look(find_token, token.id)).revoked_at is None,
            await look(is_member, self.group.id, user.id),
        )


@pytest_twisted.ensureDeferred
async def test_people_who_have_left_lose_everything_within_a_day(open_directory, slapd, tmp_path):
    case = SqliteCase(tmp_path)
    try:
        scene = Checked(await case.another(), open_directory())
        await scene.prepare("ann", "cid", "dora")
        slapd.change(f"dn: uid=cid,ou=people,{BASE}\nchangetype: delete\n")
        slapd.change(
            f"dn: cn=crew,ou=groups,{BASE}\nchangetype: modify\nadd: member\nmember: uid=dora,ou=people,{BASE}\n"
        )
        await scene.check()
        assert await scene.state("ann") == (1, True, True)
        assert await scene.state("cid") == (0, False, False)
        assert await scene.state("dora") == (1, True, True), "groups are read again"
        assert [(each.action, each.object) for each in scene.entries] == [("session.end", "cid")]
        await scene.check()
        assert len(scene.entries) == 1, "who has left is not asked for again"
        slapd.stop()
        await scene.check()
        assert await scene.state("ann") == (1, True, True), "a directory that is away takes nothing away"
        slapd.start()
    finally:
        await case.stop()


@pytest_twisted.ensureDeferred
async def test_a_directory_that_shows_nobody_any_more_ends_nothing(open_directory, slapd, tmp_path):
    case = SqliteCase(tmp_path)
    try:
        scene = Checked(await case.another(), open_directory(user_base=f'"ou=people,{BASE}"'))
        await scene.prepare("eve")
        linked = scene.users["eve"][2]
        assert (await scene.directory.ask(linked)).person.username == "eve"
        blind = open_directory(user_base=f'"ou=groups,{BASE}"')
        with pytest.raises(DirectoryUnavailable, match="shows nobody at all"):
            await blind.ask(linked)
        scene.daily = DailyCheck([blind], scene.catalog, now_ms=lambda: scene.now_ms, copy_entry=scene.entries.append)
        await scene.check()
        assert await scene.state("eve") == (1, True, False)
        assert (await scene.catalog.look(find_linked, linked.issuer, linked.subject)).refresh
    finally:
        await case.stop()


@pytest_twisted.ensureDeferred
async def test_a_check_says_what_fails(open_directory):
    assert "the first one found is in" in await open_directory().check()
    for settings, reason in (
        ({"user_filter": '"(sAMAccountName={username})"'}, "it shows nobody"),
        ({"username_attribute": '"employeeNumber"'}, "have no employeeNumber"),
        ({"base_dn": '"no name"'}, "no distinguished name"),
    ):
        with pytest.raises(DirectoryUnavailable, match=reason):
            await open_directory(**settings).check()
