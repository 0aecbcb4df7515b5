"""The bodies and records of users, their permissions, and the caller's account."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.permissions.ownership import Owned
from pkgrepo.auth.permissions.rules import role_allows
from pkgrepo.management.api.fields import CreatedAt, ObjectId, RepositoryId, RepositoryPath, SecondFactorCode, UpdatedAt
from pkgrepo.management.api.names import action_names
from pkgrepo.management.api.schema import Body, Line, Name, Record, Text, Word
from pkgrepo.model import Action, Grant, Group, Owner, ProjectRole, Repository, SubjectKind, User, UserKind
from pkgrepo.model.structs import meaning
from pkgrepo.untrusted.patterns import pattern
from pkgrepo.untrusted.text import END

CanLogIn = Annotated[bool, meaning("Whether the user can log in and use tokens.")]
IsAdmin = Annotated[bool, meaning("Whether the user is an administrator, who may do everything.")]
IsUserManager = Annotated[bool, meaning("Whether the user manages users and groups.")]
IsSystemManager = Annotated[bool, meaning("Whether the user manages storages, repositories and settings.")]
DefaultActions = Annotated[list[str], meaning("The actions in repositories where the user has no grant.")]
LoginName = Annotated[str, meaning("The name by which the user logs in.")]

Email = Annotated[
    str, Meta(max_length=254, pattern=pattern(r"^([^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+)?" + END, "an address of e-mail"))
]
Password = Annotated[str, Meta(min_length=1, max_length=1024)]


class OwnerGiven(Body):
    """The owner of a service account: the name or id of a user or of a group, which make and revoke its tokens."""

    user: Annotated[str | None, meaning("The name or id of the user who makes and revokes its tokens.")] = None
    group: Annotated[str | None, meaning("The name or id of the group whose members make and revoke its tokens.")] = (
        None
    )


class NewUser(Body):
    """
    A new user. A person without a password cannot log in until one is set; a service never has a password.

    Only admins may create admins, user managers and system managers. Only a service has an owner.
    """

    username: Annotated[Word, meaning("The name by which the user logs in.")]
    password: Annotated[
        Password | None, meaning("The password; without one, a person cannot log in until it is set.")
    ] = None
    name: Annotated[Line, meaning("The name of the person or service.")] = ""
    email: Annotated[Email, meaning("The mail address.")] = ""
    kind: Annotated[UserKind, meaning("person or service.")] = UserKind.PERSON
    active: CanLogIn = True
    admin: IsAdmin = False
    user_manager: IsUserManager = False
    system_manager: IsSystemManager = False
    default_repository_actions: DefaultActions = []
    owner: Annotated[OwnerGiven | None, meaning("The owner of a service account; null for none.")] = None


class UserChange(Body):
    """
    The fields of a user that can be changed; only admins may change admin, user_manager and system_manager.

    owner is that of a service; null: it has none, and user managers make its tokens.
    """

    username: Annotated[Word | UnsetType, meaning("The name by which the user logs in.")] = UNSET
    name: Annotated[Line | UnsetType, meaning("The name of the person or service.")] = UNSET
    email: Annotated[Email | UnsetType, meaning("The mail address.")] = UNSET
    active: CanLogIn | UnsetType = UNSET
    admin: IsAdmin | UnsetType = UNSET
    user_manager: IsUserManager | UnsetType = UNSET
    system_manager: IsSystemManager | UnsetType = UNSET
    default_repository_actions: DefaultActions | UnsetType = UNSET
    owner: Annotated[OwnerGiven | UnsetType | None, meaning("The owner of a service account; null for none.")] = UNSET


class OwnChange(Body):
    """The fields of the caller's account that can be changed."""

    name: Annotated[Line | UnsetType, meaning("The name of the person.")] = UNSET
    email: Annotated[Email | UnsetType, meaning("The mail address.")] = UNSET


class OwnerRecord(Record):
    """The person or group that a service account belongs to; kind is user or group."""

    kind: Annotated[SubjectKind, meaning("user or group.")]
    id: Annotated[str, meaning("The id of the user or group.")]
    name: Annotated[str, meaning("The name of the user or group.")]

    @classmethod
    def of(cls, owner: Owner) -> Self:
        """The record of an owner."""
        return cls(kind=owner.kind, id=owner.uid, name=owner.name)


class UserRecord(Record):
    """A user, without the password and its hash; owner is that of a service account, if it has one."""

    id: ObjectId
    username: LoginName
    name: Annotated[str, meaning("The name of the person or service.")]
    email: Annotated[str, meaning("The mail address.")]
    active: CanLogIn
    kind: Annotated[UserKind, meaning("person or service.")]
    admin: IsAdmin
    user_manager: IsUserManager
    system_manager: IsSystemManager
    default_repository_actions: DefaultActions
    created_at: CreatedAt
    updated_at: UpdatedAt
    last_login_at: Annotated[datetime | None, meaning("When the user last logged in; null for never.")]
    mfa: Annotated[bool, meaning("Whether the account has a second factor.")] = False
    owner: Annotated[OwnerRecord | None, meaning("The owner of a service account; null for none.")] = None

    measured = frozenset({"last_login_at"})

    @classmethod
    def of(cls, user: User) -> Self:
        """The record of a user."""
        actions = action_names(user.default_actions)
        owner = None if user.owner is None else OwnerRecord.of(user.owner)
        return cls.from_attributes(user, id=user.uid, default_repository_actions=actions, owner=owner)


class NameTaken(Record):
    """Whether a user name is taken."""

    username: Annotated[str, meaning("The name that was asked about.")]
    taken: Annotated[bool, meaning("Whether a user has this name.")]


class StatusChange(Body):
    """Whether the user can log in and use tokens."""

    active: CanLogIn


class PasswordSet(Body):
    """The new password of a user; null removes the password."""

    password: Annotated[Password | None, meaning("The new password; null removes the password.")]


class PasswordChange(Body):
    """The old and the new password of the caller, and the code of a second factor where the account has one."""

    old_password: Annotated[Password, meaning("The present password.")]
    new_password: Annotated[Password, meaning("The new password.")]
    code: SecondFactorCode = ""


class GrantSet(Body):
    """
    A grant: the actions of a user in a repository (id or storage/name), or in all that a pattern matches (main/*).

    An empty list denies all actions.
    """

    repository: Annotated[str, meaning("The repository: its id, or storage/name; or a pattern of storage/name.")]
    actions: Annotated[list[str], meaning("The actions of the grant; an empty list denies all actions.")]


class ActionSet(Body):
    """The actions of a grant. An empty list denies all actions."""

    actions: Annotated[list[str], meaning("The actions of the grant; an empty list denies all actions.")]


class PermissionsSet(Body):
    """
    The permissions of a user. The default actions apply in repositories where the user has no grant.

    repositories replaces all grants of the user; grants of groups do not change.
    """

    repositories: Annotated[list[GrantSet] | UnsetType, meaning("The grants, which replace all that the user has.")] = (
        UNSET
    )
    default_repository_actions: DefaultActions | UnsetType = UNSET
    admin: IsAdmin | UnsetType = UNSET
    user_manager: IsUserManager | UnsetType = UNSET
    system_manager: IsSystemManager | UnsetType = UNSET


class GrantRecord(Record):
    """
    The actions of a user in a repository, or in all that a pattern matches.

    repository_id is null for a pattern; via is user for an own grant, or group and the name of the group.
    """

    repository_id: Annotated[str | None, meaning("The id of the repository; null for a pattern.")]
    repository: Annotated[str, meaning("The path of the repository, storage/name, or the pattern.")]
    actions: Annotated[list[str], meaning("The actions of the grant; none deny all actions.")]
    via: Annotated[str, meaning("user for an own grant, or group and the name of the group.")]


def grant_records(grants: Iterable[Grant], repositories: Iterable[Repository]) -> list[GrantRecord]:
    """The records of grants; those in repositories that are not listed are left out."""
    known: dict[int | None, Repository] = {each.id: each for each in repositories}
    found = [(grant, known.get(grant.repository_id)) for grant in grants]
    return [
        GrantRecord(
            repository_id=None if repository is None else repository.uid,
            repository=repository.path if repository else grant.pattern,
            actions=action_names(grant.actions),
            via="user" if grant.subject_kind is SubjectKind.USER else f"group {grant.subject_name}",
        )
        for grant, repository in found
        if repository or grant.pattern
    ]


class Permissions(Record):
    """The flags, default actions and grants of a user."""

    admin: IsAdmin
    user_manager: IsUserManager
    system_manager: IsSystemManager
    default_repository_actions: DefaultActions
    repositories: Annotated[list[GrantRecord], meaning("The grants of the user.")]

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

    repository_id: RepositoryId
    repository: RepositoryPath
    project: Annotated[str, meaning("The key of the project.")]
    role: Annotated[str, meaning("The role in the project.")]
    actions: Annotated[list[str], meaning("What the role permits.")]
    packages: Annotated[list[str], meaning("Patterns of the names that the project owns.")]

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

    id: ObjectId
    username: LoginName
    name: Annotated[str, meaning("The name of the person or service.")]
    active: CanLogIn
    roles: Annotated[
        list[ProjectRoleRecord], meaning("The roles in projects, which count in repositories without a grant.")
    ]

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
    """The identity of the caller."""

    authenticated: Annotated[bool, meaning("Whether the caller is known.")]
    username: Annotated[str, meaning("The name of the user; empty for anonymous callers.")]
    via: Annotated[str, meaning("anonymous, password, token or bearer.")]
    admin: IsAdmin = False
    user_manager: IsUserManager = False
    system_manager: IsSystemManager = False
    scopes: Annotated[list[str] | None, meaning("The scopes of the token; null without a token.")] = None


class NewGroup(Body):
    """A new group, without members."""

    name: Name
    description: Annotated[Text, meaning("A text for people about the group.")] = ""


class GroupChange(Body):
    """The fields of a group that can be changed."""

    name: Name | UnsetType = UNSET
    description: Annotated[Text | UnsetType, meaning("A text for people about the group.")] = UNSET


class MemberNamed(Body):
    """The name or id of a user."""

    user: Annotated[Word, meaning("The name or id of the user.")]


class GroupGrants(Body):
    """The grants of a group, which replace all that it had. An empty list of actions denies all actions."""

    repositories: Annotated[list[GrantSet], meaning("The grants, which replace all that the group has.")]


class GroupRecord(Record):
    """A group of users."""

    id: ObjectId
    name: Annotated[str, meaning("The name of the group.")]
    description: Annotated[str, meaning("A text for people about the group.")]
    created_at: CreatedAt

    @classmethod
    def of(cls, group: Group) -> Self:
        """The record of a group."""
        return cls.from_attributes(group, id=group.uid)


class GroupMemberRecord(Record):
    """A member of a group."""

    id: ObjectId
    username: LoginName
    name: Annotated[str, meaning("The name of the person or service.")]
    kind: Annotated[UserKind, meaning("person or service.")]
    active: CanLogIn

    @classmethod
    def of(cls, user: User) -> Self:
        """The record of a member."""
        return cls.from_attributes(user, id=user.uid)


class RoleRecord(Record):
    """The role of a group in a project."""

    project: Annotated[str, meaning("The key of the project.")]
    role: Annotated[ProjectRole, meaning("The role of the group there.")]


class WholeGroupRecord(GroupRecord):
    """A group with its grants, its roles in projects, and the service accounts that it owns."""

    measured = frozenset({"member_count"})

    member_count: Annotated[int, meaning("How many members it has.")]
    repositories: Annotated[list[GrantRecord], meaning("The grants of the group.")]
    projects: Annotated[list[RoleRecord], meaning("The roles of the group in projects.")]
    services: Annotated[list[str], meaning("The names of the service accounts that it owns.")]
