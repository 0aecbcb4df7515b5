"""Checks which users a caller may change, and which rights the caller may give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import Forbidden, existing
from pkgrepo.interfaces import ICatalog
from pkgrepo.management.api.access_rules import is_full_admin
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, User
from pkgrepo.storage.catalog.people import users

FLAGS = ("admin", "user_manager", "system_manager")


async def find_user(catalog: ICatalog, id: str) -> User:
    """The user with this id or name. :raises NotFound: there is none"""
    return existing(await catalog.look(users.find_user_by_id, id), "user", id)


async def find_manageable(catalog: ICatalog, call: Call, id: str) -> User:
    """
    The user with this id or name, whom the caller may change.

    :raises NotFound: no user has this id; :raises Forbidden: only admins may change this user
    """
    user = await find_user(catalog, id)
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
    services: ManagementServices,
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
        every = services.shared.registry.listed()
        await services.authorizer.check_delegation(
            call.identity, user, every, grants=grants, default_actions=default_actions
        )


def audit_detail(changes: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the form that the audit log stores."""
    return {name: action_names(value) if isinstance(value, frozenset) else value for name, value in changes.items()}
