"""The routes with which user managers manage users."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import UNSET

from pkgrepo.auth.login.identities import check_username
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS, USER_MANAGERS, check_no_bearer, is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import find_subject, parse_actions
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Parameter, Table, sorting
from pkgrepo.management.quotas import SET, SHOW, QuotaGiven, QuotaRecord, change_quota, quota_record
from pkgrepo.management.users.permissions import (
    FLAGS,
    audit_detail,
    check_flags,
    check_may_grant,
    check_may_set_flags,
    find_manageable,
    find_user,
    write_as,
)
from pkgrepo.model import Owner, SubjectKind, User, UserKind
from pkgrepo.storage.catalog.people import logins, users
from pkgrepo.storage.catalog.server.quotas import QuotaKind

from .links import check_logs_in_here
from .schema import NameTaken, NewUser, OwnerGiven, PasswordSet, StatusChange, UserChange, UserRecord

MOST_DAYS: Final = 36_500
DAY_MS: Final = 86_400_000

table = Table("users")


@table.command(
    "user list",
    options="query -q: q, inactive-days",
    columns="USER: username | NAME: name | KIND: kind | IS: admin+user_manager+system_manager | "
    "DEFAULT ACTIONS: default_repository_actions | LAST LOGIN: last_login_at:ago | "
    "STATE: active:active/off",
    nothing="there are no such users",
)
@table.get(
    "/users",
    USER_MANAGERS,
    "List users",
    query=[
        Parameter("q", "Only users whose user name, name or email contains this text."),
        Parameter("kind", "Only users of this kind: person or service."),
        Parameter("inactive_days", "Only people who have not logged in for so many days.", "integer"),
        sorting(users.USER_ORDERS, "username"),
    ],
    aliases=[("GET", "/user-management/list")],
)
async def list_users(call: Call) -> Page[UserRecord]:
    """
    Who never logged in has the earliest last login.

    Logins are those with a password or at a provider; the use of a token is none.
    """
    kind = _kind(call.query("kind"))
    days = call.integer("inactive_days", 0, 0, MOST_DAYS)
    since_ms = call.now_ms - days * DAY_MS if days else None
    if days:
        kind = kind or UserKind.PERSON  # a service never logs in
    return await call.page(
        users.list_users,
        search=call.query("q"),
        kind=kind,
        absent_since_ms=since_ms,
        by=call.order(users.USER_ORDERS, "username"),
        show=UserRecord.of,
        count=(users.count_users, call.query("q"), kind, since_ms),
    )


@table.post("/users", USER_MANAGERS, "Add a user", audit="user.create", aliases=[("POST", "/user-management/create")])
async def create_user(call: Call, body: NewUser) -> Created[UserRecord]:
    """
    Only admins may set flags. Other callers may give only default actions that they hold themselves.

    The kind service makes a service account, whose owner may be a group, so that it outlives people.
    """
    username = check_username(body.username)
    flags = {flag: getattr(body, flag) for flag in FLAGS}
    if any(flags.values()):
        check_may_set_flags(call)
    if body.kind is UserKind.SERVICE and body.password is not None:
        raise Invalid("a service has tokens and no password", "/password")
    actions = parse_actions(body.default_repository_actions, "/default_repository_actions")
    await check_may_grant(call, None, default_actions=actions)
    owner = await _owner(call, body.owner, body.kind)
    hashed = await _hash(call, body.password, username)
    detail: dict[str, Any] = {flag: True for flag, on in flags.items() if on}
    user = await call.write(
        call.entry(username, detail if owner is None else {**detail, "owner": owner.name}),
        users.add_user,
        username=username,
        password_hash=hashed,
        name=body.name,
        email=body.email,
        kind=body.kind,
        active=body.active,
        default_actions=actions,
        owner=owner,
        now_ms=call.now_ms,
        **flags,
    )
    return Created(UserRecord.of(user), f"/api/users/{user.uid}")


@table.get("/users/<id>", USER_MANAGERS, "Show a user", aliases=[("GET", "/user-management/get/<id>")])
async def show_user(call: Call, id: str) -> UserRecord:
    """The user is found by id or user name."""
    return UserRecord.of(await find_user(call, id))


@table.command(
    "user edit USERNAME",
    "changed user {username}",
    options="rename: username, name, email, active/inactive, default-action: default_repository_actions, "
    "owner: owner.user, owner-group: owner.group, admin/no-admin, user-manager/no-user-manager, "
    "system-manager/no-system-manager",
)
@table.patch(
    "/users/<id>",
    USER_MANAGERS,
    "Change a user",
    audit="user.update",
    conditional=True,
    aliases=[("PUT", "/user-management/update/<id>")],
)
async def change_user(call: Call, body: UserChange, id: str) -> UserRecord:
    """
    Only admins may change flags, or change admins and system managers.

    A change of active or of a flag revokes the bearer tokens of the user. One active admin must remain (409).
    """
    user = await find_manageable(call, id)
    call.check_unchanged(UserRecord.of(user))
    changes = body.given("username", "name", "email", "active", *FLAGS)
    if changes.get("username", user.username) != user.username:
        changes["username"] = check_username(changes["username"])
    if body.default_repository_actions is not UNSET:
        changes["default_actions"] = parse_actions(body.default_repository_actions, "/default_repository_actions")
    if body.owner is not UNSET:
        changes["owner"] = await _owner(call, body.owner, user.kind)
    return UserRecord.of(await _update(call, user, changes))


@table.command("quota show user:NAME", **SHOW)
@table.get("/users/<id>/quota", USER_MANAGERS, "Show the quota of a user")
async def show_quota(call: Call, id: str) -> QuotaRecord:
    """
    With what the user, or service account, has published and what stands, in all hosted repositories.

    Files count for the one who published their version first, layers for the one who added them to the image first;
    what is in the trash does not count.
    """
    user = await find_user(call, id)
    return await quota_record(call, QuotaKind.USER, user.id, user.username)


@table.command("quota set user:NAME", **SET)
@table.patch("/users/<id>/quota", SYSTEM_MANAGERS, "Change the quota of a user", audit="quota.update")
async def change_user_quota(call: Call, body: QuotaGiven, id: str) -> QuotaRecord:
    """A limit below what is used refuses what adds to it, and removes nothing."""
    user = await find_user(call, id)
    return await change_quota(call, QuotaKind.USER, user.id, user.username, body)


@table.command(
    "user delete USERNAME", "removed user {username}", ask="Remove user {username} with all tokens and grants?"
)
@table.delete(
    "/users/<id>",
    USER_MANAGERS,
    "Remove a user",
    audit="user.delete",
    conditional=True,
    aliases=[("DELETE", "/user-management/delete/<id>")],
)
async def delete_user(call: Call, id: str) -> None:
    """
    Also removes the tokens, grants and memberships of the user. Events and audit rows keep the user name.

    Only admins may remove admins and system managers. The caller, the last active admin and the owner of a service
    account cannot be removed (409).
    """
    user = await find_manageable(call, id)
    call.check_unchanged(UserRecord.of(user))
    if user.id == call.identity.user_id:
        raise Conflict("nobody removes their own account")
    await call.write(call.entry(user.username), users.remove_user, user.id)


@table.put(
    "/users/<id>/password",
    USER_MANAGERS,
    "Set the password of a user",
    audit="user.password",
    aliases=[("PUT", "/user-management/update/<id>/password")],
)
async def set_password(call: Call, body: PasswordSet, id: str) -> None:
    """
    A null password removes it. Bearer tokens and login tokens are revoked, other access tokens stay valid.

    Only admins may do this for admins and system managers, and give a first password to people who log in at a provider
    (409): with it they log in also when the provider knows them no more. Bearer tokens are refused (403).
    """
    check_no_bearer(call.identity)
    user = await find_manageable(call, id)
    if user.kind is UserKind.SERVICE and body.password is not None:
        raise Conflict(f"{user.username} is a service: it has tokens and no password")
    if body.password is not None and not is_full_admin(call.identity):
        await check_logs_in_here(call, user)
    hashed = await _hash(call, body.password, user.username)
    await call.write(call.entry(user.username), users.set_password, user.id, hashed, now_ms=call.now_ms)


@table.put(
    "/users/<id>/status",
    USER_MANAGERS,
    "Activate or deactivate a user",
    audit="user.status",
    aliases=[("PUT", "/user-management/update/<id>/status")],
)
async def set_status(call: Call, body: StatusChange, id: str) -> UserRecord:
    """An inactive user cannot log in, and the user's tokens are refused. The caller cannot be deactivated (409)."""
    user = await find_manageable(call, id)
    if user.id == call.identity.user_id and not body.active:
        raise Conflict("nobody switches off their own account")
    return UserRecord.of(await _update(call, user, {"active": body.active}))


@table.command(
    "user unlock USERNAME",
    "logins of {username} are not blocked any more",
    more="It ends the delay after too many wrong passwords.",
)
@table.post("/users/<id>/unlock", USER_MANAGERS, "Unblock the logins of a user", audit="user.unlock")
async def unlock_user(call: Call, id: str) -> None:
    """Ends the delay after too many wrong passwords. For blocked addresses use the command pkgrepo admin unlock."""
    user = await find_manageable(call, id)
    await call.write(call.entry(user.username), logins.add_unlock, username=user.username, now_ms=call.now_ms)


@table.get(
    "/user-management/is-taken",
    USER_MANAGERS,
    "Check whether a user name is taken",
    query=[Parameter("username", "The user name to check.")],
)
async def check_name(call: Call) -> NameTaken:
    """The comparison ignores case."""
    username = call.query("username")
    return NameTaken(username=username, taken=await call.catalog.look(users.find_user_by_name, username) is not None)


def _kind(text: str) -> UserKind | None:
    if text and text not in list(UserKind):
        raise Invalid("kind is person or service", "kind")
    return UserKind(text) if text else None


async def _owner(call: Call, given: OwnerGiven | None, kind: UserKind) -> Owner | None:
    """The owner that a request names. :raises Invalid: there is none, or it is that of a person"""
    if given is None:
        return None
    if kind is not UserKind.SERVICE:
        raise Invalid("only a service account has an owner", "/owner")
    subject, subject_id, name = await find_subject(call.catalog, given.user, given.group, "/owner/")
    if subject is SubjectKind.USER and (await call.catalog.look(users.get_user, subject_id)).kind is UserKind.SERVICE:
        raise Invalid("a service account belongs to a person or to a group", "/owner/user")
    return Owner(subject, subject_id, name=name)


async def _hash(call: Call, password: str | None, username: str) -> str:
    if password is None:
        return ""
    call.services.callers.passwords.check(password, username=username)
    return await call.services.callers.passwords.hash(password)


async def _update(call: Call, user: User, changes: dict[str, Any]) -> User:
    check_flags(call, user, changes)
    await check_may_grant(call, user, default_actions=changes.get("default_actions"))
    changes = {name: value for name, value in changes.items() if getattr(user, name) != value}
    if not changes:
        return user
    entry = call.entry(user.username, audit_detail(changes))
    command = partial(users.update_user, user_id=user.id, now_ms=call.now_ms, **changes)
    return await write_as(call, entry, lambda _: [user.id], command)
