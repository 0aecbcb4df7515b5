"""
The permission rules, as a pure function.

====  =======================  =======================================================================
step  input                    decision
====  =======================  =======================================================================
1     the user is not active   refused
2     token limits             refused outside of them, but for reading what needs no credentials; a bearer
                               token requested without a scope reaches no container repository
2a    pipeline                 final, for a token of a pipeline: what publishers of the repository, and of the
                               project that owns the package, allow it now, and reading what needs no credentials
3     admin, system manager    allowed; a system manager may do all but ``admin``
4     grant to the user        final, if there is one: its actions and no others; which of several decides is
                               said in L{grants<pkgrepo.auth.permissions.grants>}
5     grants to their groups   final, if there are any: the union of their actions and no others
6     project role             allowed, if the role in the project that owns the package has the
                               action; a guest reads unless the repository is private. Of some package it is
                               the last step, since the others allow more
7     default actions          allowed, if they have the action
8     visibility               otherwise: reading public and hidden repositories
====  =======================  =======================================================================

A question is about one package, about the whole repository, or about some package of it, whichever that is: then the
packages of a token and those of every project that owns names in the repository count. Publishing and deleting without
a package are such questions, since they are asked again with the name. So pages and clients get the same decisions.

So a grant without actions is a refusal that no role and no visibility overrides, and roles only add. Reading a public
repository needs no credentials, unless the repository's ``auth.enabled`` or the server's ``auth.anonymous`` says
otherwise. Writing always needs credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import Factory, frozen

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.auth.permissions.grants import Grants
from pkgrepo.auth.permissions.publishers import STAGE, publishers_of, publishers_of_project
from pkgrepo.auth.tokens.limits import NAMED_LATER, allows, covers
from pkgrepo.interfaces import Reader
from pkgrepo.model import (
    Action,
    Extent,
    Identity,
    Pipeline,
    Project,
    ProjectRole,
    Repository,
    RepositoryType,
    SubjectKind,
    User,
    Visibility,
)
from pkgrepo.storage.catalog.people.grants import permissions_of_user
from pkgrepo.storage.catalog.people.projects import roles_of_user
from pkgrepo.storage.catalog.people.users import find_user

NO_REPOSITORY = -1  # the id of a repository that stands for one that does not exist
NO_GRANTS = Grants()
PROJECT_ROLE = "project role"  # the reason of a decision
READING = frozenset({Action.READ})
MAINTAINING = frozenset({Action.READ, Action.WRITE, Action.OVERWRITE, Action.DELETE, Action.EDIT})

ROLES: Mapping[ProjectRole, frozenset[Action]] = {
    ProjectRole.GUEST: frozenset(),
    ProjectRole.REPORTER: READING,
    ProjectRole.DEVELOPER: frozenset({Action.READ, Action.WRITE}),
    ProjectRole.MAINTAINER: MAINTAINING,
    ProjectRole.OWNER: MAINTAINING,
}

Owners = Callable[[], Iterable[Project]]  # the projects that own what is asked about


@frozen
class Standing:
    """A user's rights: grants (own and of groups), and the highest role by project id."""

    user: User | None
    own: Grants = NO_GRANTS
    groups: Grants = NO_GRANTS
    roles: Mapping[int, ProjectRole] = Factory(dict)


@frozen
class ProjectViewer:
    """A caller: whether they may manage every project, and their roles by the catalog keys of projects."""

    manages: bool
    roles: Mapping[int, ProjectRole]

    def may_see(self, project: Project) -> bool:
        """Whether the caller may know that the project exists."""
        return project.visibility is Visibility.PUBLIC or self.may_list_members(project)

    def may_list_members(self, project: Project) -> bool:
        """Whether the caller may see the list of members."""
        return self.manages or project.id in self.roles


@frozen
class Decision:
    """The result of the rules; ``reason`` completes a sentence after a colon."""

    allowed: bool
    reason: str


def read_standing(r: Reader, user_id: int) -> Standing:
    """Read a user's standing; ``user`` is None if the user was removed."""
    user = find_user(r, user_id)
    if user is None:
        return Standing(user=None)
    own: dict[int | str, frozenset[Action]] = {}
    groups: dict[str, dict[int | str, frozenset[Action]]] = {}
    for grant in permissions_of_user(r, user_id):
        found = own if grant.subject_kind is SubjectKind.USER else groups.setdefault(grant.subject_name, {})
        found[grant.place] = grant.actions
    roles = roles_of_user(r, user_id)
    return Standing(user=user, own=Grants.of_user(own), groups=Grants.of_groups(groups), roles=roles)


def decide(  # noqa: C901, PLR0911 - one return for each step of the table
    standing: Standing,
    identity: Identity,
    action: Action,
    repository: Repository,
    package: str | Extent | None,
    *,
    owners: Owners,
    anonymous: bool,
) -> Decision:
    """
    Apply the table above.

    ``owners`` finds the project that owns the package, or all that own packages in the repository, and is called only
    if needed. ``anonymous`` is the server's setting. The caller checks the expiry of token limits, since a decision may
    be cached.
    """
    if package is None and action in NAMED_LATER:
        package = Extent.SOME
    beyond = _refusal_by_token(identity, action, repository, package, anonymous=anonymous)
    if beyond:
        return Decision(allowed=False, reason=beyond)
    if identity.anonymous:
        return _decide_anonymous(action, repository, anonymous=anonymous)
    user = standing.user
    if user is None or not user.active:
        return Decision(allowed=False, reason="the account is not active")
    if identity.pipeline is not None:
        unbound = _decide_anonymous(action, repository, anonymous=anonymous)
        return unbound if unbound.allowed else _decide_pipeline(identity.pipeline, action, repository, package, owners)
    if user.admin or (user.system_manager and action is not Action.ADMIN):
        return Decision(allowed=True, reason="admin" if user.admin else "system manager")
    granted = standing.own.find(repository) or standing.groups.find(repository)
    if granted is not None:
        return Decision(allowed=action in granted.actions, reason=granted.reason)
    if isinstance(package, str) and _role_allows(standing, action, repository, owners):
        return Decision(allowed=True, reason=PROJECT_ROLE)
    if action in user.default_actions:
        return Decision(allowed=True, reason="default actions")
    if action is Action.READ and repository.visibility is not Visibility.PRIVATE:
        return Decision(allowed=True, reason="visibility")
    if package is Extent.SOME and _role_allows(standing, action, repository, owners):
        return Decision(allowed=True, reason=PROJECT_ROLE)
    where = "here" if package is not None else "in the whole repository"
    return Decision(allowed=False, reason=f"nothing grants the action {str(action)!r} to this user {where}")


def _refusal_by_token(
    identity: Identity, action: Action, repository: Repository, package: str | Extent | None, *, anonymous: bool
) -> str:
    """
    Why this is refused regardless of the user's rights (limits of the token); empty if it is not.

    A token never gives less than none at all: clients send it with every request, as ``npm ci`` does for packages that
    it is not for. Bearer tokens of anonymous callers have no other use than their scopes.
    """
    if repository.id == NO_REPOSITORY:
        return "there is no such repository"
    if identity.limits is not None and not allows(identity.limits, action, repository.path, package):
        open_ = _decide_anonymous(action, repository, anonymous=anonymous).allowed
        if identity.anonymous or not open_:
            return "the token does not reach that far"
    if identity.scoped is False and has_images(repository):
        return "the bearer token was asked for without a scope"
    return ""


def _decide_pipeline(
    pipeline: Pipeline, action: Action, repository: Repository, package: str | Extent | None, owners: Owners
) -> Decision:
    if any(_publishes(each, action, package) for each in publishers_of(repository, pipeline)):
        return Decision(allowed=True, reason="publisher")
    if pipeline.projects and package is not None:
        found = (each for project in owners() for each in publishers_of_project(project, pipeline))
        if any(_publishes(each, action, package) for each in found):
            return Decision(allowed=True, reason="publisher of the project")
    if action is Action.READ and repository.type is RepositoryType.VIRTUAL:
        return Decision(allowed=repository.visibility is not Visibility.PRIVATE, reason="visibility")
    return Decision(allowed=False, reason="no publisher of the repository allows it to this pipeline")


def _publishes(publisher: Mapping[str, Any], action: Action, package: str | Extent | None) -> bool:
    """Whether a publisher has an action; where somebody approves, L{Authorizer.check_push_rules} checks it again."""
    allowed = {Action.READ, *publisher["actions"]} | ({Action.WRITE} if STAGE in publisher["actions"] else set())
    return action in allowed and covers(publisher["packages"], action, package)


def _decide_anonymous(action: Action, repository: Repository, *, anonymous: bool) -> Decision:
    if action is not Action.READ:
        return Decision(allowed=False, reason="this needs credentials")
    if not anonymous:
        return Decision(allowed=False, reason="this server answers nobody without credentials (auth.anonymous)")
    if repository.visibility is Visibility.PRIVATE:
        return Decision(allowed=False, reason="the repository is private")
    if repository.auth_enabled:
        return Decision(allowed=False, reason="the repository asks for credentials (auth.enabled)")
    return Decision(allowed=True, reason="visibility")


def role_allows(role: ProjectRole, action: Action, repository: Repository) -> bool:
    """Whether a role in the project that owns a package of a repository has an action."""
    if role is ProjectRole.GUEST:
        return action is Action.READ and repository.visibility is not Visibility.PRIVATE
    return action in ROLES[role]


def _role_allows(standing: Standing, action: Action, repository: Repository, owners: Owners) -> bool:
    if not standing.roles:
        return False
    roles = (standing.roles.get(project.id) for project in owners())
    return any(role is not None and role_allows(role, action, repository) for role in roles)
