"""
Decisions of the one permission check: the rules applied to the catalog's data, and cached.

===============  ====================================================================================================
method           result
===============  ====================================================================================================
``..._now``      from the cache of the current identity serial, or from a catalog that answers at once; None if
                 neither has it
same name        always a result: it awaits the catalog if the cache does not have it
without it
``may_each``     many questions about one identity, with one query for all that are not cached
===============  ====================================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from attrs import frozen

from pkgrepo.auth.permissions.decisions import (
    NO_USER,
    Question,
    decide_unread,
    read_decisions,
    read_known,
)
from pkgrepo.auth.permissions.rules import NO_REPOSITORY, Decision, Standing, read_standing
from pkgrepo.auth.tokens.limits import in_force
from pkgrepo.interfaces import NOT_NOW, ICatalog
from pkgrepo.model import (
    ANONYMOUS,
    Action,
    Extent,
    Identity,
    Repository,
)
from pkgrepo.storage.catalog.people.users import identity_snapshot
from pkgrepo.storage.catalog.snapshot import Snapshot

MOST_CACHED = 50_000  # decisions; about 15 MB
LONGEST_CACHED = 512  # characters of a package name; no format allows longer ones, but any client can request them

_EXPIRED = Decision(allowed=False, reason="the token has expired")

_Key = tuple[
    int, int, Action | None, str | Extent | None
]  # without action: whether the identity may know of the repository


@frozen
class _CacheEntry:
    """A decision with the objects whose ``id`` is its key; holding them ensures that the ids are not reused."""

    identity: Identity
    repository: Repository
    decision: Decision


class DecisionCache:
    """
    Decides what an identity may do in repositories.

    ``anonymous`` is the server's setting for reading without credentials. A changed repository is a new object, so the
    cache is cleared when the identity ``serial`` moves. ``clock`` returns seconds since the epoch. What is
    asked about a companion repository is decided for the repository that it belongs to.
    """

    def __init__(
        self,
        catalog: ICatalog,
        *,
        anonymous: bool = True,
        clock: Callable[[], float] = time.time,
        most_cached: int = MOST_CACHED,
        serial: Snapshot[int] | None = None,
    ) -> None:
        self._most_cached = most_cached
        self._catalog = catalog
        self._anonymous = anonymous
        self._clock = clock
        self._identity_serial = serial or identity_snapshot(catalog)
        self._serial: int | None = None  # of the cache
        self._standings: dict[int, Standing] = {}
        self._decisions: dict[_Key, _CacheEntry] = {}

    @property
    def anonymous(self) -> bool:
        """Whether reading without credentials is possible at all."""
        return self._anonymous

    @anonymous.setter
    def anonymous(self, value: bool) -> None:
        self._anonymous = value
        self._decisions.clear()

    def may_now(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> bool | None:
        """The result of ``may`` if it is known without waiting, else None."""
        decision = self._decide_now(identity, action, repository, package)
        return None if decision is None else decision.allowed

    async def may(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> bool:
        """
        Whether the identity may do this now; ``package`` (a key) restricts the question to one package.

        For ``Extent.SOME`` it is whether there may be a package with which it may, which need not exist: by what it may
        in the whole repository, by a role in a project that owns names there, or with a token for some packages. That
        is also asked about writing and deleting without a package; all other actions then concern the repository as a
        whole. Ask again when the name is known. It does not check whether the repository is active.
        """
        decision = self._decide_now(identity, action, repository, package)
        if decision is None:
            [decision] = await self.decide_each(identity, [(action, repository, package)])
        return decision.allowed

    async def may_each(self, identity: Identity, questions: Sequence[Question]) -> list[bool]:
        """The results of ``may`` for many questions, in order, with at most one query."""
        return [each.allowed for each in await self.decide_each(identity, questions)]

    def knows_now(self, identity: Identity, repository: Repository) -> bool | None:
        """The result of ``knows`` if it is known without waiting, else None."""
        repository = repository.authority
        readable = self.may_now(ANONYMOUS, Action.READ, repository)
        if readable is not False:
            return readable
        if self._knows_nothing(identity, repository):
            return False
        found = self._decisions.get((id(identity), id(repository), None, None))
        if found is not None:
            return found.decision.allowed
        known = self._catalog.peek(read_known, identity, repository, self._anonymous)
        return None if known is NOT_NOW else self._cache_known(identity, repository, known)

    async def knows(self, identity: Identity, repository: Repository) -> bool:
        """
        Whether the identity may know that the repository exists.

        True if it may do anything there, if only with one package, or if anonymous access may read it. For a bearer
        token the rights of its owner count, who could request another token.
        """
        repository = repository.authority
        known = self.knows_now(identity, repository)
        if known is not None:
            return known
        if await self.may(ANONYMOUS, Action.READ, repository):
            return True
        if self._knows_nothing(identity, repository):
            return False
        found = self._decisions.get((id(identity), id(repository), None, None))
        if found is not None:
            return found.decision.allowed
        serial = self._serial
        known = await self._catalog.look(read_known, identity, repository, self._anonymous)
        return self._cache_known(identity, repository, known) if serial == self._serial else known

    async def decide_each(self, identity: Identity, questions: Sequence[Question]) -> list[Decision]:
        """The decisions of many questions with their reasons, in order, with at most one query."""
        if not self._in_force(identity):
            return [_EXPIRED] * len(questions)
        await self._identity_serial.refresh()
        questions = [(action, repository.authority, package) for action, repository, package in questions]
        self._use_serial()
        recalled = [self._recall(identity, *each) for each in questions]
        missing = [each for each, found in zip(questions, recalled, strict=True) if found is None]
        if not missing:
            return [each for each in recalled if each is not None]
        serial = self._serial
        standing, decisions = await self._catalog.look(
            read_decisions, identity, missing, self._cached_standing(identity), self._anonymous
        )
        if serial == self._serial:
            self._cache_decisions(identity, missing, standing, decisions)
        asked = iter(decisions)
        return [each or next(asked) for each in recalled]

    def _in_force(self, identity: Identity) -> bool:
        limits = identity.limits
        if limits is None or limits.expires_at is None:
            return True
        return in_force(limits, datetime.fromtimestamp(self._clock(), UTC))

    def _knows_nothing(self, identity: Identity, repository: Repository) -> bool:
        return identity.anonymous or repository.id == NO_REPOSITORY or not self._in_force(identity)

    # A reply of the catalog is cached only if the cache still has the serial from before the query: otherwise it may
    # be older than the change that moved the serial.

    def _decide_now(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None
    ) -> Decision | None:
        if identity.limits is not None and not self._in_force(identity):
            return _EXPIRED
        if not self._identity_serial.refresh_now():
            return None
        repository = repository.authority
        self._use_serial()
        decision = self._recall(identity, action, repository, package)
        if decision is None:
            questions: list[Question] = [(action, repository, package)]
            standing = self._cached_standing(identity)
            found = self._catalog.peek(read_decisions, identity, questions, standing, self._anonymous)
            if found is NOT_NOW:
                return None
            self._cache_decisions(identity, questions, *found)
            [decision] = found[1]
        return decision

    def _recall(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None
    ) -> Decision | None:
        """The decision, if the cache has it or has what the rules need; else None."""
        found = self._decisions.get((id(identity), id(repository), action, package))
        if found is not None:
            return found.decision
        standing = self._cached_standing(identity)
        if standing is None:
            return None
        question = (action, repository, package)
        decision = decide_unread(standing, identity, question, anonymous=self._anonymous)
        if decision is not None:
            self._cache_decision(identity, question, decision)
        return decision

    def _cache_decisions(
        self, identity: Identity, questions: Sequence[Question], standing: Standing, decisions: Sequence[Decision]
    ) -> None:
        if identity.user_id is not None:
            self._standings[identity.user_id] = standing
        for question, decision in zip(questions, decisions, strict=True):
            self._cache_decision(identity, question, decision)

    def _cache_decision(self, identity: Identity, question: Question, decision: Decision) -> None:
        action, repository, package = question
        longest = isinstance(package, str) and len(package) > LONGEST_CACHED
        if repository.id != NO_REPOSITORY and not longest:  # else it cannot exist
            self._put((id(identity), id(repository), action, package), identity, repository, decision)

    def _cache_known(self, identity: Identity, repository: Repository, known: bool) -> bool:
        self._put((id(identity), id(repository), None, None), identity, repository, Decision(allowed=known, reason=""))
        return known

    def _put(self, key: _Key, identity: Identity, repository: Repository, decision: Decision) -> None:
        if len(self._decisions) >= self._most_cached:
            self._decisions.clear()
        self._decisions[key] = _CacheEntry(identity, repository, decision)

    def _cached_standing(self, identity: Identity) -> Standing | None:
        return NO_USER if identity.user_id is None else self._standings.get(identity.user_id)

    async def standing(self, identity: Identity) -> Standing:
        """What the catalog says of the user behind an identity, from the cache of the current serial or read anew."""
        if identity.user_id is None:
            return NO_USER
        await self._identity_serial.refresh()
        self._use_serial()
        standing = self._standings.get(identity.user_id)
        if standing is None:
            serial = self._serial
            standing = await self._catalog.look(read_standing, identity.user_id)
            if serial == self._serial:
                self._standings[identity.user_id] = standing
        return standing

    def _use_serial(self) -> None:
        """Clear the cache if it is of another serial."""
        serial = self._identity_serial.value
        if serial != self._serial:
            self._standings.clear()
            self._decisions.clear()
            self._serial = serial
