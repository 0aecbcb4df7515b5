"""Users, for those who manage them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from pkgrepo.auth.usernames import check_username
from pkgrepo.errors import Conflict, Forbidden, Invalid, NotFound
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Action, SubjectKind, User, UserKind
from pkgrepo.storage.catalog import grants, identity
from pkgrepo.storage.catalog.counts import count_users

from .actions import parse_actions, show_actions
from .call import Call
from .pages import Page
from .route import Created, Parameter, Table
from .schemas.users import (
    GrantSet,
    NameTaken,
    NewUser,
    PasswordSet,
    Permissions,
    PermissionsSet,
    StatusChange,
    UserChange,
    UserRecord,
)
from .services import ManagementServices
from .user_records import permissions_record, user_record
from .who import USER_MANAGERS, is_full_admin

FLAGS = ("admin", "user_manager", "system_manager")


class Users:
    """
    The users of the server.

    User managers manage everybody but admins and system managers, and raise nobody to a manager: else each of them
    could become admin by a detour. An admin's token that was made for users alone does not reach further.
    """

    table = Table("users")

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.catalog

    @table.route(
        "GET",
        "/users",
        who=USER_MANAGERS,
        summary="List users",
        answer=UserRecord,
        paged=True,
        query=[Parameter("q", "Only with this text in user name, name or email.")],
        aliases=[("GET", "/user-management/list")],
    )
    async def list_page(self, call: Call) -> Page[UserRecord]:
        """By user name."""
        wanted = call.wanted
        found = await self._catalog.scan(
            identity.list_users, after=wanted.after(""), limit=wanted.limit + 1, search=call.query("q")
        )
        total = await self._catalog.scan(count_users, call.query("q")) if wanted.count else None
        return wanted.page(found, lambda user: user.key, user_record, total)

    @table.route(
        "POST",
        "/users",
        who=USER_MANAGERS,
        summary="Add a user",
        body=NewUser,
        answer=UserRecord,
        status=201,
        audit="user.create",
        aliases=[("POST", "/user-management/create")],
    )
    async def create(self, call: Call, body: NewUser) -> Created:
        """A person or a service."""
        username = check_username(body.username)
        flags = {flag: getattr(body, flag) for flag in FLAGS}
        if any(flags.values()):
            _check_may_raise(call)
        if body.kind is UserKind.SERVICE and body.password is not None:
            raise Invalid("a service has tokens and no password", "/password")
        actions = parse_actions(body.default_repository_actions, "/default_repository_actions")
        hashed = await self._hash(body.password, username)
        user = await call.write(
            call.entry(username, {flag: True for flag, on in flags.items() if on}),
            identity.add_user,
            username=username,
            password_hash=hashed,
            name=body.name,
            email=body.email,
            kind=body.kind,
            active=body.active,
            default_actions=actions,
            now_ms=call.now_ms,
            **flags,
        )
        return Created(user_record(user), f"/api/users/{user.uid}")

    @table.route(
        "GET",
        "/users/<id>",
        who=USER_MANAGERS,
        summary="Show a user",
        answer=UserRecord,
        aliases=[("GET", "/user-management/get/<id>")],
    )
    async def get(self, _call: Call, id: str) -> UserRecord:
        """By id or user name."""
        return user_record(self._find(id))

    @table.route(
        "PATCH",
        "/users/<id>",
        who=USER_MANAGERS,
        summary="Change a user",
        body=UserChange,
        answer=UserRecord,
        audit="user.update",
        conditional=True,
        aliases=[("PUT", "/user-management/update/<id>")],
    )
    async def change(self, call: Call, body: UserChange, id: str) -> UserRecord:
        """Lowering somebody ends what was issued to them."""
        user = self._find_manageable(call, id)
        call.check_unchanged(user_record(user))
        changes: dict[str, Any] = {}
        if body.username is not UNSET:
            changes["username"] = check_username(body.username)
        for name in ("name", "email", "active", *FLAGS):
            if getattr(body, name) is not UNSET:
                changes[name] = getattr(body, name)
        if body.default_repository_actions is not UNSET:
            changes["default_actions"] = parse_actions(body.default_repository_actions, "/default_repository_actions")
        return user_record(await self._update(call, user, changes))

    @table.route(
        "DELETE",
        "/users/<id>",
        who=USER_MANAGERS,
        summary="Remove a user",
        status=204,
        audit="user.delete",
        conditional=True,
        aliases=[("DELETE", "/user-management/delete/<id>")],
    )
    async def delete(self, call: Call, id: str) -> None:
        """With tokens, grants and memberships; what they did keeps their name."""
        user = self._find_manageable(call, id)
        call.check_unchanged(user_record(user))
        if user.id == call.identity.user_id:
            raise Conflict("nobody removes their own account")
        await call.write(call.entry(user.username), identity.remove_user, user.id)

    @table.route(
        "GET",
        "/users/<id>/permissions",
        who=USER_MANAGERS,
        summary="Show what a user was given",
        answer=Permissions,
        aliases=[("GET", "/user-management/get/<id>/permissions")],
    )
    async def permissions(self, _call: Call, id: str) -> Permissions:
        """Flags, default actions, and grants in repositories."""
        return self._permissions(self._find(id))

    @table.route(
        "PUT",
        "/users/<id>/permissions",
        who=USER_MANAGERS,
        summary="Set what a user is given",
        body=PermissionsSet,
        answer=Permissions,
        audit="user.permissions",
        conditional=True,
        aliases=[("PUT", "/user-management/update/<id>/permissions")],
    )
    async def set_permissions(self, call: Call, body: PermissionsSet, id: str) -> Permissions:
        """The list of grants is taken as a whole."""
        user = self._find_manageable(call, id)
        call.check_unchanged(self._permissions(user))
        changes: dict[str, Any] = {flag: getattr(body, flag) for flag in FLAGS if getattr(body, flag) is not UNSET}
        if body.default_repository_actions is not UNSET:
            changes["default_actions"] = parse_actions(body.default_repository_actions, "/default_repository_actions")
        _check_flags(call, user, changes)
        wanted = None if body.repositories is UNSET else self._wanted(body.repositories)
        detail = _shown(changes)
        if wanted is not None:
            paths = {each.id: each.path for each in self._services.registry.all()}
            detail["repositories"] = {paths[key]: show_actions(actions) for key, actions in wanted.items()}
        entry = call.entry(user.username, detail)
        user = await call.write(entry, _set_permissions, user, wanted, changes, call.now_ms)
        return self._permissions(user)

    @table.route(
        "PUT",
        "/users/<id>/password",
        who=USER_MANAGERS,
        summary="Set somebody's password",
        body=PasswordSet,
        status=204,
        audit="user.password",
        aliases=[("PUT", "/user-management/update/<id>/password")],
    )
    async def set_password(self, call: Call, body: PasswordSet, id: str) -> None:
        """What was issued for the old one ends; access tokens live on."""
        user = self._find_manageable(call, id)
        if user.kind is UserKind.SERVICE and body.password is not None:
            raise Conflict(f"{user.username} is a service: it has tokens and no password")
        hashed = await self._hash(body.password, user.username)
        await call.write(call.entry(user.username), identity.set_password, user.id, hashed, now_ms=call.now_ms)

    @table.route(
        "PUT",
        "/users/<id>/status",
        who=USER_MANAGERS,
        summary="Switch a user on or off",
        body=StatusChange,
        answer=UserRecord,
        audit="user.status",
        aliases=[("PUT", "/user-management/update/<id>/status")],
    )
    async def set_status(self, call: Call, body: StatusChange, id: str) -> UserRecord:
        """Whoever is switched off can do nothing, with tokens neither."""
        user = self._find_manageable(call, id)
        if user.id == call.identity.user_id and not body.active:
            raise Conflict("nobody switches off their own account")
        return user_record(await self._update(call, user, {"active": body.active}))

    @table.route(
        "GET",
        "/user-management/is-taken",
        who=USER_MANAGERS,
        summary="Whether a user name is taken",
        answer=NameTaken,
        query=[Parameter("username", "The name.")],
    )
    async def is_taken(self, call: Call) -> NameTaken:
        """In whatever case."""
        username = call.query("username")
        return NameTaken(username=username, taken=self._catalog.look(identity.find_user_by_name, username) is not None)

    # Below

    def _find(self, id: str) -> User:
        user: User | None = self._catalog.look(identity.find_user_by_uid, id)
        user = user or self._catalog.look(identity.find_user_by_name, id)
        if user is None:
            raise NotFound("user", id)
        return user

    def _find_manageable(self, call: Call, id: str) -> User:
        user = self._find(id)
        if (user.admin or user.system_manager) and not is_full_admin(call.identity):
            raise Forbidden(f"only admins change {user.username!r}")
        call.object = user.username
        return user

    async def _hash(self, password: str | None, username: str) -> str:
        if password is None:
            return ""
        self._services.passwords.check(password, username=username)
        return await self._services.passwords.hash(password)

    async def _update(self, call: Call, user: User, changes: dict[str, Any]) -> User:
        _check_flags(call, user, changes)
        changes = {name: value for name, value in changes.items() if getattr(user, name) != value}
        if not changes:
            return user
        entry = call.entry(user.username, _shown(changes))
        return await call.write(entry, identity.update_user, user.id, now_ms=call.now_ms, **changes)

    def _permissions(self, user: User) -> Permissions:
        found = self._catalog.look(grants.permissions_of_user, user.id)
        return permissions_record(user, found, {each.id: each for each in self._services.registry.all()})

    def _wanted(self, given: list[GrantSet]) -> Mapping[int, frozenset[Action]]:
        wanted: dict[int, frozenset[Action]] = {}
        for index, each in enumerate(given):
            storage, slash, name = each.repository.partition("/")
            registry = self._services.registry
            repository = registry.find(storage, name) if slash else registry.find_uid(each.repository)
            if repository is None:
                raise Invalid(f"there is no repository {each.repository!r}", f"/repositories/{index}/repository")
            wanted[repository.id] = parse_actions(each.actions, f"/repositories/{index}/actions")
        return wanted


def _set_permissions(
    tx: Transaction,
    user: User,
    wanted: Mapping[int, frozenset[Action]] | None,
    changes: dict[str, Any],
    now_ms: int,
) -> User:
    if wanted is not None:
        for grant in grants.permissions_of_user(tx, user.id):
            if grant.subject_kind is SubjectKind.USER and grant.repository_id not in wanted:
                grants.set_permission(tx, grant.repository_id, SubjectKind.USER, user.id, None)
        for repository_id, actions in wanted.items():
            grants.set_permission(tx, repository_id, SubjectKind.USER, user.id, actions)
    return identity.update_user(tx, user.id, now_ms=now_ms, **changes)


def _check_flags(call: Call, user: User, changes: Mapping[str, Any]) -> None:
    if any(flag in changes and changes[flag] != getattr(user, flag) for flag in FLAGS):
        _check_may_raise(call)


def _check_may_raise(call: Call) -> None:
    if not is_full_admin(call.identity):
        raise Forbidden("only admins make or unmake admins, user managers and system managers")


def _shown(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: show_actions(value) if isinstance(value, frozenset) else value for name, value in changes.items()}
