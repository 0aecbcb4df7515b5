"""What a user may do in each repository, and where it comes from, as the permission check decides it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.permissions.decisions import Question
from pkgrepo.auth.permissions.ownership import Owned, read_owned
from pkgrepo.auth.permissions.rules import PROJECT_ROLE, Decision, Standing, role_allows
from pkgrepo.auth.tokens.limits import packages_of
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, USER_MANAGERS, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import RepositoryId, RepositoryPath
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.users.permissions import find_user
from pkgrepo.model import Action, Extent, Identity, Repository
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.people.grants import permissions_of_user

table = Table("users")
BY_ROLE: Final = Decision(allowed=True, reason=PROJECT_ROLE)


class SourceRecord(Record):
    """
    Where actions come from.

    source is admin, system manager, the user's grant, the grant of groups, default actions, visibility, the publisher
    that a pipeline is, or the role in a project; packages are the patterns of names which that owns there, and null for
    sources that hold for all packages.
    """

    source: Annotated[
        str,
        meaning("What gives them: a flag of the user, a grant, default actions, visibility, a publisher or a role."),
    ]
    actions: Annotated[list[str], meaning("The actions that come from it.")]
    packages: Annotated[
        list[str] | None, meaning("The patterns of names that it owns there; null for all packages.")
    ] = None


class RightsRecord(Record):
    """The actions that are allowed in a repository, if only with some packages, and their sources."""

    repository_id: RepositoryId
    repository: RepositoryPath
    actions: Annotated[list[str], meaning("The actions that are allowed.")]
    packages: Annotated[
        list[str], meaning("The patterns of names to which a token limits them; empty without such limits.")
    ]
    sources: Annotated[list[SourceRecord], meaning("Where the actions come from.")]
    denied: Annotated[str | None, meaning("Why nothing is allowed, where nothing is.")]


RIGHTS: Final[Mapping[str, Any]] = {
    "columns": "REPOSITORY: repository | ACTIONS: actions or 'none' | BECAUSE OF: :because",
    "nothing": "no repository can be seen",
}


@table.command(
    "user rights",
    about="List what you, or USERNAME, may do in each repository, and where it comes from.",
    **RIGHTS,
)
@table.get("/user/me/rights", ACCOUNT_HOLDERS, "List what the caller may do, by repository")
async def list_own_rights(call: Call) -> Page[RightsRecord]:
    """Those of the credentials: a token may allow less than its owner. Sorted by path."""
    return await _rights(call, call.identity, call.registry.listed())


@table.command("user rights USERNAME", **RIGHTS)
@table.get("/users/<id>/rights", USER_MANAGERS, "List what a user may do, by repository")
async def list_rights(call: Call, id: str) -> Page[RightsRecord]:
    """
    Sorted by path. An inactive user may do nothing.

    Callers who are no admins see repositories that they may see themselves, and those in which the user has a grant by
    name. Admins see those, too, in which a pattern refuses the user everything.
    """
    user = await find_user(call, id)
    every = call.registry.listed()
    authorizer = call.services.callers.authorizer
    refused: Sequence[Repository] = ()
    if is_full_admin(call.identity):
        standing = await authorizer.standing(identity_of(user, via="password"))
        refused = [each for each in every if standing.own.find(each) or standing.groups.find(each)]
    else:
        granted = {each.repository_id for each in await call.catalog.look(permissions_of_user, user.id)}
        seen = {each.id for each in await authorizer.visible(call.identity, every)}
        every = [each for each in every if each.id in granted | seen]
    return await _rights(call, identity_of(user, via="password"), every, refused)


async def _rights(
    call: Call, identity: Identity, every: Iterable[Repository], refused: Iterable[Repository] = ()
) -> Page[RightsRecord]:
    """
    The rights in repositories that are in lists for the identity, or in which its user has a grant by name.

    Hidden ones, too, in which a role in a project lets the user publish, and all that are ``refused``.
    """
    authorizer, user_id = call.services.callers.authorizer, identity.user_id
    grants = [] if user_id is None else await call.catalog.look(permissions_of_user, user_id)
    every = list(every)
    shown = {each.id for each in await authorizer.visible(identity, every)} | {each.id for each in refused}
    shown |= {each.repository_id for each in grants if each.repository_id is not None}
    hidden = [each for each in every if each.id not in shown]
    publishes = await authorizer.decide_each(identity, [(Action.WRITE, each, Extent.SOME) for each in hidden])
    shown |= {each.id for each, found in zip(hidden, publishes, strict=True) if found == BY_ROLE}
    found = [each for each in every if each.id in shown]
    page = call.page_request.page_of_all(found, lambda each: each.path, lambda each: each)
    questions: list[Question] = [(action, each, Extent.SOME) for each in page.items for action in Action]
    decisions = await authorizer.decide_each(identity, questions)
    rows = [decisions[at : at + len(Action)] for at in range(0, len(decisions), len(Action))]
    standing = await authorizer.standing(identity)
    by_role = [each for each, row in zip(page.items, rows, strict=True) if BY_ROLE in row]
    owned: list[Owned] = await call.catalog.look(read_owned, sorted(standing.roles), by_role)
    items = [
        _record(repository, row, packages_of(identity.limits, repository.path), standing, owned)
        for repository, row in zip(page.items, rows, strict=True)
    ]
    return Page(items=items, next=page.next, total=page.total)


def _record(
    repository: Repository,
    decisions: Sequence[Decision],
    packages: Sequence[str],
    standing: Standing,
    owned: Sequence[Owned],
) -> RightsRecord:
    allowed = [(action, each.reason) for action, each in zip(Action, decisions, strict=True) if each.allowed]
    sources: dict[str, list[Action]] = {}
    for action, reason in allowed:
        if reason != PROJECT_ROLE:
            sources.setdefault(reason.partition(" in this repository is for ")[0], []).append(action)
    found = [SourceRecord(source=name, actions=action_names(each)) for name, each in sources.items()]
    by_role = [action for action, reason in allowed if reason == PROJECT_ROLE]
    for each in owned if by_role else ():
        role = standing.roles[each.project.id]
        actions = [action for action in by_role if role_allows(role, action, repository)]
        if actions and each.repository is repository:
            source = f"the role {role} in project {each.project.key}"
            found.append(SourceRecord(source=source, actions=action_names(actions), packages=list(each.patterns)))
    return RightsRecord(
        repository_id=repository.uid,
        repository=repository.path,
        actions=action_names(action for action, _ in allowed),
        packages=list(packages),
        sources=found,
        denied=None if allowed else decisions[0].reason,
    )
