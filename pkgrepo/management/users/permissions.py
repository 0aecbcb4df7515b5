"""The permissions of users: flags, default actions and grants, and who may change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import frozen
from msgspec import UNSET

from pkgrepo.auth.patterns import check_repositories, is_pattern
from pkgrepo.auth.permissions.delegation import change_as
from pkgrepo.auth.permissions.grants import Places, places_of
from pkgrepo.auth.permissions.ownership import read_owned
from pkgrepo.errors import Forbidden, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.access_rules import USER_MANAGERS, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import action_names, get_repository, parse_actions
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.users.schema import (
    ActionSet,
    GrantSet,
    Permissions,
    PermissionsSet,
    ProjectRoleRecord,
    UserPermissionsRecord,
)
from pkgrepo.model import Action, Grant, Owner, Repository, SubjectKind, User
from pkgrepo.storage.catalog.people import users
from pkgrepo.storage.catalog.people.grants import permissions_of_user, replace_grants, set_permission
from pkgrepo.storage.catalog.people.projects import roles_of_user
from pkgrepo.storage.catalog.server.audit import Entry

T = TypeVar("T")
PATTERNS = (
    'A pattern such as "main/*" is for all repositories with such a name, also those that are made later; the most '
    "exact grant decides."
)
FLAGS = ("admin", "user_manager", "system_manager")

table = Table("users")
GRANTS: Mapping[str, Any] = {
    "columns": "REPOSITORY: repository | ACTIONS: actions or 'none' | BY: via",
    "rows": "repositories",
    "nothing": "{username} has no grants",
}


async def find_user(call: Call, id: str) -> User:
    """The user with this id or name. :raises NotFound: it does not exist"""
    return existing(await call.catalog.look(users.find_user_by_id, id), "user", id)


async def find_manageable(call: Call, id: str) -> User:
    """
    The user with this id or name, whom the caller may change.

    :raises NotFound: no user has this id; :raises Forbidden: only admins may change this user
    """
    user = await find_user(call, id)
    if (user.admin or user.system_manager) and not is_full_admin(call.identity):
        raise Forbidden(f"only admins change {user.username!r}")
    call.object = user.username
    return user


def check_flags(call: Call, user: User, changes: Mapping[str, Any]) -> None:
    """Check a change of a user's flags. :raises Forbidden: a flag changes, and the caller is no admin"""
    if any(flag in changes and changes[flag] != getattr(user, flag) for flag in FLAGS):
        check_may_set_flags(call)


def check_may_set_flags(call: Call) -> None:
    """Check that the caller may set flags. :raises Forbidden: the caller is no admin"""
    if not is_full_admin(call.identity):
        raise Forbidden("only admins make or unmake admins, user managers and system managers")


async def check_may_grant(
    call: Call,
    user: User | None,
    *,
    grants: Places | None = None,
    default_actions: frozenset[Action] | None = None,
) -> None:
    """
    Check new grants and default actions of a user (None: a new user); None means that they do not change.

    :raises Forbidden: the caller is no admin, and does not hold a right that this adds
    """
    if not is_full_admin(call.identity):
        await call.services.callers.authorizer.check_delegation(
            call.identity, user, call.registry.listed(), grants=grants, default_actions=default_actions
        )


async def write_as(
    call: Call,
    entry: Entry,
    changed: Callable[[Transaction], Sequence[int]],
    command: Callable[[Transaction], T],
) -> T:
    """
    Run a command that changes the rights of the users whom ``changed`` finds, with a row of the audit log.

    What the caller holds is looked up in the same transaction: it may be less than it was a moment before.

    :raises Forbidden: the caller is no admin, and a user would gain a right that the caller does not hold
    """
    written: T = await (
        call.write(entry, command)
        if is_full_admin(call.identity)
        else call.write(entry, change_as, call.identity, changed, call.registry.listed(), command)
    )
    return written


def audit_detail(changes: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the form that the audit log stores."""
    return {name: _audited(value) for name, value in changes.items()}


def _audited(value: Any) -> Any:
    if isinstance(value, Owner):
        return value.name
    return action_names(value) if isinstance(value, frozenset) else value


@table.get(
    "/permissions",
    USER_MANAGERS,
    "List users with their permissions",
    query=[Parameter("q", "Only users whose user name, name or email contains this text.")],
)
async def list_permissions(call: Call) -> Page[UserPermissionsRecord]:
    """Sorted by user name."""
    listed = call.registry.listed()
    return await call.page(
        _users_with_grants,
        listed,
        search=call.query("q"),
        by=lambda each: each[0].key,
        show=lambda each: UserPermissionsRecord.with_user(*each, listed),
    )


@table.get(
    "/users/<id>/permissions",
    USER_MANAGERS,
    "Show the permissions of a user",
    aliases=[("GET", "/user-management/get/<id>/permissions")],
)
async def show_permissions(call: Call, id: str) -> Permissions:
    """Flags, default actions, and grants in repositories, including those of groups."""
    return await _permissions(call, await find_user(call, id))


@table.put(
    "/users/<id>/permissions",
    USER_MANAGERS,
    "Replace the permissions of a user",
    audit="user.permissions",
    conditional=True,
    aliases=[("PUT", "/user-management/update/<id>/permissions")],
)
async def set_permissions(call: Call, body: PermissionsSet, id: str) -> Permissions:
    """
    The list of repositories replaces all grants of the user; fields that are absent do not change. A pattern stands for
    all repositories that it matches, also those that are made later.

    Only admins may change flags, or change admins and system managers. Other callers may give only rights that they
    hold themselves.
    """
    user = await find_manageable(call, id)
    call.check_unchanged(await _permissions(call, user))
    changes = body.given(*FLAGS)
    if body.default_repository_actions is not UNSET:
        changes["default_actions"] = parse_actions(body.default_repository_actions, "/default_repository_actions")
    check_flags(call, user, changes)
    granted, detail = None, audit_detail(changes)
    if body.repositories is not UNSET:
        present = await call.catalog.look(permissions_of_user, user.id)
        granted = await all_grants(call, SubjectKind.USER, user.id, present, body.repositories)
        detail["repositories"] = granted.detail
    grants = None if granted is None else granted.wanted
    await check_may_grant(call, user, grants=grants, default_actions=changes.get("default_actions"))
    command = partial(_set_permissions, user=user, granted=granted, changes=changes, now_ms=call.now_ms)
    user = await write_as(call, call.entry(user.username, detail), lambda _: [user.id], command)
    return await _permissions(call, user)


@table.command(
    "user grant USERNAME STORAGE/REPOSITORY ACTIONS...",
    more="It comes before the default actions. "
    f'ACTIONS are read, write, overwrite, delete, edit, admin; "none" denies everything. {PATTERNS}',
    **GRANTS,
)
@table.put(
    "/users/<id>/permissions/<place>",
    USER_MANAGERS,
    "Replace the grant of a user in a repository",
    audit="user.permissions",
)
async def set_grant(call: Call, body: ActionSet, id: str, place: str) -> Permissions:
    """
    The repository is named by its id, or as storage%2Fname, or many by a pattern. An empty list denies all actions.

    Other grants do not change. Callers who are no admins may give only rights that they hold themselves.
    """
    return await _set_grant(call, id, place, body.actions)


@table.command("user revoke USERNAME STORAGE/REPOSITORY", more="The default actions apply there again.", **GRANTS)
@table.delete(
    "/users/<id>/permissions/<place>",
    USER_MANAGERS,
    "Remove the grant of a user in a repository",
    audit="user.permissions",
)
async def remove_grant(call: Call, id: str, place: str) -> Permissions:
    """Grants of groups, project roles and the default actions decide from then on."""
    return await _set_grant(call, id, place, None)


async def _set_grant(call: Call, id: str, place: str, actions: list[str] | None) -> Permissions:
    user = await find_manageable(call, id)
    present = await call.catalog.look(permissions_of_user, user.id)
    granted = await one_grant(call, SubjectKind.USER, user.id, present, place, actions)
    await check_may_grant(call, user, grants=granted.wanted)
    entry = call.entry(user.username, {"repositories": granted.detail})
    await write_as(call, entry, lambda _: [user.id], granted.command)
    return await _permissions(call, user)


async def _permissions(call: Call, user: User) -> Permissions:
    found = await call.catalog.look(permissions_of_user, user.id)
    return Permissions.of(user, found, call.registry.listed())


@frozen
class GrantChange:
    """
    A change of the grants of a user or a group.

    ``wanted`` are all grants after it, by place; ``detail`` is what the audit log stores, by the path of the repository
    or the pattern, with None for a grant that is removed. ``command`` makes the change.
    """

    wanted: Places
    detail: Mapping[str, list[str] | None]
    command: Callable[[Transaction], object]


async def all_grants(
    call: Call, kind: SubjectKind, subject_id: int, present: Sequence[Grant], given: Sequence[GrantSet]
) -> GrantChange:
    """
    The change that replaces all grants of a subject by the ``given`` ones; ``present`` are those that apply to it.

    :raises Invalid: a repository or an action does not exist, as far as the caller may know, or a pattern is wrong
    """
    wanted = await _wanted(call, present, given)
    detail = {_name(call, place): action_names(actions) for place, actions in wanted.items()}
    command = partial(replace_grants, kind=kind, subject_id=subject_id, wanted=wanted)
    return GrantChange(wanted, detail, command)


async def one_grant(
    call: Call, kind: SubjectKind, subject_id: int, present: Sequence[Grant], place: str, actions: list[str] | None
) -> GrantChange:
    """
    The change that replaces the grant of a subject for a repository or a pattern, or removes it (None).

    :raises Invalid: the repository or an action does not exist, as far as the caller may know, or the pattern is wrong
    """
    given = await _wanted(call, present, [GrantSet(repository=place, actions=actions or [])])
    ((key, parsed),) = given.items()
    new = None if actions is None else parsed
    own = places_of(each for each in present if each.subject_kind is kind)
    wanted = {each: value for each, value in {**own, key: new}.items() if value is not None}
    command = partial(set_permission, place=key, kind=kind, subject_id=subject_id, actions=new)
    return GrantChange(wanted, {_name(call, key): None if new is None else action_names(new)}, command)


def _name(call: Call, place: int | str) -> str:
    """The path of a repository, or the pattern."""
    if isinstance(place, str):
        return place
    return next(each.path for each in call.registry.listed() if each.id == place)


async def _wanted(call: Call, present: Sequence[Grant], given: Sequence[GrantSet]) -> Places:
    wanted: dict[int | str, frozenset[Action]] = {}
    granted = {each.repository_id for each in present}

    async def knows(repository: Repository) -> bool:
        return repository.id in granted or is_full_admin(call.identity) or await call.knows(repository)

    for index, each in enumerate(given):
        pointer = f"/repositories/{index}/repository"
        place: int | str
        if is_pattern(each.repository):
            place = check_repositories(each.repository, pointer)
        else:
            place = (await get_repository(call.registry, each.repository, pointer, knows)).id
        wanted[place] = parse_actions(each.actions, f"/repositories/{index}/actions")
    return wanted


def _users_with_grants(
    r: Reader, listed: Sequence[Repository], *, after: str, limit: int, search: str
) -> list[tuple[User, list[Grant], list[ProjectRoleRecord]]]:
    found = users.list_users(r, after=(after,) if after else (), limit=limit, search=search)
    return [(user, permissions_of_user(r, user.id), _roles(r, user, listed)) for user in found]


def _roles(r: Reader, user: User, listed: Sequence[Repository]) -> list[ProjectRoleRecord]:
    roles = roles_of_user(r, user.id)
    records = [ProjectRoleRecord.of(each, roles[each.project.id]) for each in read_owned(r, sorted(roles), listed)]
    return [each for each in records if each.actions]


def _set_permissions(
    tx: Transaction,
    user: User,
    granted: GrantChange | None,
    changes: dict[str, Any],
    now_ms: int,
) -> User:
    if granted is not None:
        granted.command(tx)
    return users.update_user(tx, user.id, now_ms=now_ms, **changes)
