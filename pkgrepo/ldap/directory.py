"""
One directory: finds a person by the name that was typed, binds as the entry to check the password, and reads groups.

=================================  ===============================================================================
what the directory says            result
=================================  ===============================================================================
no entry has the name              wrong, after a bind as an entry that nobody has, so that it takes as long
the bind is refused                wrong: RFC 4511 appendix A, codes of ``REFUSED``
the bind succeeds                  the person, with the groups of now
two entries have the name          unavailable: nobody knows which of them is meant
anything else, or nothing          unavailable: nobody knows whether the password is right
=================================  ===============================================================================

An empty password is never sent: such a bind succeeds as anonymous (RFC 4513 section 5.1.2). Referrals to other servers
are not followed, as the password would go there. A person is recognised by an id that the directory gives to no other
entry, whatever the name or the place of the entry is later.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, field, frozen
from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo.auth.external_accounts import DIRECTORY, MOST_GROUPS, IProvider, Known, make_person, printable_text
from pkgrepo.auth.login.directories import CHECKABLE, IDirectory
from pkgrepo.errors import DirectoryUnavailable, IdentityRefused
from pkgrepo.storage.catalog.people.linked_identities import LinkedIdentity, Person

from .filters import Filter, either, equal, every
from .messages import SIZE_LIMIT, SUCCESS, Entry, Unusable, bind, search
from .servers import Connection, Servers

log = Logger()

INVALID_CREDENTIALS: Final = 49
# Of a bind with a name and a password: the attribute or the constraints of the entry (account locked), no such entry,
# no password in it, wrong, no rights, and an account that is switched off at servers of the 389 family.
REFUSED: Final = frozenset({19, 32, 48, 49, 50, 53})
REASONS: Final = {
    1: "it needs a login for searches (bind_dn), or refuses them",
    3: "it takes too long for this search",
    8: "it wants TLS (ldaps or start_tls)",
    10: "it refers to another server, which is not asked: name that in url",
    11: "it limits what this search may cost",
    13: "it wants TLS (ldaps or start_tls)",
    32: "the base of the search is not there, or bind_dn may not see it (base_dn, user_base, group_base)",
    34: "the base of the search is no distinguished name (base_dn, user_base, group_base)",
    49: "it refuses this server's own login (bind_dn, bind_password_file)",
    50: "bind_dn may not search there",
    51: "it is busy",
    52: "it says that it is unavailable",
    53: "it is not willing to do this",
}
# Of Active Directory, in the text beside code 49.
_WHY: Final = {
    "525": "no such user",
    "52e": "wrong password",
    "530": "not at this time",
    "531": "not from here",
    "532": "the password has expired",
    "533": "the account is disabled",
    "701": "the account has expired",
    "773": "the password must be changed first",
    "775": "the account is locked",
}
_DATA: Final = re.compile(r"\bdata ([0-9a-f]{3})\b")

# What entries are recognised by, in this order: RFC 4530; Active Directory; 389 and its kin; FreeIPA; eDirectory.
IDS: Final = ("entryUUID", "objectGUID", "nsUniqueId", "ipaUniqueID", "GUID")
DEEPEST: Final = 10  # groups in groups
MOST_IN_FILTER: Final = 50  # groups whose own groups are searched at once
MOST_ID: Final = 200  # bytes
_NOTHING: Final = b"\0"  # a value that no attribute has
_DISABLED: Final = 0x2  # ADS_UF_ACCOUNTDISABLE in userAccountControl of Active Directory
# Of Active Directory: accountExpires counts 100 ns from 1601; these values mean never.
_NEVER: Final = frozenset({0, 2**63 - 1})
_BEFORE_EPOCH_S: Final = 11_644_473_600  # seconds from 1601 to 1970
_LOCKED_FOR_GOOD: Final = "000001010000Z"  # pwdAccountLockedTime of OpenLDAP: until an admin unlocks the account
_STATES: Final = ("userAccountControl", "accountExpires", "nsAccountLock", "pwdAccountLockedTime", "pwdReset")


@frozen(kw_only=True)
class Layout:
    """
    Where a directory has what; the names of attributes, and the filters of people and groups.

    Without ``tells_email`` its addresses are not those of accounts.
    """

    user_base: str
    group_base: str
    user_filter: Filter
    group_filter: Filter | None
    nested_groups: bool
    username_attribute: str
    name_attribute: str
    email_attribute: str
    id_attribute: str
    group_attribute: str
    admin_groups: frozenset[str]
    group_names: Mapping[str, str] = Factory(dict)
    tells_email: bool = True


@frozen(kw_only=True)
class OwnLogin:
    """How this server itself logs in; both are empty if it searches without a login."""

    dn: str = ""
    password: str = field(default="", repr=False)


@implementer(IDirectory, IProvider)
class Directory:
    """The directory ``name`` of the settings. ``now_s`` returns seconds since the epoch."""

    def __init__(
        self,
        name: str,
        servers: Servers,
        layout: Layout,
        own: OwnLogin,
        *,
        auto_create: bool,
        link_by_email: bool,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.issuer = f"{DIRECTORY}{name}"
        self.auto_create = auto_create
        self.link_by_email = link_by_email
        self._servers = servers
        self._layout = layout
        self._own = own
        self._now_s = now_s

    async def log_in(self, username: str, password: str) -> Person | None:
        """The person of this name and password, None if the directory has nobody of that name."""
        if not username or not password:  # a bind without a password always succeeds
            return None

        async def ask(connection: Connection) -> Person | None:
            entry = await self._find(connection, self._layout.user_filter.fill(username=username.encode()))
            if entry is None:
                await self._bind_as_nobody(connection)
                return None
            if not await self._bind_as(connection, entry, password):
                return None
            if _is_disabled(entry, self._now_s()):
                self._log_refusal(entry, "the account is disabled, or has expired")
                return None
            if entry.text("pwdReset") == "TRUE":  # OpenLDAP takes the bind, and then only a new password
                self._log_refusal(entry, _WHY["773"])
                return None
            return await self._person(connection, entry)

        return await self._servers.use(ask)

    async def ask(self, linked: LinkedIdentity) -> Known | None:
        """What the directory says of a person now, None if it cannot say."""
        attribute, is_text, value = re.split("([:=])", linked.subject, maxsplit=1)
        raw = value.encode() if is_text == "=" else bytes.fromhex(value)
        people = self._layout.user_filter.anybody()

        async def ask(connection: Connection) -> Known | None:
            entry = await self._find(connection, every(equal(attribute, raw), people))
            if entry is None:
                if not await self._search(connection, self._layout.user_base, people, 1, may_be_more=True):
                    # bind_dn has lost its rights, or the filter is wrong: then everybody would be gone
                    raise DirectoryUnavailable(self.name, "it shows nobody at all (user_base, user_filter, bind_dn)")
                return None
            if _is_disabled(entry, self._now_s()):
                return None
            found = self._subject(entry)
            if found != linked.subject:
                raise IdentityRefused(
                    f"the directory {self.name!r} shows another entry than the one that was asked for"
                )
            return Known(CHECKABLE, await self._person(connection, entry))

        return await self._servers.use(ask)

    @property
    def trouble(self) -> str:
        """Why the directory cannot be asked now; empty if it can."""
        return self._servers.trouble

    async def check(self) -> str:
        """
        What it says of itself, as a sentence: whether this server can log in and find people and groups.

        :raises DirectoryUnavailable: with what fails
        """
        layout = self._layout

        async def ask(connection: Connection) -> Entry:
            people = await self._search(connection, layout.user_base, layout.user_filter.anybody(), 1, may_be_more=True)
            if not people:
                raise DirectoryUnavailable(self.name, "it shows nobody (user_base, user_filter, rights of bind_dn)")
            self._subject(people[0])
            if not people[0].text(layout.username_attribute):
                reason = f"entries of people have no {layout.username_attribute} (username_attribute)"
                raise DirectoryUnavailable(self.name, reason)
            return people[0]

        entry = await self._servers.use(ask)  # which may end the connection, see L{Connection.ask}
        groups = await self._servers.use(lambda connection: self._groups(connection, entry))
        return f"it answers, and shows people; the first one found is in {len(groups)} groups"

    def close(self) -> None:
        """Abort all connections."""
        self._servers.close()

    async def _person(self, connection: Connection, entry: Entry) -> Person:
        layout = self._layout
        return make_person(
            self.issuer,
            self._subject(entry),
            username=entry.text(layout.username_attribute),
            name=entry.text(layout.name_attribute),
            email=entry.text(layout.email_attribute) if layout.tells_email else "",
            groups=await self._groups(connection, entry),
            group_names=layout.group_names,
            admin_groups=layout.admin_groups,
        )

    def _subject(self, entry: Entry) -> str:
        """The id of an entry with the name of its attribute. :raises DirectoryUnavailable: it has none"""
        for attribute in [self._layout.id_attribute] if self._layout.id_attribute else IDS:
            values = entry.values(attribute)
            if len(values) == 1 and 0 < len(values[0]) <= MOST_ID:
                value = values[0]
                is_text = value.isascii() and value.decode("ascii").isprintable()
                return f"{attribute}={value.decode('ascii')}" if is_text else f"{attribute}:{value.hex()}"
        wanted = self._layout.id_attribute or ", ".join(IDS)
        raise DirectoryUnavailable(self.name, f"its entry of this person has no id ({wanted}; id_attribute)")

    async def _groups(self, connection: Connection, entry: Entry) -> list[str]:
        """The names of the groups of a person, with those that these groups are in if they are asked for."""
        layout = self._layout
        if layout.group_filter is None:
            return []
        username = entry.values(layout.username_attribute)
        wanted = [layout.group_filter.fill(dn=entry.dn, username=username[0] if username else _NOTHING)]
        seen: set[bytes] = set()
        names: list[str] = []
        for _ in range(DEEPEST):
            new = []
            for start in range(0, len(wanted), MOST_IN_FILTER):
                if len(seen) >= MOST_GROUPS:
                    break
                asked = either(*wanted[start : start + MOST_IN_FILTER])
                for each in await self._search(connection, layout.group_base, asked, MOST_GROUPS):
                    if each.dn.lower() not in seen:
                        seen.add(each.dn.lower())
                        new.append(each)
            names += [name for each in new if (name := printable_text(each.text(layout.group_attribute)))]
            if not layout.nested_groups or not new or len(seen) >= MOST_GROUPS:
                break
            wanted = [layout.group_filter.fill(dn=each.dn, username=_NOTHING) for each in new]
        return names

    async def _find(self, connection: Connection, asked: Any) -> Entry | None:
        """The only entry of a person. :raises DirectoryUnavailable: there are several"""
        found = await self._search(connection, self._layout.user_base, asked, 1, may_be_more=True)
        if len(found) > 1:
            raise DirectoryUnavailable(self.name, "several entries have this name (user_filter)")
        return found[0] if found else None

    async def _search(
        self, connection: Connection, base: str, asked: Any, most: int, *, may_be_more: bool = False
    ) -> Sequence[Entry]:
        """
        The first ``most`` entries below ``base``; with ``may_be_more`` one more if there are more.

        :raises DirectoryUnavailable: it does not search
        """
        layout = self._layout
        await self._bind_own(connection)
        attributes = [
            layout.username_attribute,
            layout.name_attribute,
            layout.email_attribute,
            layout.group_attribute,
            *([layout.id_attribute] if layout.id_attribute else IDS),
            *_STATES,
        ]
        limit = most + 1 if may_be_more else most
        operation = search(base, asked, list(dict.fromkeys(attributes)), limit)
        result = await connection.ask(operation, limit)
        found = connection.take_entries()
        if result.code == SIZE_LIMIT and not may_be_more:
            log.warn("the directory {name} shows {count} groups, and has more", name=self.name, count=len(found))
        if result.code == SUCCESS or (result.code == SIZE_LIMIT and found):
            return found
        raise DirectoryUnavailable(self.name, _reason(result.code))

    async def _bind_own(self, connection: Connection) -> None:
        """Log in as this server, unless the connection is: after a bind as a person it is theirs, or nobody's."""
        if connection.is_ours:
            return
        # With an empty name and no password it is anonymous (RFC 4513 section 5.1.1).
        result = await connection.ask(bind(self._own.dn, self._own.password))
        if result.code != SUCCESS:
            raise Unusable(_reason(result.code))  # and rest: repeated failures lock accounts at some servers
        connection.is_ours = True

    async def _bind_as(self, connection: Connection, entry: Entry, password: str) -> bool:
        """Whether a password is that of an entry."""
        if not entry.dn:  # some servers take such a bind for an anonymous one, whatever the password is
            raise Unusable("it shows an entry without a name")
        connection.is_ours = False
        result = await connection.ask(bind(entry.dn, password))
        if result.code == SUCCESS:
            return True
        if result.code not in REFUSED:
            raise DirectoryUnavailable(self.name, _reason(result.code))
        why, text = _DATA.search(result.text), printable_text(result.text)
        if why is not None and why[1] in _WHY:
            self._log_refusal(entry, _WHY[why[1]])
        elif text or result.code != INVALID_CREDENTIALS:
            self._log_refusal(entry, f"{text or 'no reason is given'} (LDAP result {result.code})")
        return False

    def _log_refusal(self, entry: Entry, why: str) -> None:
        user = printable_text(entry.text(self._layout.username_attribute))
        log.info("the directory {name} refuses the login of {user}: {why}", name=self.name, user=user, why=why)

    async def _bind_as_nobody(self, connection: Connection) -> None:
        """A bind that fails, so that a name that is not there takes as long as a wrong password."""
        connection.is_ours = False
        dn = f"cn={secrets.token_hex(8)},{self._layout.user_base}"
        await connection.ask(bind(dn, secrets.token_hex(8)))


def _reason(code: int) -> str:
    return f"{REASONS.get(code, 'it answers with an error')} (LDAP result {code})"


def _is_disabled(entry: Entry, now_s: float) -> bool:
    """Whether the account is switched off or has expired: Active Directory, the 389 family, OpenLDAP."""
    control, expires = _number(entry, "userAccountControl"), _number(entry, "accountExpires")
    if control & _DISABLED or (expires not in _NEVER and expires / 1e7 - _BEFORE_EPOCH_S <= now_s):
        return True
    return entry.text("nsAccountLock").lower() == "true" or entry.text("pwdAccountLockedTime") == _LOCKED_FOR_GOOD


def _number(entry: Entry, attribute: str) -> int:
    """The number in an attribute; 0 if there is none."""
    text = entry.text(attribute)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
