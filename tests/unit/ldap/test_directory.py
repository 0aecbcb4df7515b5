"""What entries of Active Directory and others mean, without a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from ldaptor.protocols import pureldap
from twisted.logger import globalLogPublisher
from zope.interface.verify import verifyObject

from pkgrepo.auth.external_accounts import MOST_GROUPS, IProvider
from pkgrepo.auth.login.directories import IDirectory
from pkgrepo.errors import DirectoryUnavailable, IdentityRefused
from pkgrepo.ldap.directory import Directory, Layout, OwnLogin
from pkgrepo.ldap.filters import Filter
from pkgrepo.ldap.messages import Entry, Result, Unusable
from pkgrepo.storage.catalog.people.linked_identities import LinkedIdentity

DN = b"CN=Ann,OU=People,DC=corp"
NOW_S = 1_795_788_000  # 2026-11-27
GUID = bytes(range(0xF0, 0x100))
LAYOUT = Layout(
    user_base="OU=People,DC=corp",
    group_base="OU=Groups,DC=corp",
    user_filter=Filter("(&(objectClass=user)(sAMAccountName={username}))", "username"),
    group_filter=Filter("(member={dn})", "dn", "username"),
    nested_groups=False,
    username_attribute="sAMAccountName",
    name_attribute="displayName",
    email_attribute="mail",
    id_attribute="",
    group_attribute="cn",
    admin_groups=frozenset({"Chiefs"}),
)


class StubConnection:
    """A server with one person in some groups; ``asked`` are the operations."""

    def __init__(self, groups=(), **attributes):
        found = {"sAMAccountName": b"ann", "displayName": "Ann Ünal".encode(), "objectGUID": GUID, **attributes}
        self.person = Entry(DN, {name.lower(): (value,) for name, value in found.items() if value})
        self.groups = groups
        self.password = "words"
        self.refusal = Result(49, "")
        self.is_ours = False
        self.asked = []
        self._found = []

    async def ask(self, operation, most=0):
        self.asked.append(operation)
        if isinstance(operation, pureldap.LDAPBindRequest):
            if operation.dn == DN and operation.auth != self.password:
                return self.refusal
            return Result(0, "")
        if operation.baseObject == LAYOUT.group_base:
            self._found = [Entry(b"cn=%s" % name.encode(), {"cn": (name.encode(),)}) for name in self.groups[:most]]
            return Result(4 if len(self.groups) > most else 0, "")
        self._found = [self.person] if self.person is not None else []
        return Result(0, "")

    def take_entries(self):
        return self._found


class StubServers:
    trouble = ""

    def __init__(self, connection):
        self.connection = connection

    async def use(self, work):
        return await work(self.connection)


def directory(connection, **layout):
    return Directory(
        "ad",
        StubServers(connection),
        evolve(LAYOUT, **layout),
        OwnLogin(dn="cn=us", password="ours"),
        auto_create=True,
        link_by_email=False,
        now_s=lambda: NOW_S,
    )


def linked(subject):
    now = datetime.now(UTC)
    return LinkedIdentity(1, "ldap:ad", subject, 7, {}, "directory", now, now)


def test_the_interfaces_are_kept():
    for interface in (IDirectory, IProvider):
        assert verifyObject(interface, directory(StubConnection()))


async def test_a_person_of_active_directory_is_known_by_the_guid():
    connection = StubConnection(groups=("Crew", "Chiefs"))
    person = await directory(connection).log_in("ann", "words")
    assert (person.username, person.name, person.email) == ("ann", "Ann Ünal", "")
    assert (person.subject, person.admin) == (f"objectGUID:{GUID.hex()}", True)
    assert list(person.groups) == ["Crew", "Chiefs"]
    known = await directory(connection).ask(linked(person.subject))
    assert known.person == person
    by_id = connection.asked[-2].filter
    assert GUID in by_id.toWire()
    assert b"sAMAccountName" in by_id.toWire(), "and the filter of people holds"


@pytest.mark.parametrize(
    "attributes",
    [
        {"userAccountControl": b"514"},
        {"nsAccountLock": b"TRUE"},
        {"userAccountControl": b"66050"},
        {"accountExpires": b"134400384000000000"},  # 100 ns from 1601: 2026-11-25
        {"pwdAccountLockedTime": b"000001010000Z"},
    ],
)
async def test_an_account_that_is_disabled_there_is_gone(attributes):
    connection = StubConnection(**attributes)
    assert await directory(connection).log_in("ann", "words") is None
    assert await directory(connection).ask(linked(f"objectGUID:{GUID.hex()}")) is None


@pytest.mark.parametrize("control", [b"512", b"x", "²".encode(), b"9" * 50])
async def test_other_values_disable_nobody(control):
    assert await directory(StubConnection(userAccountControl=control)).log_in("ann", "words")


@pytest.mark.parametrize("expires", [b"0", b"9223372036854775807", b"134500000000000000", b"-1", b"x", b"9" * 50])
async def test_an_account_that_has_not_expired_is_there(expires):
    assert await directory(StubConnection(accountExpires=expires)).log_in("ann", "words")


async def test_a_lock_for_a_time_is_no_leaving():
    connection = StubConnection(pwdAccountLockedTime=b"20261127120000Z")
    assert await directory(connection).ask(linked(f"objectGUID:{GUID.hex()}"))


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (Result(53, "Account inactivated."), "Account inactivated. (LDAP result 53)"),
        (Result(49, "password expired!"), "password expired! (LDAP result 49)"),
        (Result(19, ""), "no reason is given (LDAP result 19)"),
        (Result(49, "80090308: LdapErr: x, comment: y, data 701, v2580"), "the account has expired"),
    ],
)
async def test_the_log_says_who_is_refused_and_why(refusal, why):
    connection = StubConnection()
    connection.refusal = refusal
    [event] = await refusals(connection)
    assert (event["user"], event["why"]) == ("ann", why)
    connection.refusal = Result(49, "")
    assert await refusals(connection) == [], "a wrong password is logged where the name was typed"


async def test_the_log_says_who_is_disabled():
    connection = StubConnection(userAccountControl=b"514")
    [event] = await refusals(connection, "words")
    assert event["user"] == "ann"


async def test_who_must_change_the_password_first_is_refused_and_has_not_left():
    connection = StubConnection(pwdReset=b"TRUE")
    [event] = await refusals(connection, "words")
    assert event["why"] == "the password must be changed first"
    assert await directory(connection).ask(linked(f"objectGUID:{GUID.hex()}"))


async def refusals(connection, password="guess"):
    events = []
    globalLogPublisher.addObserver(events.append)
    try:
        assert await directory(connection).log_in("ann", password) is None
    finally:
        globalLogPublisher.removeObserver(events.append)
    assert password not in str(events)
    return [each for each in events if "why" in each]


@pytest.mark.parametrize("tells", [True, False])
async def test_an_address_is_told_where_the_directory_is_trusted_with_it(*, tells):
    found = await directory(StubConnection(mail=b"ann@corp"), tells_email=tells).log_in("ann", "words")
    assert found.email == ("ann@corp" if tells else "")


async def test_an_entry_without_an_id_logs_nobody_in():
    for given in (None, b"x" * 300):
        with pytest.raises(DirectoryUnavailable, match="has no id"):
            await directory(StubConnection(objectGUID=given)).log_in("ann", "words")


async def test_an_entry_without_a_name_is_no_anonymous_login():
    connection = StubConnection()
    connection.person = evolve(connection.person, dn=b"")
    with pytest.raises(Unusable, match="without a name"):
        await directory(connection).log_in("ann", "words")
    assert len(connection.asked) == 2, "there was no bind"


async def test_an_id_of_the_settings_is_used_alone():
    connection = StubConnection(employeeNumber=b"0815")
    assert (await directory(connection, id_attribute="employeeNumber").log_in("ann", "words")).subject == (
        "employeeNumber=0815"
    )


async def test_another_entry_than_the_one_that_was_asked_for_is_refused():
    with pytest.raises(IdentityRefused, match="another entry"):
        await directory(StubConnection()).ask(linked("objectGUID:00"))


async def test_more_groups_than_are_looked_at_are_left_out():
    person = await directory(StubConnection(groups=[f"g{n}" for n in range(MOST_GROUPS + 5)])).log_in("ann", "words")
    assert len(person.groups) == MOST_GROUPS


async def test_a_name_that_is_not_there_costs_a_bind_without_the_password():
    connection = StubConnection()
    connection.person = None
    assert await directory(connection).log_in("bob", "words") is None
    own, _, decoy = connection.asked
    assert (own.dn, decoy.dn[:3]) == ("cn=us", "cn=")
    assert decoy.auth not in ("", "words")


async def test_the_connection_of_a_person_is_no_longer_ours():
    connection = StubConnection(groups=("Crew",))
    await directory(connection).log_in("ann", "words")
    binds = [each.dn for each in connection.asked if isinstance(each, pureldap.LDAPBindRequest)]
    assert binds == ["cn=us", DN, "cn=us"], "groups are read with our rights"
    await directory(connection).log_in("ann", "guess")
    assert not connection.is_ours
