"""The permissions of users: flags, default actions and grants, and who may change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from pkgrepo.errors import Forbidden, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.access_rules import USER_MANAGERS, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import action_names, get_repository, parse_actions
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.users.schema import ActionSet, GrantSet, Permissions, PermissionsSet, UserPermissionsRecord
from pkgrepo.model import Action, Grant, Owner, Repository, SubjectKind, User
from pkgrepo.storage.catalog.people import users

FLAGS = ("admin", "user_manager", "system_manager")

table = Table("users")


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
    grants: Mapping[int, frozenset[Action]] | None = None,
    default_actions: frozenset[Action] | None = None,
) -> None:
    """
    Check new grants and default actions of a user (None: a new user); None means that they do not change.

    :raises Forbidden: the caller is no admin, and does not hold a right that this adds
    """
    if not is_full_admin(call.identity):
        await call.services.authorizer.check_delegation(
            call.identity, user, call.registry.listed(), grants=grants, default_actions=default_actions
        )


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
    The list of repositories replaces all grants of the user; fields that are absent do not change.

    Only admins may change flags, or change admins and system managers. Other callers may give only rights that they
    hold themselves.
    """
    user = await find_manageable(call, id)
    call.check_unchanged(await _permissions(call, user))
    changes = body.given(*FLAGS)
    if body.default_repository_actions is not UNSET:
        changes["default_actions"] = parse_actions(body.default_repository_actions, "/default_repository_actions")
    check_flags(call, user, changes)
    wanted = None if body.repositories is UNSET else await _wanted(call, user, body.repositories)
    await check_may_grant(call, user, grants=wanted, default_actions=changes.get("default_actions"))
    detail = audit_detail(changes)
    if wanted is not None:
        paths = {each.id: each.path for each in call.registry.listed()}
        detail["repositories"] = {paths[key]: action_names(actions) for key, actions in wanted.items()}
    entry = call.entry(user.username, detail)
    user = await call.write(entry, _set_permissions, user, wanted, changes, call.now_ms)
    return await _permissions(call, user)


@table.put(
    "/users/<id>/permissions/<place>",
    USER_MANAGERS,
    "Replace the grant of a user in a repository",
    audit="user.permissions",
)
async def set_grant(call: Call, body: ActionSet, id: str, place: str) -> Permissions:
    """
    The repository is named by its id, or as storage%2Fname. An empty list denies all actions.

    Other grants do not change. Callers who are no admins may give only rights that they hold themselves.
    """
    return await _set_grant(call, id, GrantSet(repository=place, actions=body.actions))


@table.delete(
    "/users/<id>/permissions/<place>",
    USER_MANAGERS,
    "Remove the grant of a user in a repository",
    audit="user.permissions",
)
async def remove_grant(call: Call, id: str, place: str) -> Permissions:
    """Grants of groups, project roles and the default actions decide from then on."""
    return await _set_grant(call, id, GrantSet(repository=place, actions=[]), remove=True)


async def _set_grant(call: Call, id: str, given: GrantSet, *, remove: bool = False) -> Permissions:
    user = await find_manageable(call, id)
    [(repository_id, actions)] = (await _wanted(call, user, [given])).items()
    wanted = {
        each.repository_id: each.actions
        for each in await call.catalog.look(users.permissions_of_user, user.id)
        if each.subject_kind is SubjectKind.USER and each.repository_id != repository_id
    }
    await check_may_grant(call, user, grants=wanted if remove else {**wanted, repository_id: actions})
    path = {each.id: each.path for each in call.registry.listed()}[repository_id]
    entry = call.entry(user.username, {"repositories": {path: None if remove else action_names(actions)}})
    await call.write(entry, users.set_permission, repository_id, SubjectKind.USER, user.id, None if remove else actions)
    return await _permissions(call, user)


async def _permissions(call: Call, user: User) -> Permissions:
    found = await call.catalog.look(users.permissions_of_user, user.id)
    return Permissions.of(user, found, call.registry.listed())


async def _wanted(call: Call, user: User, given: list[GrantSet]) -> Mapping[int, frozenset[Action]]:
    return await wanted_grants(call, await call.catalog.look(users.permissions_of_user, user.id), given)


async def wanted_grants(call: Call, present: list[Grant], given: list[GrantSet]) -> Mapping[int, frozenset[Action]]:
    """
    The actions of the ``given`` grants by the catalog key of the repository; ``present`` are those of before.

    :raises Invalid: a repository or an action does not exist, as far as the caller may know
    """
    wanted: dict[int, frozenset[Action]] = {}
    granted = {each.repository_id for each in present}

    async def knows(repository: Repository) -> bool:
        return repository.id in granted or is_full_admin(call.identity) or await call.knows(repository)

    for index, each in enumerate(given):
        pointer = f"/repositories/{index}/repository"
        repository = await get_repository(call.registry, each.repository, pointer, knows)
        wanted[repository.id] = parse_actions(each.actions, f"/repositories/{index}/actions")
    return wanted


def _users_with_grants(r: Reader, *, after: str, limit: int, search: str) -> list[tuple[User, list[Grant]]]:
    found = users.list_users(r, after=(after,) if after else (), limit=limit, search=search)
    return [(user, users.permissions_of_user(r, user.id)) for user in found]


def _set_permissions(
    tx: Transaction,
    user: User,
    wanted: Mapping[int, frozenset[Action]] | None,
    changes: dict[str, Any],
    now_ms: int,
) -> User:
    if wanted is not None:
        users.replace_grants(tx, SubjectKind.USER, user.id, wanted)
    return users.update_user(tx, user.id, now_ms=now_ms, **changes)
