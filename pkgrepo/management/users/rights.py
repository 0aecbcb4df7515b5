"""What a user may do in each repository, and where it comes from, as the permission check decides it."""

from __future__ import annotations

from collections.abc import Iterable

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.permissions.rules import Decision
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, USER_MANAGERS, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.management.users.permissions import find_user
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.storage.catalog.people.grants import permissions_of_user

table = Table("users")


class SourceRecord(Record):
    """
    Where actions come from.

    source is admin, system manager, the user's grant, the grant of groups, project role (in the packages of the
    projects alone), default actions, visibility, or the publisher that a pipeline is.
    """

    source: str
    actions: list[str]


class RightsRecord(Record):
    """The actions that are allowed in a repository, and their sources; denied: why nothing is, where nothing is."""

    repository_id: str
    repository: str
    actions: list[str]
    sources: list[SourceRecord]
    denied: str | None


@table.get("/user/me/rights", ACCOUNT_HOLDERS, "List what the caller may do, by repository")
async def list_own_rights(call: Call) -> Page[RightsRecord]:
    """Those of the credentials: a token may allow less than its owner. Sorted by path."""
    return await _rights(call, call.identity, call.registry.listed())


@table.get("/users/<id>/rights", USER_MANAGERS, "List what a user may do, by repository")
async def list_rights(call: Call, id: str) -> Page[RightsRecord]:
    """
    Sorted by path. An inactive user may do nothing.

    Callers who are no admins see repositories that they may see themselves, and those in which the user has a grant.
    """
    user = await find_user(call, id)
    every = call.registry.listed()
    if not is_full_admin(call.identity):
        granted = {each.repository_id for each in await call.catalog.look(permissions_of_user, user.id)}
        seen = {each.id for each in await call.services.authorizer.visible(call.identity, every)}
        every = [each for each in every if each.id in granted | seen]
    return await _rights(call, identity_of(user, via="password"), every)


async def _rights(call: Call, identity: Identity, every: Iterable[Repository]) -> Page[RightsRecord]:
    """The rights in repositories that are in lists for the identity, or in which its user has a grant."""
    authorizer, user_id = call.services.authorizer, identity.user_id
    grants = [] if user_id is None else await call.catalog.look(permissions_of_user, user_id)
    granted = {each.repository_id for each in grants}
    every = list(every)
    shown = {each.id for each in await authorizer.visible(identity, every)} | granted
    found = [each for each in every if each.id in shown]
    page = call.page_request.page_of_all(found, lambda each: each.path, lambda each: each)
    questions = [(action, each, None) for each in page.items for action in Action]
    decisions = await authorizer.decide_each(identity, questions)
    rows = [decisions[at : at + len(Action)] for at in range(0, len(decisions), len(Action))]
    items = [_record(repository, row) for repository, row in zip(page.items, rows, strict=True)]
    return Page(items=items, next=page.next, total=page.total)


def _record(repository: Repository, decisions: Iterable[Decision]) -> RightsRecord:
    sources: dict[str, list[Action]] = {}
    denied = None
    for action, decision in zip(Action, decisions, strict=True):
        if decision.allowed:
            source = decision.reason.partition(" in this repository is for ")[0]
            sources.setdefault(source, []).append(action)
        elif denied is None:
            denied = decision.reason
    actions = [action for each in sources.values() for action in each]
    return RightsRecord(
        repository_id=repository.uid,
        repository=repository.path,
        actions=action_names(actions),
        sources=[SourceRecord(source=name, actions=action_names(each)) for name, each in sources.items()],
        denied=None if actions else denied,
    )
