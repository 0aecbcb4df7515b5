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

from attrs import evolve, frozen
from zope.interface import implementer

from pkgrepo.auth.permissions.decisions import NEWCOMER, check_delegation
from pkgrepo.auth.permissions.publishers import publishers_of, publishers_of_project
from pkgrepo.auth.tokens.limits import covers, in_force
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.interfaces import NOT_NOW, IAuthorizer, ICatalog
from pkgrepo.model import (
    ANONYMOUS,
    Action,
    Identity,
    Pipeline,
    Project,
    ProjectRole,
    Repository,
    TokenKind,
    User,
    Visibility,
)
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.people.users import identity_snapshot
from pkgrepo.storage.catalog.server.repositories import find_repository
from pkgrepo.storage.catalog.snapshot import Snapshot

from .decisions import NO_USER, Question, decide_unread, read_decisions, read_known
from .ownership import read_owner
from .rules import NO_REPOSITORY, Decision, Standing, read_standing

MOST_CACHED = 50_000  # decisions; about 15 MB
LONGEST_CACHED = 512  # characters of a package name; no format allows longer ones, but any client can request them

_VERBS = {
    Action.READ: "read",
    Action.WRITE: "publish",
    Action.OVERWRITE: "replace",
    Action.DELETE: "delete",
    Action.EDIT: "change the settings of",
    Action.ADMIN: "administer",
}

PERSONS = frozenset({TokenKind.PERSONAL, TokenKind.LOGIN})  # kinds of tokens that stand for a person

_EXPIRED = Decision(allowed=False, reason="the token has expired")

_Key = tuple[int, int, Action | None, str | None]  # without action: whether the identity may know of the repository


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
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> bool | None:
        """The result of ``may`` if it is known without waiting, else None."""
        decision = self._decide_now(identity, action, repository, package)
        return None if decision is None else decision.allowed

    async def may(self, identity: Identity, action: Action, repository: Repository, package: str | None = None) -> bool:
        """
        Whether the identity may do this now; ``package`` (a key) restricts the question to one package.

        Without a package, writing and deleting are allowed if they are for any package: ask again when the name is
        known. All other actions then concern the repository as a whole. It does not check whether the repository is
        active.
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
        known = self._catalog.peek(read_known, identity, repository)
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
        known = await self._catalog.look(read_known, identity, repository)
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
        """
        The sentence of a refusal: who, what, and the rule that decided.

        :raises NotFound: the repository was removed since the caller found it, so there is no rule to name
        """
        await self._check_exists(repository)
        [decision] = await self.decide_each(identity, [(action, repository, package)])
        who = repr(identity.username) if identity.username else "an anonymous caller"
        what = f"{package!r} in {repository.path}" if package else repository.path
        return f"{who} may not {_VERBS[action]} {what}: {decision.reason}"

    async def owning_project(self, repository: Repository, package: str) -> Project | None:
        """The project that owns a package name, or None; the package need not exist."""
        return await self._catalog.look(read_owner, repository.authority, package)

    async def is_project_member(self, identity: Identity, repository: Repository, package: str) -> bool:
        """Whether the identity has the role developer or above in the project that owns the package, or is an admin."""
        standing = await self._standing(identity)
        project = await self.owning_project(repository, package)
        return _is_admin(standing) or _has_role(standing, project, ProjectRole.DEVELOPER)

    async def is_approver(self, identity: Identity, repository: Repository, package: str | None) -> bool:
        """
        Whether the identity may publish what is staged of a package, or with None what belongs to no package.

        It takes the action admin in the repository (see L{person_may}), or the role maintainer in the project that
        owns the package.
        """
        if await self.person_may(identity, Action.ADMIN, repository, package):
            return True
        if not await self.may(identity, Action.WRITE, repository, package):
            return False
        project = None if package is None else await self.owning_project(repository, package)
        return _has_role(await self._standing(identity), project, ProjectRole.MAINTAINER)

    async def person_may(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> bool:
        """
        Whether the identity may do this, or the person for whom a personal token stands.

        That is a token with which the package may be published, replaced and deleted, as that of a login in npm.
        """
        if await self.may(identity, action, repository, package):
            return True
        questions = [(each, repository, package) for each in (Action.WRITE, Action.OVERWRITE, Action.DELETE)]
        if identity.token_id is None or not all(await self.may_each(identity, questions)):
            return False
        token = await self._catalog.look(find_token, identity.token_id)
        if token is None or token.kind not in PERSONS:
            return False
        return await self.may(evolve(identity, limits=None), action, repository, package)

    async def check_push_rules(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> None:
        """Check the rules of a repository for pushes. :raises Forbidden: one forbids it"""
        rules = repository.push_rules
        if rules.get("must_use_auth_token_for_push") and identity.via != "session":  # the console has no tokens
            token = None
            if identity.token_id is not None:
                token = await self._catalog.look(find_token, identity.token_id)
            if token is None or token.kind is TokenKind.LOGIN:
                raise Forbidden("pushes to this repository need an access token, not a password")
        if package is not None:
            unowned_ok = action is Action.WRITE and rules.get("auto_create_projects", False)
            await self.check_project_member(identity, repository, package, unowned_ok=unowned_ok)
            if action is not Action.DELETE and repository.stage is None:
                if rules.get("requires_approval"):
                    await self._check_approver(identity, repository, package)
                if action is Action.WRITE and identity.pipeline is not None:
                    await self._check_publishes_directly(identity.pipeline, repository, package)

    async def _check_approver(self, identity: Identity, repository: Repository, package: str) -> None:
        """Check that the identity may publish without an approval. :raises Forbidden: it may not"""
        if not await self.is_approver(identity, repository, package):
            raise Forbidden(
                f"{package!r} is published to {repository.path} by an approval (requires_approval): publish it to a "
                "stage, which is opened by: pkgrepo stage open, or by: npm stage publish"
            )

    async def _check_publishes_directly(self, pipeline: Pipeline, repository: Repository, package: str) -> None:
        """Check that a pipeline may publish a package without a stage. :raises Forbidden: it may not"""
        found = [*publishers_of(repository, pipeline)]
        if pipeline.projects:
            found += publishers_of_project(await self.owning_project(repository, package), pipeline)
        if not any(
            Action.WRITE in each["actions"] and covers(each["packages"], Action.WRITE, package) for each in found
        ):
            raise Forbidden(
                f"the publisher lets {pipeline.name} publish {package!r} to a stage alone, which is opened by: pkgrepo "
                "stage open, or by: npm stage publish"
            )

    async def check_project_member(
        self, identity: Identity, repository: Repository, package: str, *, unowned_ok: bool = False
    ) -> None:
        """Check membership in the owning project, where the rule is on. :raises Forbidden: the identity is no member"""
        if not repository.push_rules.get("must_be_project_member") or identity.pipeline is not None:
            return  # the editors of the repository have named the packages that a pipeline may publish
        standing = await self._standing(identity)
        if _is_admin(standing):
            return
        project = await self.owning_project(repository, package)
        if _has_role(standing, project, ProjectRole.DEVELOPER) or (project is None and unowned_ok):
            return
        await self._check_exists(repository)
        if project is not None:
            raise Forbidden(
                f"only members of project {project.key} may push {package!r} to {repository.path} "
                "(must_be_project_member); the role must be developer or above"
            )
        raise Forbidden(
            f"no project owns {package!r} in {repository.path}, and only members of the owning project may push "
            "(must_be_project_member); let an admin bind the name to a project"
        )

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

    async def check_group_delegation(
        self,
        giver: Identity,
        repositories: Iterable[Repository],
        before: Mapping[int, frozenset[Action]],
        after: Mapping[int, frozenset[Action]],
    ) -> None:
        """
        Check that ``giver`` may set other grants of a group, by what a new member of it would gain.

        :raises Forbidden: with a repository and the actions that the giver does not hold there
        """
        was, becomes = Standing(user=NEWCOMER, groups=before), Standing(user=NEWCOMER, groups=after)
        check_delegation(giver, await self._standing(giver), was, becomes, repositories)

    async def _check_exists(self, repository: Repository) -> None:
        """
        Check that a repository that refuses a caller is still there: a purge deletes its grants, too.

        :raises NotFound: it was removed
        """
        if repository.id != NO_REPOSITORY and await self._catalog.look(find_repository, repository.uid) is None:
            raise NotFound("repository", repository.path)

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
        self, identity: Identity, action: Action, repository: Repository, package: str | None
    ) -> Decision | None:
        if identity.limits is not None and not self._in_force(identity):
            return _EXPIRED
        if not self._identity_serial.refresh_now():
            return None
        repository = repository.authority
        self._use_serial()
        decision = self._recall(identity, action, repository, package)
        if decision is None:
            questions = [(action, repository, package)]
            standing = self._cached_standing(identity)
            found = self._catalog.peek(read_decisions, identity, questions, standing, self._anonymous)
            if found is NOT_NOW:
                return None
            self._cache_decisions(identity, questions, *found)
            [decision] = found[1]
        return decision

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

    def _recall(
        self, identity: Identity, action: Action, repository: Repository, package: str | None
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
        if repository.id != NO_REPOSITORY and len(package or "") <= LONGEST_CACHED:  # else it cannot exist
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

    async def _standing(self, identity: Identity) -> Standing:
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


def _visibility_check(repository: Repository) -> tuple[Action, Repository]:
    """The action that makes a repository appear in lists."""
    return Action.EDIT if repository.visibility is Visibility.HIDDEN else Action.READ, repository


def _is_admin(standing: Standing) -> bool:
    return standing.user is not None and standing.user.active and standing.user.admin


def _has_role(standing: Standing, project: Project | None, least: ProjectRole) -> bool:
    """Whether the role in a project is this one or a higher one."""
    role = standing.roles.get(project.id) if project else None
    return role is not None and role.rank >= least.rank
