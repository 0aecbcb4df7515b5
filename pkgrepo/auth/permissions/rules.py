"""
The rules of permission, as a pure function.

====  =======================  =======================================================================
step  what                     decides
====  =======================  =======================================================================
1     the user is not active   refused
2     token limits             refused where they do not reach; a bearer token that was asked for without a scope
                               reaches no container repository
3     admin, system manager    allowed; a system manager may do all but ``admin``
4     grant to the user        always, where there is one: its actions and no others
5     grants to their groups   always, where there are any: the union of their actions and no others
6     project role             allowed, where the role in the project that owns the package has the
                               action; a guest reads what is not private
7     default actions          allowed, where they have the action
8     visibility               the rest: reading what is public or hidden
====  =======================  =======================================================================

So a grant without actions is a refusal that no role and no visibility lifts, and roles only ever add. Nobody is asked
for a password to read what is public, unless the repository's ``auth.enabled`` or the server's ``auth.anonymous``
say otherwise. Whoever writes is somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from attrs import Factory, frozen

from pkgrepo.auth.tokens.limits import NAMED_LATER, allows, reaches
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Project, ProjectRole, Repository, SubjectKind, User, Visibility
from pkgrepo.storage.catalog.people.grants import permissions_of_user
from pkgrepo.storage.catalog.people.identity import find_user
from pkgrepo.storage.catalog.people.projects import roles_of_user

NO_REPOSITORY = -1  # the id of a repository that stands for one that does not exist
READING = frozenset({Action.READ})
MAINTAINING = frozenset({Action.READ, Action.WRITE, Action.OVERWRITE, Action.DELETE, Action.EDIT})

ROLES: Mapping[ProjectRole, frozenset[Action]] = {
    ProjectRole.GUEST: frozenset(),
    ProjectRole.REPORTER: READING,
    ProjectRole.DEVELOPER: frozenset({Action.READ, Action.WRITE}),
    ProjectRole.MAINTAINER: MAINTAINING,
    ProjectRole.OWNER: MAINTAINING,
}


@frozen
class Standing:
    """What the catalog says of a user: grants by repository (``None`` absent), and the highest role by project."""

    user: User | None
    own: Mapping[int, frozenset[Action]] = Factory(dict)
    groups: Mapping[int, frozenset[Action]] = Factory(dict)
    roles: Mapping[int, ProjectRole] = Factory(dict)


@frozen
class Decision:
    """Whether, and why: ``reason`` completes a sentence after a colon."""

    allowed: bool
    reason: str


def read_standing(r: Reader, user_id: int) -> Standing:
    """A user's standing now; without a user when they are gone."""
    user = find_user(r, user_id)
    if user is None:
        return Standing(user=None)
    own: dict[int, frozenset[Action]] = {}
    groups: dict[int, frozenset[Action]] = {}
    for grant in permissions_of_user(r, user_id):
        if grant.subject_kind is SubjectKind.USER:
            own[grant.repository_id] = grant.actions
        else:
            groups[grant.repository_id] = groups.get(grant.repository_id, frozenset()) | grant.actions
    return Standing(user=user, own=own, groups=groups, roles=roles_of_user(r, user_id))


def decide(  # noqa: PLR0911 - one return for each step of the table
    standing: Standing,
    identity: Identity,
    action: Action,
    repository: Repository,
    package: str | None,
    *,
    owner: Callable[[], Project | None],
    anonymous: bool,
) -> Decision:
    """
    The outcome of the table above.

    ``owner`` finds the project that owns the package, and is only asked when that matters; ``anonymous`` is the
    server's switch. Expiry of token limits is the caller's to check, since a decision may be kept.
    """
    beyond = _out_of_reach(identity, action, repository, package)
    if beyond:
        return Decision(allowed=False, reason=beyond)
    if identity.anonymous:
        return _nobody(action, repository, anonymous=anonymous)
    user = standing.user
    if user is None or not user.active:
        return Decision(allowed=False, reason="the account is not active")
    if user.admin or (user.system_manager and action is not Action.ADMIN):
        return Decision(allowed=True, reason="admin" if user.admin else "system manager")
    for grants, whose in ((standing.own, "the user's grant"), (standing.groups, "the grant of the user's groups")):
        granted = grants.get(repository.id)
        if granted is not None:
            words = ", ".join(each for each in Action if each in granted) or "no action at all"
            return Decision(allowed=action in granted, reason=f"{whose} in this repository is for {words}")
    if standing.roles and _by_role(standing, action, repository, package, owner):
        return Decision(allowed=True, reason="project role")
    if action in user.default_actions:
        return Decision(allowed=True, reason="default actions")
    if action is Action.READ and repository.visibility is not Visibility.PRIVATE:
        return Decision(allowed=True, reason="visibility")
    return Decision(allowed=False, reason=f"nothing grants the action {str(action)!r} to this user here")


def has_any_right(
    standing: Standing, identity: Identity, repository: Repository, *, bound: Callable[[], frozenset[int]]
) -> bool:
    """
    Whether somebody may do anything at all in a repository, were it with one package only.

    ``bound`` finds the projects that own packages there. Expiry is the caller's to check, as above.
    """
    user = standing.user
    if user is None or not user.active or not reaches(identity.limits, repository.path):
        return False
    if user.admin or user.system_manager:
        return True
    for grants in (standing.own, standing.groups):
        granted = grants.get(repository.id)
        if granted is not None:
            return bool(granted)
    if user.default_actions or repository.visibility is not Visibility.PRIVATE:
        return True
    roles = {key for key, role in standing.roles.items() if ROLES[role]}
    # an image's name states its project, in every repository
    return bool(roles) and (repository.format == "docker" or not roles.isdisjoint(bound()))


def _out_of_reach(identity: Identity, action: Action, repository: Repository, package: str | None) -> str:
    """Why this is refused whatever the caller's rights, mostly by the caller's token; empty when it is not."""
    if repository.id == NO_REPOSITORY:
        return "there is no such repository"
    if identity.limits is not None and not allows(identity.limits, action, repository.path, package):
        return "the token does not reach that far"
    if identity.scoped is False and repository.format == "docker":
        return "the bearer token was asked for without a scope"
    return ""


def _nobody(action: Action, repository: Repository, *, anonymous: bool) -> Decision:
    if action is not Action.READ:
        return Decision(allowed=False, reason="this needs credentials")
    if not anonymous:
        return Decision(allowed=False, reason="this server answers nobody without credentials (auth.anonymous)")
    if repository.visibility is Visibility.PRIVATE:
        return Decision(allowed=False, reason="the repository is private")
    if repository.auth_enabled:
        return Decision(allowed=False, reason="the repository asks for credentials (auth.enabled)")
    return Decision(allowed=True, reason="visibility")


def _by_role(
    standing: Standing,
    action: Action,
    repository: Repository,
    package: str | None,
    owner: Callable[[], Project | None],
) -> bool:
    if package is None:
        # to be asked again with the name, so any role will do; what speaks of the whole repository is no project's
        held = reduce(frozenset.union, (ROLES[role] for role in standing.roles.values()), frozenset[Action]())
        return action in NAMED_LATER and action in held
    project = owner()
    role = standing.roles.get(project.id) if project else None
    if role is None:
        return False
    if role is ProjectRole.GUEST:
        return action is Action.READ and repository.visibility is not Visibility.PRIVATE
    return action in ROLES[role]
