"""The one permission check: the rules applied to what the catalog says, remembered until that changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from attrs import evolve, frozen
from zope.interface import implementer

from pkgrepo.auth.identity_serial import IdentitySerial
from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.auth.tokens.limits import in_force
from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import IAuthorizer, ICatalog, Reader, Transaction
from pkgrepo.model import ANONYMOUS, Action, Identity, Project, ProjectRole, Repository, User, Visibility
from pkgrepo.storage.catalog.people.projects import claim_names, list_bindings, owning_project

from .delegation import NEWCOMER, check_delegation
from .ownership import ownership
from .rules import NO_REPOSITORY, Decision, Standing, decide, has_any_right, read_standing

REMEMBERED = 50_000  # decisions; some 15 MB
LONGEST_REMEMBERED = 512  # characters of a package; no format takes longer ones, and anybody can ask for them

_NOBODY = Standing(user=None)
_VERBS = {
    Action.READ: "read",
    Action.WRITE: "publish",
    Action.OVERWRITE: "replace",
    Action.DELETE: "delete",
    Action.EDIT: "change the settings of",
    Action.ADMIN: "administer",
}

_Key = tuple[int, int, Action | None, str | None]  # no action: whether the repository is known


@frozen
class _Remembered:
    """A decision, with the objects whose ``id`` is its key: while they are held, no others can have those."""

    identity: Identity
    repository: Repository
    decision: Decision


@implementer(IAuthorizer)
class Authorizer:
    """
    What an identity may do.

    ``anonymous`` is the server's switch for reading without credentials. A new configuration of a repository comes as
    a new value, so decisions need only be forgotten when the identity serial moves. ``clock`` tells seconds since
    the epoch.
    """

    def __init__(self, catalog: ICatalog, *, anonymous: bool = True, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._anonymous = anonymous
        self._clock = clock
        self._watch = IdentitySerial(catalog)
        self._serial: int | None = None
        self._standings: dict[int, Standing] = {}
        self._decisions: dict[_Key, _Remembered] = {}

    @property
    def anonymous(self) -> bool:
        """Whether anybody may read without credentials at all."""
        return self._anonymous

    @anonymous.setter
    def anonymous(self, value: bool) -> None:
        self._anonymous = value
        self._decisions.clear()

    def may(self, identity: Identity, action: Action, repository: Repository, package: str | None = None) -> bool:
        """
        Whether the identity may do this now; ``package`` (its key) narrows to one package.

        Without a package, writing and deleting are asked in advance, for whatever package it will be: ask again when
        the name is known. Every other action is then about the repository as a whole. Whether the repository is
        active is not asked here.
        """
        if identity.limits is not None and not self._in_force(identity):
            return False
        return self._decide(identity, action, repository, package).allowed

    def knows(self, identity: Identity, repository: Repository) -> bool:
        """
        Whether the identity may know that there is such a repository.

        That is who may do anything there, were it with one package; of a bearer token the owner counts, who can get
        another one. What is readable for everybody, everybody knows of.
        """
        if self.may(ANONYMOUS, Action.READ, repository):
            return True
        if identity.anonymous or repository.id == NO_REPOSITORY or not self._in_force(identity):
            return False
        self._forget_if_moved()
        key = (id(identity), id(repository), None, None)
        found = self._decisions.get(key)
        if found is not None:
            return found.decision.allowed
        known = has_any_right(
            self._standing(identity),
            behind(self._catalog, identity),
            repository,
            bound=lambda: self._catalog.look_inline(_bound_projects, repository.id),
        )
        self._remember(key, identity, repository, Decision(allowed=known, reason=""))
        return known

    def may_see(self, identity: Identity, repository: Repository) -> bool:
        """Whether the repository appears in lists; a hidden one only for those who may change its settings."""
        action = Action.EDIT if repository.visibility is Visibility.HIDDEN else Action.READ
        return self.may(identity, action, repository)

    def may_use(self, identity: Identity, scope: str) -> bool:
        """
        Whether the identity may use a part of the server beyond repositories; ``scope`` is one of ``SERVER_SCOPES``.

        A token must have the scope, and its owner the flag: admin for all, user manager for ``users``, system manager
        for ``system`` and ``metrics``, and nothing for ``api:read`` and ``api:write``, which concern themselves.
        """
        limits = identity.limits
        if limits is not None and not (scope in limits.scopes and self._in_force(identity)):
            return False
        user = self._standing(identity).user
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

    def explain(self, identity: Identity, action: Action, repository: Repository, package: str | None = None) -> str:
        """A sentence for the person who was refused: who, what, and the rule that decided."""
        if identity.limits is not None and not self._in_force(identity):
            reason = "the token has expired"
        else:
            reason = self._decide(identity, action, repository, package).reason
        who = repr(identity.username) if identity.username else "an anonymous caller"
        what = f"{package!r} in {repository.path}" if package else repository.path
        return f"{who} may not {_VERBS[action]} {what}: {reason}"

    def owning_project(self, repository: Repository, package: str) -> Project | None:
        """The project that owns a package, existing or not, or None."""
        rule = ownership(repository, package)
        return self._catalog.look_inline(owning_project, repository.id, rule.patterns, rule.project_key)

    def is_project_member(self, identity: Identity, repository: Repository, package: str) -> bool:
        """Whether the identity is developer or more in the project that owns the package; admins always are."""
        standing = self._standing(identity)
        if standing.user is not None and standing.user.active and standing.user.admin:
            return True
        project = self.owning_project(repository, package)
        role = standing.roles.get(project.id) if project else None
        return role is not None and role.rank >= ProjectRole.DEVELOPER.rank

    def check_project_member(
        self, identity: Identity, repository: Repository, package: str, *, auto_create: bool = False
    ) -> bool:
        """
        Let pass whom ``must_be_project_member`` lets push; whether ``claim_package`` must then run, for nobody owns it.

        ``auto_create`` is the setting ``auto_create_projects``: a package without owner becomes its first pusher's.

        :raises Forbidden: naming the project whose member one must be, or that there is none
        """
        if self.is_project_member(identity, repository, package):
            return False
        project = self.owning_project(repository, package)
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

    def check_delegation(
        self,
        giver: Identity,
        user: User | None,
        repositories: Iterable[Repository],
        *,
        grants: Mapping[int, frozenset[Action]] | None = None,
        default_actions: frozenset[Action] | None = None,
    ) -> None:
        """
        Let a user be given other grants or default actions (None: as they are) by whoever holds what this adds.

        Without a ``user`` it is about one that is to be added. ``repositories`` are all that there are.

        :raises Forbidden: naming a repository and the actions that the giver does not hold there
        """
        before = Standing(user=NEWCOMER) if user is None else self._catalog.look_inline(read_standing, user.id)
        after = before
        if grants is not None:
            after = evolve(after, own=grants)
        if default_actions is not None and before.user is not None:
            after = evolve(after, user=evolve(before.user, default_actions=default_actions))
        check_delegation(giver, self._standing(giver), before, after, repositories)

    def _in_force(self, identity: Identity) -> bool:
        limits = identity.limits
        if limits is None or limits.expires_at is None:
            return True
        return in_force(limits, datetime.fromtimestamp(self._clock(), UTC))

    def _decide(self, identity: Identity, action: Action, repository: Repository, package: str | None) -> Decision:
        self._forget_if_moved()
        key = (id(identity), id(repository), action, package)
        found = self._decisions.get(key)
        if found is not None:
            return found.decision
        decision = decide(
            self._standing(identity),
            identity,
            action,
            repository,
            package,
            owner=lambda: self.owning_project(repository, package) if package else None,
            anonymous=self._anonymous,
        )
        made_up = repository.id == NO_REPOSITORY or len(package or "") > LONGEST_REMEMBERED
        if not made_up:
            self._remember(key, identity, repository, decision)
        return decision

    def _remember(self, key: _Key, identity: Identity, repository: Repository, decision: Decision) -> None:
        if len(self._decisions) >= REMEMBERED:
            self._decisions.clear()
        self._decisions[key] = _Remembered(identity, repository, decision)

    def _standing(self, identity: Identity) -> Standing:
        if identity.user_id is None:
            return _NOBODY
        self._forget_if_moved()
        standing = self._standings.get(identity.user_id)
        if standing is None:
            standing = self._catalog.look_inline(read_standing, identity.user_id)
            self._standings[identity.user_id] = standing
        return standing

    def _forget_if_moved(self) -> None:
        serial = self._watch.current()
        if serial != self._serial:
            self._standings.clear()
            self._decisions.clear()
            self._serial = serial


def _bound_projects(r: Reader, repository_id: int) -> frozenset[int]:
    return frozenset(binding.project_id for binding in list_bindings(r, repository_id=repository_id))


def claim_package(tx: Transaction, repository: Repository, package: str, owner: Identity, *, now_ms: int) -> Project:
    """
    The project that owns a package from now on, with its first pusher as owner when it is new.

    Runs in the transaction that publishes, so that of two first pushers one wins.

    :raises Forbidden: somebody else claimed it a moment ago
    """
    rule = ownership(repository, package)
    assert owner.user_id is not None
    if owning_project(tx, repository.id, rule.patterns, rule.project_key) is not None:
        raise Forbidden(f"{package!r} in {repository.path} was claimed by another project a moment ago")
    return claim_names(
        tx, repository.id, pattern=rule.claim, project_key=rule.claim_key, owner_id=owner.user_id, now_ms=now_ms
    )
