"""
Passwords that directories check, beside those of this server.

==========================================  ======================================================================
the account of the name that was typed      who is asked for the password
==========================================  ======================================================================
none, or one without a password             the directories, in the order of the settings
one with a password                         this server; if that is wrong, the directories that it is linked to, and
                                            those that link accounts by e-mail address (link_by_email)
one that is not active, or of a service     this server alone, which refuses it
==========================================  ======================================================================

The first directory that takes the password decides. If none does and one of them could not be asked, nobody knows
whether the password is right: the login fails with L{DirectoryUnavailable}, and not as a wrong password.

Logins wait in one fair queue, and each counts as a failure only if somebody has said that it is wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from twisted.internet.interfaces import IReactorTime
from zope.interface import Attribute, Interface

from pkgrepo.auth.login.passwords import Attempt
from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.fair_semaphore import Path as QueuePath
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import DirectoryUnavailable, TooManyAttempts
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import User, UserKind
from pkgrepo.storage.catalog.people.linked_identities import Person, ensure_linked, find_settled

MOST_WAITING: Final = 256  # logins
RETRY_S: Final = 5  # seconds, for Retry-After
SETTLED_S: Final = 3600  # seconds for which a login that changes nothing is not recorded
OUTCOMES = RIGHT, WRONG, UNAVAILABLE = ("right", "wrong", "unavailable")
CHECKABLE: Final = "directory"  # in place of a refresh token: what the daily check needs is in the link itself


class IDirectory(Interface):
    """A directory that checks passwords."""

    name = Attribute("its name in the settings, a str")
    trouble = Attribute("why it could not be asked last, a clause about it; empty otherwise")
    issuer = Attribute("what its links are stored under, a str")
    auto_create = Attribute("whether the first login of a person makes an account")
    link_by_email = Attribute("whether the first login of a person is linked to the one account with the address")

    def log_in(username: str, password: str) -> Awaitable[Person | None]:  # noqa: N805 - an interface
        """
        The person with this name and password, neither of them empty; None: one of them is wrong.

        :raises DirectoryUnavailable: nobody knows
        """


class Directories:
    """
    Asks the ``directories``, for ``parallel`` logins at a time. ``now_ms`` returns milliseconds since the epoch.

    ``outcomes`` counts logins that were asked for.
    """

    def __init__(
        self,
        directories: Sequence[Any],
        catalog: ICatalog,
        *,
        parallel: int,
        reactor: IReactorTime,
        now_ms: Callable[[], int],
    ) -> None:
        self._directories = directories
        self._catalog = catalog
        self._now_ms = now_ms
        self._permits = FairSemaphore(parallel, reactor, most_waiting=MOST_WAITING)
        self.outcomes = dict.fromkeys(OUTCOMES, 0)

    def asked_for(self, username: str, user: User | None, issuers: Sequence[str], *, has_password: bool) -> list[Any]:
        """
        Those that are asked for a name; ``issuers`` are those of the links of its account ``user``.

        None for names that a directory might take for others: it ignores case, accents and blanks at the ends, and so
        guesses would be counted for each spelling.
        """
        if not username.isascii() or not username.isprintable() or username != " ".join(username.split()):
            return []
        if user is not None and (not user.active or user.kind is not UserKind.PERSON):
            return []
        if not has_password:
            return list(self._directories)
        return [each for each in self._directories if each.issuer in issuers or each.link_by_email]

    async def log_in(
        self,
        asked: Sequence[Any],
        username: str,
        password: str,
        *,
        path: QueuePath,
        begin: Callable[[], Attempt],
        failed: bool,
    ) -> User | None:
        """
        The user of the person with this name and password; None: they are wrong.

        ``begin`` is called when the login has waited in the queue; its attempt is ended, as a failure if one of the
        directories says so and none the contrary, or if it has ``failed`` before.

        :raises DirectoryUnavailable: nobody knows; :raises TooManyAttempts: the queue is full
        :raises Forbidden: they are right, and there is no account for the person, nor may one be made
        """
        try:
            await self._permits.acquire(path)
        except QueueFull:
            raise TooManyAttempts(RETRY_S) from None

        async def ask() -> tuple[Any, Person] | None:
            try:
                return await self._ask(asked, username, password, begin(), failed=failed)
            finally:
                self._permits.release()

        found = await shield(ask())  # the attempt counts, also of a client that does not wait for its end
        return None if found is None else await self._enter(*found)

    async def _ask(
        self, asked: Sequence[Any], username: str, password: str, attempt: Attempt, *, failed: bool
    ) -> tuple[Any, Person] | None:
        away: DirectoryUnavailable | None = None
        right = False
        outcome = UNAVAILABLE
        try:
            for directory in asked:
                try:
                    person: Person | None = await directory.log_in(username, password)
                except DirectoryUnavailable as error:
                    away = away or error
                    continue
                if person is not None:
                    right, outcome = True, RIGHT
                    return directory, person
                failed = True
            if away is not None:
                raise away
            outcome = WRONG
        finally:
            self.outcomes[outcome] += 1
            attempt.end(failed=failed and not right)
        return None

    async def _enter(self, directory: Any, person: Person) -> User:
        now_ms = self._now_ms()
        settled: User | None = await self._catalog.look(find_settled, person, now_ms - SETTLED_S * 1000)
        if settled is not None:
            return settled
        user: User
        user, _ = await self._catalog.write(
            ensure_linked,
            person,
            auto_create=directory.auto_create,
            link_by_email=directory.link_by_email,
            refresh=CHECKABLE,
            now_ms=now_ms,
        )
        return user
