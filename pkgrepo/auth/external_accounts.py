"""
People whose accounts are at a provider elsewhere: what it says of them, and the daily check whether they are there.

A provider is an identity provider (OpenID Connect) or a directory (LDAP). Logins there link its account to a user of
this server (L{pkgrepo.storage.catalog.people.linked_identities}); when the provider says that a person is gone, the
sessions, the tokens and what the provider gave end.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen
from twisted.logger import Logger
from zope.interface import Attribute, Interface

from pkgrepo.auth.login.identities import check_username
from pkgrepo.errors import IdentityRefused, Invalid, IssuerUnavailable, PkgrepoError
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.people.linked_identities import (
    LinkedIdentity,
    Person,
    apply_claims,
    end_linked,
    linked_to_check,
    note_checked,
)
from pkgrepo.storage.catalog.people.users import find_user
from pkgrepo.storage.catalog.server.audit import Entry, append_entry

log = Logger()

CHECKED_S: Final = 86_400  # seconds between two checks of a person
CHECKED_AT_A_TIME: Final = 250  # people of one provider in one run; there is one each hour
MOST_FAILURES: Final = 10  # of a provider in succession, after which it is asked again at the next run
MOST_GROUPS: Final = 500  # of a person that are looked at
MOST_TEXT: Final = 200  # characters of a name
DIRECTORY: Final = "ldap:"  # begins the issuer of what comes from a directory, before its name


@frozen
class Known:
    """
    A person whom the provider still knows.

    ``refresh`` is what the next check needs (see L{LinkedIdentity}); it is empty if there can be none. ``person`` is
    None if the provider did not tell of groups: those of the last login stay.
    """

    refresh: str
    person: Person | None


class IProvider(Interface):
    """Somewhere else where people have accounts."""

    name = Attribute("its name in the settings, a str")
    issuer = Attribute("what its links are stored under, a str that no other provider has")

    def ask(linked: LinkedIdentity) -> Awaitable[Known | None]:  # noqa: N805 - an interface
        """
        What it says now of a person who has logged in there; None: it says that the person is gone, or disabled.

        :raises IssuerUnavailable: it says nothing; :raises IdentityRefused: what it says is about somebody else
        """


class DailyCheck:
    """Asks the ``providers`` for people who were not checked for a day, and ends what those have who are gone."""

    def __init__(
        self,
        providers: Iterable[Any],
        catalog: ICatalog,
        *,
        now_ms: Callable[[], int],
        copy_entry: Callable[[Entry], None],
    ) -> None:
        self._providers = list(providers)
        self._catalog = catalog
        self._now_ms = now_ms
        self._copy_entry = copy_entry

    async def run(self) -> None:
        """
        Check those whose turn it is, of each provider until it has failed ``MOST_FAILURES`` times in succession.

        The order is random: a person about whom a provider gives an error each time keeps no others from being checked.
        """
        before_ms = self._now_ms() - CHECKED_S * 1000
        for provider in self._providers:
            turn = await self._catalog.look(linked_to_check, provider.issuer, before_ms, CHECKED_AT_A_TIME)
            random.shuffle(turn)
            failures = 0
            for linked in turn:
                try:
                    await self._check(provider, linked)
                    failures = 0
                except IssuerUnavailable as error:
                    await self._log_failure(linked, error)
                    failures += 1
                if failures == MOST_FAILURES:
                    break

    async def _check(self, provider: Any, linked: LinkedIdentity) -> None:
        try:
            known: Known | None = await provider.ask(linked)
        except IdentityRefused as error:
            await self._log_failure(linked, error)
            return
        if known is None:
            self._copy_entry(await self._catalog.write(_end_linked, linked, provider.name, self._now_ms()))
        else:
            await self._catalog.write(_note_known, linked, known, self._now_ms())

    async def _log_failure(self, linked: LinkedIdentity, error: PkgrepoError) -> None:
        user = await self._catalog.look(find_user, linked.user_id)
        log.warn("{user} could not be checked: {error}", user="?" if user is None else user.username, error=str(error))


def make_person(
    issuer: str,
    subject: str,
    *,
    username: object,
    name: object,
    email: object,
    groups: Sequence[object],
    group_names: Mapping[str, str],
    admin_groups: Collection[str],
) -> Person:
    """
    What a provider says of a person, bounded; values that are no texts are left out.

    ``username`` may be an e-mail address, whose domain is left out. ``email`` is verified; one with characters that
    nobody sees is left out, as it may look like another. ``group_names`` are names of groups here by those there; other
    groups have the same name here. ``admin_groups`` are names there.
    """
    names = [each for each in groups if isinstance(each, str)][:MOST_GROUPS]
    return Person(
        issuer=issuer,
        subject=subject,
        username=_username(username),
        name=printable_text(name),
        email=email if isinstance(email, str) and email == printable_text(email) else "",
        groups=[group_names.get(each, each) for each in names],
        admin=not set(admin_groups).isdisjoint(names) if admin_groups else None,
        called=printable_text(username),
    )


def printable_text(value: object) -> str:
    """The printable characters of a text, the first ``MOST_TEXT``; nothing of another value."""
    return "".join(each for each in value if each.isprintable())[:MOST_TEXT] if isinstance(value, str) else ""


def _username(value: object) -> str:
    """The name of a new account; empty if it is no user name."""
    with suppress(Invalid):
        return check_username(value.partition("@")[0] if isinstance(value, str) else "")
    return ""


def _note_known(tx: Transaction, linked: LinkedIdentity, known: Known, now_ms: int) -> None:
    note_checked(tx, linked, refresh=known.refresh, now_ms=now_ms)
    if known.person is not None:
        apply_claims(tx, linked, known.person, now_ms=now_ms)


def _end_linked(tx: Transaction, linked: LinkedIdentity, provider: str, now_ms: int) -> Entry:
    user = end_linked(tx, linked, now_ms=now_ms)
    entry = Entry(SYSTEM, "session.end", user.username, detail={"provider": provider, "by": "daily check"})
    append_entry(tx, entry, now_ms)
    return entry
