"""The routes with which user managers manage groups: members, grants, and what a group owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pkgrepo.auth.permissions.grants import places_of
from pkgrepo.errors import Forbidden, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import USER_MANAGERS, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import find_subject
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Parameter, Table, sorting
from pkgrepo.management.users.permissions import PATTERNS, GrantChange, all_grants, one_grant, write_as
from pkgrepo.management.users.schema import (
    ActionSet,
    GroupChange,
    GroupGrants,
    GroupMemberRecord,
    GroupRecord,
    MemberNamed,
    NewGroup,
    RoleRecord,
    WholeGroupRecord,
    grant_records,
)
from pkgrepo.model import Grant, Group, Owner, SubjectKind
from pkgrepo.storage.catalog.people import groups, projects, users

MOST_CHECKED = 500  # members whose rights are compared in the transaction of a change, about 50 us each

table = Table("groups")
GRANTS: Mapping[str, Any] = {
    "columns": "REPOSITORY: repository | ACTIONS: actions or 'none'",
    "rows": "repositories",
    "nothing": "{name} has no grants",
}


@table.command(
    "group list",
    options="query -q: q",
    columns="GROUP: name | DESCRIPTION: description",
    nothing="there are no such groups",
)
@table.get(
    "/groups",
    USER_MANAGERS,
    "List groups",
    query=[
        Parameter("q", "Only groups whose name or description contains this text."),
        sorting(groups.GROUP_ORDERS, "name"),
    ],
)
async def list_groups(call: Call) -> Page[GroupRecord]:
    """The members of each are a list of their own."""
    return await call.page(
        groups.list_groups,
        search=call.query("q"),
        by=call.order(groups.GROUP_ORDERS, "name"),
        show=GroupRecord.of,
        count=(groups.count_groups, call.query("q")),
    )


@table.command("group create NAME", "added group {name}", options="description")
@table.post("/groups", USER_MANAGERS, "Add a group", audit="group.create")
async def create_group(call: Call, body: NewGroup) -> Created[WholeGroupRecord]:
    """It has no members and no grants yet. The answer is 409 if a group has this name, in any case."""
    group = await call.write(
        call.entry(body.name), groups.add_group, name=body.name, description=body.description, now_ms=call.now_ms
    )
    return Created(await _record(call, group), f"/api/groups/{group.name}")


@table.get("/groups/<name>", USER_MANAGERS, "Show a group")
async def show_group(call: Call, name: str) -> WholeGroupRecord:
    """With its grants, roles in projects and service accounts. The group is found by name or id."""
    return await _record(call, await _find(call, name))


@table.command("group edit NAME", "changed group {name}", options="rename: name, description")
@table.patch("/groups/<name>", USER_MANAGERS, "Change a group", audit="group.update", conditional=True)
async def change_group(call: Call, body: GroupChange, name: str) -> WholeGroupRecord:
    """
    Members and grants stay when it gets another name.

    Logins at a provider may add members to a group by its name. So callers who are no admins may give another name only
    to groups whose rights they hold themselves.
    """
    group = await _find(call, name)
    call.check_unchanged(await _record(call, group))
    changes = body.given("name", "description")
    if users.name_key(changes.get("name", group.name)) != group.key and not is_full_admin(call.identity):
        granted = places_of(await call.catalog.look(groups.grants_of_group, group.id))
        roles = await call.catalog.look(projects.roles_through_group, group.id)
        listed = call.registry.listed()
        await call.services.callers.authorizer.check_group_delegation(call.identity, listed, {}, granted, roles)
    group = await call.write(call.entry(group.name, changes), groups.update_group, group.id, **changes)
    return await _record(call, group)


@table.command(
    "group delete NAME", "removed group {name}", ask="Remove group {name} with its grants and roles? Its members stay."
)
@table.delete("/groups/<name>", USER_MANAGERS, "Remove a group", audit="group.delete", conditional=True)
async def delete_group(call: Call, name: str) -> None:
    """
    Also removes its grants and roles. The members stay. A group that owns service accounts is not removed (409).

    Who is no admin may not remove a group if a member would then have rights that the caller does not hold.
    """
    group = await _find(call, name)
    call.check_unchanged(await _record(call, group))
    await _change(call, {}, group, None, partial(groups.remove_group, group_id=group.id))


@table.get(
    "/groups/<name>/members",
    USER_MANAGERS,
    "List the members of a group",
    query=[
        Parameter("q", "Only members whose user name, name or email contains this text."),
        sorting(users.USER_ORDERS, "username"),
    ],
)
async def list_members(call: Call, name: str) -> Page[GroupMemberRecord]:
    """People and service accounts, also those that are not active."""
    group = await _find(call, name)
    return await call.page(
        users.list_users,
        search=call.query("q"),
        group_id=group.id,
        by=call.order(users.USER_ORDERS, "username"),
        show=GroupMemberRecord.of,
    )


@table.post("/groups/<name>/members", USER_MANAGERS, "Add a user to a group", audit="group.member")
async def add_member(call: Call, body: MemberNamed, name: str) -> WholeGroupRecord:
    """
    Takes effect at once. Adding a member again changes nothing.

    Callers who are no admins may add only users whose rights do not come to exceed those of the caller.
    """
    group = await _find(call, name)
    _, user_id, username = await find_subject(call.catalog, body.user, None)
    change = partial(groups.add_group_member, group_id=group.id, user_id=user_id)
    await _change(call, {"user": username, "member": True}, group, user_id, change)
    return await _record(call, group)


@table.delete("/groups/<name>/members", USER_MANAGERS, "Remove a user from a group", audit="group.member")
async def remove_member(call: Call, body: MemberNamed, name: str) -> None:
    """Takes effect at once. The answer is 404 if the user is no member."""
    group = await _find(call, name)
    _, user_id, username = await find_subject(call.catalog, body.user, None)
    detail = {"user": username, "member": False}
    change = partial(groups.remove_group_member, group_id=group.id, user_id=user_id)
    await _change(call, detail, group, user_id, change)


@table.put(
    "/groups/<name>/permissions",
    USER_MANAGERS,
    "Replace the grants of a group",
    audit="group.permissions",
    conditional=True,
)
async def set_permissions(call: Call, body: GroupGrants, name: str) -> WholeGroupRecord:
    """
    A user's own grant in a repository comes before those of groups; of several groups the actions add up.

    Callers who are no admins may give only rights that they hold themselves, and only to groups of at most 500 members.
    """
    group = await _find(call, name)
    call.check_unchanged(await _record(call, group))
    present = await call.catalog.look(groups.grants_of_group, group.id)
    granted = await all_grants(call, SubjectKind.GROUP, group.id, present, body.repositories)
    return await _set_grants(call, group, present, granted)


@table.command(
    "group grant NAME STORAGE/REPOSITORY ACTIONS...",
    more='ACTIONS are read, write, overwrite, delete, edit, admin; "none" denies everything. '
    f"The actions of several groups add up, and a grant of the user comes before them. {PATTERNS}",
    **GRANTS,
)
@table.put(
    "/groups/<name>/permissions/<place>",
    USER_MANAGERS,
    "Replace the grant of a group in a repository",
    audit="group.permissions",
)
async def set_grant(call: Call, body: ActionSet, name: str, place: str) -> WholeGroupRecord:
    """The repository is named by its id, or as storage%2Fname, or many by a pattern. Other grants do not change."""
    return await _set_grant(call, name, place, body.actions)


@table.command("group revoke NAME STORAGE/REPOSITORY", **GRANTS)
@table.delete(
    "/groups/<name>/permissions/<place>",
    USER_MANAGERS,
    "Remove the grant of a group in a repository",
    audit="group.permissions",
)
async def remove_grant(call: Call, name: str, place: str) -> WholeGroupRecord:
    """What else is granted to the members decides from then on."""
    return await _set_grant(call, name, place, None)


async def _set_grant(call: Call, name: str, place: str, actions: list[str] | None) -> WholeGroupRecord:
    group = await _find(call, name)
    present = await call.catalog.look(groups.grants_of_group, group.id)
    granted = await one_grant(call, SubjectKind.GROUP, group.id, present, place, actions)
    return await _set_grants(call, group, present, granted)


async def _set_grants(call: Call, group: Group, present: list[Grant], granted: GrantChange) -> WholeGroupRecord:
    if not is_full_admin(call.identity):  # who joins later would get them too, whatever the members have now
        listed = call.registry.listed()
        await call.services.callers.authorizer.check_group_delegation(
            call.identity, listed, places_of(present), granted.wanted
        )
    await _change(call, {"repositories": granted.detail}, group, None, granted.command)
    return await _record(call, group)


async def _find(call: Call, name: str) -> Group:
    group: Group = existing(await call.catalog.look(groups.find_group, name), "group", name)
    call.object = group.name
    return group


def _members(group_id: int, tx: Transaction) -> list[int]:
    """The members whose rights are compared. :raises Forbidden: there are too many"""
    found = groups.member_ids(tx, group_id, limit=MOST_CHECKED + 1)
    if len(found) > MOST_CHECKED:
        raise Forbidden(f"only admins change what a group of more than {MOST_CHECKED} members may do")
    return found


async def _change(
    call: Call,
    detail: Mapping[str, object],
    group: Group,
    user_id: int | None,
    command: Callable[[Transaction], object],
) -> None:
    """Run a command that changes the rights of a user (None: of all members), with the audit row of the group."""
    changed = partial(_members, group.id) if user_id is None else lambda _: [user_id]
    await write_as(call, call.entry(group.name, detail), changed, command)


async def _record(call: Call, group: Group) -> WholeGroupRecord:
    roles = await call.catalog.look(projects.roles_of_group, group.id)
    owned = await call.catalog.look(users.owned_by, Owner(SubjectKind.GROUP, group.id))
    return WholeGroupRecord.from_attributes(
        group,
        id=group.uid,
        member_count=await call.catalog.look(groups.count_members, group.id),
        repositories=grant_records(await call.catalog.look(groups.grants_of_group, group.id), call.registry.listed()),
        projects=[RoleRecord(project=key, role=role) for key, role in roles.items()],
        services=[each.username for each in owned],
    )
