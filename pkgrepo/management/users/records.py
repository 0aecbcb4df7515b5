"""Users as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.management.api.names import action_names
from pkgrepo.model import Grant, Repository, SubjectKind, User

from .schema import GrantRecord, Permissions, UserRecord


def user_record(user: User) -> UserRecord:
    """The record of a user."""
    return UserRecord(
        id=user.uid,
        username=user.username,
        name=user.name,
        email=user.email,
        active=user.active,
        kind=user.kind,
        admin=user.admin,
        user_manager=user.user_manager,
        system_manager=user.system_manager,
        default_repository_actions=(action_names(user.default_actions)),
        created_at=user.created_at,
        updated_at=user.updated_at,
        last_login_at=user.last_login_at,
    )


def permissions_record(user: User, grants: list[Grant], repositories: Mapping[int, Repository]) -> Permissions:
    """What a user was given; grants in repositories that are gone are left out."""
    return Permissions(
        admin=user.admin,
        user_manager=user.user_manager,
        system_manager=user.system_manager,
        default_repository_actions=(action_names(user.default_actions)),
        repositories=[
            GrantRecord(
                repository_id=repositories[grant.repository_id].uid,
                repository=repositories[grant.repository_id].path,
                actions=(action_names(grant.actions)),
                via="user" if grant.subject_kind is SubjectKind.USER else f"group {grant.subject_name}",
            )
            for grant in grants
            if grant.repository_id in repositories
        ],
    )
