"""
The one permission check: applies the rules to the catalog's data and caches the decisions.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from attrs import evolve, frozen
from zope.interface import implementer

from pkgrepo.auth.identity_serial import IdentitySerial
from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.auth.tokens.limits import in_force
from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import NOT_NOW, IAuthorizer, ICatalog, Reader, Transaction
from pkgrepo.model import ANONYMOUS, Action, Identity, Project, ProjectRole, Repository, User, Visibility
from pkgrepo.storage.catalog.people.projects import claim_names, list_bindings, owning_project

from .delegation import NEWCOMER, check_delegation
from .ownership import ownership
from .rules import NO_REPOSITORY, Decision, Standing, decide, has_any_right, read_standing

MOST_CACHED = 50_000  # decisions; about 15 MB
LONGEST_CACHED = 512  # characters of a package name; no format allows longer ones, but anybody can request them

_NOBODY = Standing(user=None)
_VERBS = {
    Action.READ: "read",
    Action.WRITE: "publish",
    Action.OVERWRITE: "replace",
    Action.DELETE: "delete",
    Action.EDIT: "change the settings of",
    Action.ADMIN: "administer",
}

_EXPIRED = Decision(allowed=False, reason="the token has expired")

Question = tuple[Action, Repository, str | None]  # action, repository, and package if any

_Key = tuple[int, int, Action | None, str | None]  # without action: whether the identity may know of the repository


class _OwnerUnread(Exception):  # noqa: N818 - says what happened
    """The rules need the project that owns the package, which must be read from the catalog."""


@frozen
class _CacheEntry:
    """A decision with the objects whose ``id`` is its key; holding them ensures that the ids are not reused."""

    identity: Identity
    repository: Repository
    decision: Decision


@implementer(IAuthorizer)
class Authorizer:
    """
    Decides what an identity may do.

    ``anonymous`` is the server's setting for reading without credentials. A changed repository is a new object, so the
    cache only needs to be cleared when the identity serial moves. ``clock`` returns seconds since the epoch.
    """

    def __init__(self, catalog: ICatalog, *, anonymous: bool = True, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._anonymous = anonymous
        self._clock = clock
        self._identity_serial = IdentitySerial(catalog)
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
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> bool | None:
        """The result of ``may`` if it is known without waiting, else None."""
        decision = self._decide_now(identity, (action, repository, package))
        return None if decision is None else decision.allowed

    async def may(self, identity: Identity, action: Action, repository: Repository, package: str | None = None) -> bool:
        """
        Whether the identity may do this now; ``package`` (a key) restricts the question to one package.

        Without a package, writing and deleting are allowed if they are for any package: ask again when the name is
        known. All other actions then concern the repository as a whole. It does not check whether the repository is
        active.
        """
        return (await self._decide_one(identity, (action, repository, package))).allowed

    async def may_each(self, identity: Identity, questions: Sequence[Question]) -> list[bool]:
        """The results of ``may`` for many questions, in order, with at most one query."""
        return [each.allowed for each in await self._decide(identity, questions)]

    def knows_now(self, identity: Identity, repository: Repository) -> bool | None:
        """The result of ``knows`` if it is known without waiting, else None."""
        readable = self.may_now(ANONYMOUS, Action.READ, repository)
        if readable is not False:
            return readable
        if self._knows_nothing(identity, repository):
            return False
        found = self._decisions.get((id(identity), id(repository), None, None))
        if found is not None:
            return found.decision.allowed
        known = self._catalog.peek(_read_known, identity, repository)
        return None if known is NOT_NOW else self._cache_known(identity, repository, known)

    async def knows(self, identity: Identity, repository: Repository) -> bool:
        """
        Whether the identity may know that the repository exists.

        True if it may do anything there, if only with one package, or if everybody may read it. For a bearer token the
        rights of its owner count, who could request another token.
        """
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
        known = await self._catalog.look(_read_known, identity, repository)
        return self._cache_known(identity, repository, known) if serial == self._serial else known

    async def may_see(self, identity: Identity, repository: Repository) -> bool:
        """Whether the repository appears in lists; a hidden one only if the identity may change its settings."""
        return await self.may(identity, *_visibility_check(repository))

    async def visible(self, identity: Identity, repositories: Sequence[Repository]) -> list[Repository]:
        """Those of the repositories for which ``may_see`` holds."""
        seen = await self.may_each(identity, [(*_visibility_check(each), None) for each in repositories])
        return [each for each, sees in zip(repositories, seen, strict=True) if sees]

    async def may_use(self, identity: Identity, scope: str) -> bool:
        """
        Whether the identity may use a part of the server outside repositories; ``scope`` is one of ``SERVER_SCOPES``.

        A token needs the scope, and its owner the flag: admin for all, user manager for ``users``, system manager for
        ``system`` and ``metrics``, none for ``api:read`` and ``api:write``, which are about the own account.
        """
        limits = identity.limits
        if limits is not None and not (scope in limits.scopes and self._in_force(identity)):
            return False
        user = (await self._standing(identity)).user
        if user is None or not user.active:
            return False
        match scope:
            case "api:read" | "api:write":
                return True
            case "users":
                return user.admin or user.user_manager
            case "system" | "metrics":
                return user.admin or user.system_manager
            case _:
                return user.admin

    async def explain(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> str:
        """The sentence of a refusal: who, what, and the rule that decided."""
        reason = (await self._decide_one(identity, (action, repository, package))).reason
        who = repr(identity.username) if identity.username else "an anonymous caller"
        what = f"{package!r} in {repository.path}" if package else repository.path
        return f"{who} may not {_VERBS[action]} {what}: {reason}"

    async def owning_project(self, repository: Repository, package: str) -> Project | None:
        """The project that owns a package name, or None; the package need not exist."""
        return await self._catalog.look(_read_owner, repository, package)

    async def is_project_member(self, identity: Identity, repository: Repository, package: str) -> bool:
        """Whether the identity has the role developer or above in the project that owns the package, or is an admin."""
        standing = await self._standing(identity)
        return _is_admin(standing) or _is_developer(standing, await self.owning_project(repository, package))

    async def check_project_member(
        self, identity: Identity, repository: Repository, package: str, *, auto_create: bool = False
    ) -> bool:
        """
        Check the rule ``must_be_project_member``. Returns True if ``claim_package`` must run, for want of an owner.

        ``auto_create`` is the setting ``auto_create_projects``: a package without owner gets its first pusher as owner.

        :raises Forbidden: with the project that the caller must be a member of, or that there is none
        """
        standing = await self._standing(identity)
        if _is_admin(standing):
            return False
        project = await self.owning_project(repository, package)
        if _is_developer(standing, project):
            return False
        if project is not None:
            raise Forbidden(
                f"only members of project {project.key} may push {package!r} to {repository.path} "
                "(must_be_project_member); the role must be developer or above"
            )
        if not auto_create or identity.user_id is None:
            raise Forbidden(
                f"no project owns {package!r} in {repository.path}, and only members of the owning project may push "
                "(must_be_project_member); let an admin bind the name to a project"
            )
        return True

    async def check_delegation(
        self,
        giver: Identity,
        user: User | None,
        repositories: Iterable[Repository],
        *,
        grants: Mapping[int, frozenset[Action]] | None = None,
        default_actions: frozenset[Action] | None = None,
    ) -> None:
        """
        Check that ``giver`` may set other grants or default actions (None: unchanged) of a user.

        ``user`` None means a new user. ``repositories`` are all repositories.

        :raises Forbidden: with a repository and the actions that the giver does not hold there
        """
        before = Standing(user=NEWCOMER) if user is None else await self._catalog.look(read_standing, user.id)
        after = before
        if grants is not None:
            after = evolve(after, own=grants)
        if default_actions is not None and before.user is not None:
            after = evolve(after, user=evolve(before.user, default_actions=default_actions))
        check_delegation(giver, await self._standing(giver), before, after, repositories)

    def _in_force(self, identity: Identity) -> bool:
        limits = identity.limits
        if limits is None or limits.expires_at is None:
            return True
        return in_force(limits, datetime.fromtimestamp(self._clock(), UTC))

    def _knows_nothing(self, identity: Identity, repository: Repository) -> bool:
        return identity.anonymous or repository.id == NO_REPOSITORY or not self._in_force(identity)

    # A reply of the catalog is cached only if the cache still has the serial from before the query: otherwise it may
    # be older than the change that moved the serial.

    def _decide_now(self, identity: Identity, question: Question) -> Decision | None:
        if identity.limits is not None and not self._in_force(identity):
            return _EXPIRED
        serial = self._identity_serial.now()
        if serial is None:
            return None
        self._use_serial(serial)
        decision = self._recall(identity, question)
        if decision is None:
            standing = self._cached_standing(identity)
            found = self._catalog.peek(_read_decisions, identity, (question,), standing, self._anonymous)
            if found is NOT_NOW:
                return None
            self._cache_decisions(identity, (question,), *found)
            [decision] = found[1]
        return decision

    async def _decide_one(self, identity: Identity, question: Question) -> Decision:
        decision = self._decide_now(identity, question)
        return (await self._decide(identity, (question,)))[0] if decision is None else decision

    async def _decide(self, identity: Identity, questions: Sequence[Question]) -> list[Decision]:
        if not self._in_force(identity):
            return [_EXPIRED] * len(questions)
        self._use_serial(await self._identity_serial.current())
        recalled = [self._recall(identity, each) for each in questions]
        missing = [each for each, found in zip(questions, recalled, strict=True) if found is None]
        if not missing:
            return [each for each in recalled if each is not None]
        serial = self._serial
        standing, decisions = await self._catalog.look(
            _read_decisions, identity, missing, self._cached_standing(identity), self._anonymous
        )
        if serial == self._serial:
            self._cache_decisions(identity, missing, standing, decisions)
        asked = iter(decisions)
        return [each or next(asked) for each in recalled]

    def _recall(self, identity: Identity, question: Question) -> Decision | None:
        """The decision, if the cache has it or has what the rules need; else None."""
        action, repository, package = question
        found = self._decisions.get((id(identity), id(repository), action, package))
        if found is not None:
            return found.decision
        standing = self._cached_standing(identity)
        if standing is None:
            return None
        try:
            decision = _apply(standing, identity, question, _raise_unread, anonymous=self._anonymous)
        except _OwnerUnread:
            return None
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
        if repository.id != NO_REPOSITORY and len(package or "") <= LONGEST_CACHED:  # else it cannot exist
            self._put((id(identity), id(repository), action, package), identity, repository, decision)

    def _cache_known(self, identity: Identity, repository: Repository, known: bool) -> bool:
        self._put((id(identity), id(repository), None, None), identity, repository, Decision(allowed=known, reason=""))
        return known

    def _put(self, key: _Key, identity: Identity, repository: Repository, decision: Decision) -> None:
        if len(self._decisions) >= MOST_CACHED:
            self._decisions.clear()
        self._decisions[key] = _CacheEntry(identity, repository, decision)

    def _cached_standing(self, identity: Identity) -> Standing | None:
        return _NOBODY if identity.user_id is None else self._standings.get(identity.user_id)

    async def _standing(self, identity: Identity) -> Standing:
        if identity.user_id is None:
            return _NOBODY
        self._use_serial(await self._identity_serial.current())
        standing = self._standings.get(identity.user_id)
        if standing is None:
            serial = self._serial
            standing = await self._catalog.look(read_standing, identity.user_id)
            if serial == self._serial:
                self._standings[identity.user_id] = standing
        return standing

    def _use_serial(self, serial: int) -> None:
        """Clear the cache if it is of another serial."""
        if serial != self._serial:
            self._standings.clear()
            self._decisions.clear()
            self._serial = serial


def _apply(
    standing: Standing,
    identity: Identity,
    question: Question,
    owner: Callable[[Repository, str], Project | None],
    *,
    anonymous: bool,
) -> Decision:
    action, repository, package = question
    return decide(
        standing,
        identity,
        action,
        repository,
        package,
        owner=lambda: owner(repository, package) if package else None,
        anonymous=anonymous,
    )


def _raise_unread(_repository: Repository, _package: str) -> Project | None:
    raise _OwnerUnread


def _visibility_check(repository: Repository) -> tuple[Action, Repository]:
    """The action that makes a repository appear in lists."""
    return Action.EDIT if repository.visibility is Visibility.HIDDEN else Action.READ, repository


def _is_admin(standing: Standing) -> bool:
    return standing.user is not None and standing.user.active and standing.user.admin


def _is_developer(standing: Standing, project: Project | None) -> bool:
    role = standing.roles.get(project.id) if project else None
    return role is not None and role.rank >= ProjectRole.DEVELOPER.rank


def _read_decisions(
    r: Reader,
    identity: Identity,
    questions: Sequence[Question],
    standing: Standing | None,
    anonymous: bool,
) -> tuple[Standing, list[Decision]]:
    """The standing of the identity's user (read if it is None) and the decisions."""
    if standing is None:
        standing = _NOBODY if identity.user_id is None else read_standing(r, identity.user_id)
    owner = partial(_read_owner, r)
    return standing, [_apply(standing, identity, each, owner, anonymous=anonymous) for each in questions]


def _read_known(r: Reader, identity: Identity, repository: Repository) -> bool:
    standing = _NOBODY if identity.user_id is None else read_standing(r, identity.user_id)
    return has_any_right(
        standing, behind(r, identity), repository, bound=lambda: _read_bound_projects(r, repository.id)
    )


def _read_owner(r: Reader, repository: Repository, package: str) -> Project | None:
    rule = ownership(repository, package)
    return owning_project(r, repository.id, rule.patterns, rule.project_key)


def _read_bound_projects(r: Reader, repository_id: int) -> frozenset[int]:
    return frozenset(binding.project_id for binding in list_bindings(r, repository_id=repository_id))


def claim_package(tx: Transaction, repository: Repository, package: str, owner: Identity, *, now_ms: int) -> Project:
    """
    Bind a package to a project, which is created with the first pusher as owner. Returns the project.

    It runs in the transaction of the publish, so that one of two concurrent first pushers wins.

    :raises Forbidden: another pusher claimed it meanwhile
    """
    rule = ownership(repository, package)
    assert owner.user_id is not None
    if owning_project(tx, repository.id, rule.patterns, rule.project_key) is not None:
        raise Forbidden(f"{package!r} in {repository.path} was claimed by another project a moment ago")
    return claim_names(
        tx, repository.id, pattern=rule.claim, project_key=rule.claim_key, owner_id=owner.user_id, now_ms=now_ms
    )
