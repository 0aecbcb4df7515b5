"""Accounts of people who log in elsewhere, on every engine of the catalog."""

from attrs import evolve
from twisted.logger import globalLogPublisher

from pkgrepo.auth.external_accounts import CHECKED_S, MOST_FAILURES, DailyCheck, Known
from pkgrepo.auth.external_accounts import make_person as make_person_of
from pkgrepo.errors import IssuerUnavailable
from pkgrepo.model import TokenKind
from pkgrepo.storage.catalog.people.groups import add_group, is_member
from pkgrepo.storage.catalog.people.linked_identities import (
    Person,
    ensure_linked,
    find_settled,
    issuers_of,
    linked_to_check,
)
from pkgrepo.storage.catalog.people.logins import add_session, list_sessions
from pkgrepo.storage.catalog.people.passkeys import add_passkey, list_passkeys
from pkgrepo.storage.catalog.people.tokens import add_token, find_token
from pkgrepo.storage.catalog.people.users import add_user, get_user, set_password, update_user

ISSUER = "ldap:corp"
NOW_MS = 1_800_000_000_000
DAY_MS = (CHECKED_S + 1) * 1000


class StubDirectory:
    """A directory that knows the ``people`` of these subjects."""

    name = "corp"
    issuer = ISSUER

    def __init__(self, people, troubles=()):
        self.people = people
        self.troubles = troubles
        self.asked = []

    async def ask(self, linked):
        self.asked.append(linked.subject)
        if linked.subject in self.troubles:
            raise IssuerUnavailable("corp", "it answers 500")
        person = self.people.get(linked.subject)
        return None if person is None else Known("directory", person)


def make_person(name, *groups, admin=False):
    return Person(ISSUER, f"id={name}", name, name.title(), f"{name}@corp.example", groups, admin)


async def log_in(catalog, person, now_ms=NOW_MS):
    user, linked = await catalog.write(
        ensure_linked, person, auto_create=True, link_by_email=False, refresh="directory", now_ms=now_ms
    )
    return user, linked


async def test_a_login_that_changes_nothing_is_recognised(catalog):
    await catalog.write(add_user, username="root", admin=True, now_ms=0)
    crew = await catalog.write(add_group, name="crew", now_ms=0)
    ann = make_person("ann", "crew", "unknown", admin=True)
    assert await catalog.look(find_settled, ann, 0) is None
    user, _ = await log_in(catalog, ann)
    assert (await catalog.look(find_settled, ann, NOW_MS - 1)).id == user.id
    assert await catalog.look(find_settled, ann, NOW_MS) is None, "it is to be recorded again"
    for other in (make_person("ann", "crew"), make_person("ann", admin=True)):
        assert await catalog.look(find_settled, other, NOW_MS - 1) is None
    user, _ = await log_in(catalog, make_person("ann"))
    assert not user.admin
    assert not await catalog.look(is_member, crew.id, user.id)
    assert await catalog.look(issuers_of, user.id) == [ISSUER]


async def test_name_and_address_follow_the_provider_when_they_change_there(catalog):
    ann = make_person("ann")
    user, _ = await log_in(catalog, ann)
    await catalog.write(update_user, user.id, name="Annie", now_ms=NOW_MS)
    assert (await log_in(catalog, ann))[0].name == "Annie", "what was changed here stays"
    married = evolve(ann, name="Ann Bo", email="ann.bo@corp.example")
    assert await catalog.look(find_settled, married, NOW_MS - 1) is None
    user, _ = await log_in(catalog, married)
    assert (user.username, user.name, user.email) == ("ann", "Ann Bo", "ann.bo@corp.example")
    assert await catalog.look(find_settled, married, NOW_MS - 1) is not None
    user, _ = await log_in(catalog, evolve(married, name="", email=""))
    assert (user.name, user.email) == ("Ann Bo", "ann.bo@corp.example"), "nothing was told"
    other = evolve(make_person("other"), email="ann@corp.example")
    found, _ = await catalog.write(
        ensure_linked, other, auto_create=True, link_by_email=True, refresh="directory", now_ms=NOW_MS
    )
    assert found.id != user.id, "who has the former address of another person is not that person"


async def test_an_address_links_only_the_account_with_the_same_letters(catalog):
    owner = await catalog.write(add_user, username="king", email="King@corp.example", now_ms=0)
    await catalog.write(add_user, username="kelvin", email="\u212aate@corp.example", now_ms=0)
    await catalog.write(add_user, username="kate", email="kate@corp.example", now_ms=0)

    async def linked(subject, email):
        person = make_person_of(
            ISSUER, subject, username=subject, name="", email=email, groups=[], group_names={}, admin_groups=[]
        )
        user, _ = await catalog.write(
            ensure_linked, person, auto_create=True, link_by_email=True, refresh="directory", now_ms=NOW_MS
        )
        return user

    for number, other in enumerate(("\u212aing@corp.example", "ki\u200bng@corp.example", "K\u0130NG@corp.example")):
        assert (await linked(f"other{number}", other)).id != owner.id, ascii(other)
    assert (await linked("ki", "kING@Corp.example")).id == owner.id
    assert (await linked("ka", "kate@corp.example")).username == "kate", "the other one is no second of this address"


async def test_groups_and_new_names_of_a_provider_are_those_with_the_same_letters(catalog):
    group = await catalog.write(add_group, name="Kings", now_ms=0)
    for number, name in enumerate(("\u212aings", "kings\u200b", " kings", "king\u017f", group.uid)):
        user, _ = await log_in(catalog, make_person(f"user{number}", name))
        assert not await catalog.look(is_member, group.id, user.id), ascii(name)
    user, _ = await log_in(catalog, make_person("ann", "KINGS"))
    assert await catalog.look(is_member, group.id, user.id)
    for name in ("\u212aing", "ki\u200bng", "king ", "pipelines", "pipelines-2", "System", "anonymous"):
        person = make_person_of(
            ISSUER, "x", username=name, name="", email="", groups=[], group_names={}, admin_groups=[]
        )
        assert person.username == "", ascii(name)


async def test_who_has_left_loses_sessions_tokens_and_groups_once(catalog):
    crew = await catalog.write(add_group, name="crew", now_ms=0)
    people = [make_person(name, "crew") for name in ("ann", "bob", "cid")]
    users, tokens = {}, {}
    for number, person in enumerate(people):
        user, _ = await log_in(catalog, person)
        session = {"user_id": user.id, "address": "", "client": "", "now_ms": NOW_MS}
        await catalog.write(add_session, hash=b"%d" % number, **session)
        tokens[person.username] = await catalog.write(
            add_token, user_id=user.id, hash=b"t%d" % number, shown="x", kind=TokenKind.PERSONAL, name="x", now_ms=0
        )
        await catalog.write(
            add_passkey, user.id, credential_id=b"%d" % number, public_key=b"k", sign_count=0, name="", now_ms=0
        )
        users[person.username] = user
    await catalog.write(set_password, users["cid"].id, "$argon2id$x", now_ms=0)
    session = {"user_id": users["cid"].id, "address": "", "client": "", "now_ms": NOW_MS}
    await catalog.write(add_session, hash=b"9", **session)

    now_ms, entries = [NOW_MS], []
    directory = StubDirectory({"id=ann": people[0]})
    check = DailyCheck([directory], catalog, now_ms=lambda: now_ms[0], copy_entry=entries.append)
    await check.run()
    assert directory.asked == []
    now_ms[0] += DAY_MS
    await check.run()
    assert sorted(directory.asked) == ["id=ann", "id=bob", "id=cid"]

    async def state(name):
        user = await catalog.look(get_user, users[name].id)
        sessions = len(await catalog.look(list_sessions, user.id))
        token = await catalog.look(find_token, tokens[name].id)
        keys = len(await catalog.look(list_passkeys, user.id))
        return sessions, keys, token.revoked_at is None, await catalog.look(is_member, crew.id, user.id)

    assert await state("ann") == (1, 1, True, True)
    assert await state("bob") == (0, 0, False, False)
    assert await state("cid") == (1, 1, True, False), "there is a password here, too"
    assert sorted(each.object for each in entries) == ["bob", "cid"]
    now_ms[0] += DAY_MS
    await check.run()
    assert len(entries) == 2
    due = await catalog.look(linked_to_check, ISSUER, now_ms[0] + DAY_MS, 10)
    assert [each.subject for each in due] == ["id=ann"]
    assert await catalog.look(linked_to_check, "ldap:other", now_ms[0] + DAY_MS, 10) == []


async def test_people_about_whom_there_is_an_error_keep_no_others_from_being_checked(catalog):
    names = ["ann", "bob", "cid", "dan"]
    for name in names:
        await log_in(catalog, make_person(name))
    directory = StubDirectory({}, troubles={"id=ann", "id=bob"})
    now_ms, entries = [NOW_MS + DAY_MS], []
    check = DailyCheck([directory], catalog, now_ms=lambda: now_ms[0], copy_entry=entries.append)
    events = []
    globalLogPublisher.addObserver(events.append)
    try:
        await check.run()
    finally:
        globalLogPublisher.removeObserver(events.append)
    assert sorted(each.object for each in entries) == ["cid", "dan"]
    assert sorted(each["user"] for each in events if "user" in each) == ["ann", "bob"]
    more = [f"p{number}" for number in range(MOST_FAILURES)]
    directory.troubles = {f"id={name}" for name in (*names, *more)}
    for name in more:
        await log_in(catalog, make_person(name))
    directory.asked.clear()
    now_ms[0] += DAY_MS
    await check.run()
    assert len(directory.asked) == MOST_FAILURES, "one that is away is not asked for each"
