"""Users, their permissions, and one's own account."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.schema import END, Body, Line, Record, Word
from pkgrepo.model import Grant, Repository, SubjectKind, User, UserKind

Email = Annotated[str, Meta(max_length=254, pattern=r"^([^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+)?" + END)]
Password = Annotated[str, Meta(min_length=1, max_length=1024)]


class NewUser(Body):
    """
    A user to be; a person without a password cannot log in until one is set, a service never has one.

    Only admins make admins, user managers and system managers.
    """

    username: Word
    password: Password | None = None
    name: Line = ""
    email: Email = ""
    kind: UserKind = UserKind.PERSON
    active: bool = True
    admin: bool = False
    user_manager: bool = False
    system_manager: bool = False
    default_repository_actions: list[str] = []


class UserChange(Body):
    """What may be changed of a user; only admins change the flags."""

    username: Word | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    user_manager: bool | UnsetType = UNSET
    system_manager: bool | UnsetType = UNSET
    default_repository_actions: list[str] | UnsetType = UNSET


class OwnChange(Body):
    """What people may change of their own account."""

    name: Line | UnsetType = UNSET
    email: Email | UnsetType = UNSET


class UserRecord(Record):
    """Somebody who can be named; never with a password or its hash."""

    id: str
    username: str
    name: str
    email: str
    active: bool
    kind: UserKind
    admin: bool
    user_manager: bool
    system_manager: bool
    default_repository_actions: list[str]
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None
    mfa: bool = False

    measured = frozenset({"last_login_at"})

    @classmethod
    def of(cls, user: User) -> Self:
        """The record of a user."""
        actions = action_names(user.default_actions)
        return cls.from_attributes(user, id=user.uid, default_repository_actions=actions)


class NameTaken(Record):
    """Whether a user name is taken."""

    username: str
    taken: bool


class StatusChange(Body):
    """Whether the user may do anything at all."""

    active: bool


class PasswordSet(Body):
    """A new password for somebody; null takes the password away."""

    password: Password | None


class PasswordChange(Body):
    """A new password for oneself, with the old one."""

    old_password: Password
    new_password: Password


class GrantSet(Body):
    """What a user may do in a repository (an id, or storage/name); no actions are an explicit refusal."""

    repository: str
    actions: list[str]


class PermissionsSet(Body):
    """
    Every grant of a user, and what holds where there is none.

    Grants that are not listed are taken back, but for those of the user's groups, which are not changed here.
    """

    repositories: list[GrantSet] | UnsetType = UNSET
    default_repository_actions: list[str] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    user_manager: bool | UnsetType = UNSET
    system_manager: bool | UnsetType = UNSET


class GrantRecord(Record):
    """What somebody may do in a repository, and whence: the user's own grant, or a group's name."""

    repository_id: str
    repository: str
    actions: list[str]
    via: str


class Permissions(Record):
    """What a user was given."""

    admin: bool
    user_manager: bool
    system_manager: bool
    default_repository_actions: list[str]
    repositories: list[GrantRecord]

    @classmethod
    def of(cls, user: User, grants: Iterable[Grant], repositories: Iterable[Repository]) -> Self:
        """The record of a user's permissions; grants in repositories that are not listed are left out."""
        known = {each.id: each for each in repositories}
        return cls.from_attributes(
            user,
            default_repository_actions=action_names(user.default_actions),
            repositories=[
                GrantRecord(
                    repository_id=known[grant.repository_id].uid,
                    repository=known[grant.repository_id].path,
                    actions=action_names(grant.actions),
                    via="user" if grant.subject_kind is SubjectKind.USER else f"group {grant.subject_name}",
                )
                for grant in grants
                if grant.repository_id in known
            ],
        )


class Whoami(Record):
    """Who the server takes the caller for; via is anonymous, password, token or bearer."""

    authenticated: bool
    username: str
    via: str
    admin: bool = False
    user_manager: bool = False
    system_manager: bool = False
    scopes: list[str] | None = None
