"""The bodies and records of users, their permissions, and the caller's account."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.permissions.ownership import Owned
from pkgrepo.auth.permissions.rules import role_allows
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.schema import Body, Line, Name, Record, Text, Word
from pkgrepo.model import Action, Grant, Group, Owner, ProjectRole, Repository, SubjectKind, User, UserKind
from pkgrepo.untrusted.text import END

Email = Annotated[str, Meta(max_length=254, pattern=r"^([^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+)?" + END)]
Password = Annotated[str, Meta(min_length=1, max_length=1024)]


class OwnerGiven(Body):
    """The owner of a service account: the name or id of a user or of a group, which make and revoke its tokens."""

    user: str | None = None
    group: str | None = None


class NewUser(Body):
    """
    A new user. A person without a password cannot log in until one is set; a service never has a password.

    Only admins may create admins, user managers and system managers. Only a service has an owner.
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
    owner: OwnerGiven | None = None


class UserChange(Body):
    """
    The fields of a user that can be changed; only admins may change admin, user_manager and system_manager.

    owner is that of a service; null: it has none, and user managers make its tokens.
    """

    username: Word | UnsetType = UNSET
    name: Line | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    user_manager: bool | UnsetType = UNSET
    system_manager: bool | UnsetType = UNSET
    default_repository_actions: list[str] | UnsetType = UNSET
    owner: OwnerGiven | UnsetType | None = UNSET


class OwnChange(Body):
    """The fields of the caller's account that can be changed."""

    name: Line | UnsetType = UNSET
    email: Email | UnsetType = UNSET


class OwnerRecord(Record):
    """The person or group that a service account belongs to; kind is user or group."""

    kind: SubjectKind
    id: str
    name: str

    @classmethod
    def of(cls, owner: Owner) -> Self:
        """The record of an owner."""
        return cls(kind=owner.kind, id=owner.uid, name=owner.name)


class UserRecord(Record):
    """A user, without the password and its hash; owner is that of a service account, if it has one."""

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
    owner: OwnerRecord | None = None

    measured = frozenset({"last_login_at"})

    @classmethod
    def of(cls, user: User) -> Self:
        """The record of a user."""
        actions = action_names(user.default_actions)
        owner = None if user.owner is None else OwnerRecord.of(user.owner)
        return cls.from_attributes(user, id=user.uid, default_repository_actions=actions, owner=owner)


class NameTaken(Record):
    """Whether a user name is taken."""

    username: str
    taken: bool


class StatusChange(Body):
    """Whether the user can log in and use tokens."""

    active: bool


class PasswordSet(Body):
    """The new password of a user; null removes the password."""

    password: Password | None


class PasswordChange(Body):
    """The old and the new password of the caller, and the code of a second factor where the account has one."""

    old_password: Password
    new_password: Password
    code: str = ""


class GrantSet(Body):
    """A grant: the actions of a user in a repository (id or storage/name). An empty list denies all actions."""

    repository: str
    actions: list[str]


class ActionSet(Body):
    """The actions of a grant. An empty list denies all actions."""

    actions: list[str]


class PermissionsSet(Body):
    """
    The permissions of a user. The default actions apply in repositories where the user has no grant.

    repositories replaces all grants of the user; grants of groups do not change.
    """

    repositories: list[GrantSet] | UnsetType = UNSET
    default_repository_actions: list[str] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    user_manager: bool | UnsetType = UNSET
    system_manager: bool | UnsetType = UNSET


class GrantRecord(Record):
    """The actions of a user in a repository; via is user for an own grant, or group and the name of the group."""

    repository_id: str
    repository: str
    actions: list[str]
    via: str


def grant_records(grants: Iterable[Grant], repositories: Iterable[Repository]) -> list[GrantRecord]:
    """The records of grants; those in repositories that are not listed are left out."""
    known = {each.id: each for each in repositories}
    return [
        GrantRecord(
            repository_id=known[grant.repository_id].uid,
            repository=known[grant.repository_id].path,
            actions=action_names(grant.actions),
            via="user" if grant.subject_kind is SubjectKind.USER else f"group {grant.subject_name}",
        )
        for grant in grants
        if grant.repository_id in known
    ]


class Permissions(Record):
    """The flags, default actions and grants of a user."""

    admin: bool
    user_manager: bool
    system_manager: bool
    default_repository_actions: list[str]
    repositories: list[GrantRecord]

    @classmethod
    def of(cls, user: User, grants: Iterable[Grant], repositories: Iterable[Repository]) -> Self:
        """The record of a user's permissions; grants in repositories that are not listed are left out."""
        return cls.from_attributes(
            user,
            default_repository_actions=action_names(user.default_actions),
            repositories=grant_records(grants, repositories),
        )


class ProjectRoleRecord(Record):
    """The role of a user in a project, and its actions with the packages of a repository that have these patterns."""

    repository_id: str
    repository: str
    project: str
    role: str
    actions: list[str]
    packages: list[str]

    @classmethod
    def of(cls, owned: Owned, role: ProjectRole) -> Self:
        """The record of a role in a project that owns names in a repository."""
        place = owned.repository
        return cls(
            repository_id=place.uid,
            repository=place.path,
            project=owned.project.key,
            role=str(role),
            actions=action_names(each for each in Action if role_allows(role, each, place)),
            packages=list(owned.patterns),
        )


class UserPermissionsRecord(Permissions):
    """A user with the permissions; roles are those in projects, which count in repositories without a grant."""

    id: str
    username: str
    name: str
    active: bool
    roles: list[ProjectRoleRecord]

    @classmethod
    def with_user(
        cls, user: User, grants: Iterable[Grant], roles: list[ProjectRoleRecord], repositories: Iterable[Repository]
    ) -> Self:
        """The record of a user and the permissions; see L{Permissions.of}."""
        permissions = Permissions.of(user, grants, repositories)
        return cls.from_attributes(
            permissions, id=user.uid, username=user.username, name=user.name, active=user.active, roles=roles
        )


class Whoami(Record):
    """The identity of the caller. via is anonymous, password, token or bearer; scopes are those of the token."""

    authenticated: bool
    username: str
    via: str
    admin: bool = False
    user_manager: bool = False
    system_manager: bool = False
    scopes: list[str] | None = None


class NewGroup(Body):
    """A new group, without members."""

    name: Name
    description: Text = ""


class GroupChange(Body):
    """The fields of a group that can be changed."""

    name: Name | UnsetType = UNSET
    description: Text | UnsetType = UNSET


class MemberNamed(Body):
    """The name or id of a user."""

    user: Word


class GroupGrants(Body):
    """The grants of a group, which replace all that it had. An empty list of actions denies all actions."""

    repositories: list[GrantSet]


class GroupRecord(Record):
    """A group of users."""

    id: str
    name: str
    description: str
    created_at: datetime

    @classmethod
    def of(cls, group: Group) -> Self:
        """The record of a group."""
        return cls.from_attributes(group, id=group.uid)


class GroupMemberRecord(Record):
    """A member of a group."""

    id: str
    username: str
    name: str
    kind: UserKind
    active: bool

    @classmethod
    def of(cls, user: User) -> Self:
        """The record of a member."""
        return cls.from_attributes(user, id=user.uid)


class RoleRecord(Record):
    """The role of a group in a project."""

    project: str
    role: ProjectRole


class WholeGroupRecord(GroupRecord):
    """A group with its grants, its roles in projects, and the service accounts that it owns."""

    member_count: int
    repositories: list[GrantRecord]
    projects: list[RoleRecord]
    services: list[str]
