"""Who asks, who may, and who did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import field, frozen


class Action(StrEnum):
    """What a caller wants to do in a repository."""

    READ = "read"
    WRITE = "write"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    EDIT = "edit"
    ADMIN = "admin"


@frozen
class Identity:
    """
    Who is asking, as established from credentials.

    ``via`` is how: ``anonymous``, ``password``, ``token`` or ``bearer`` (a short-lived token from the token service).
    A token's own limits travel in ``limits`` and cap whatever the owner may do. ``scoped`` says of a bearer token
    whether it was asked for with scopes, and is None for all other credentials.
    """

    user_id: int | None = None
    username: str = ""
    admin: bool = False
    user_manager: bool = False
    system_manager: bool = False
    via: str = "anonymous"
    token_id: int | None = None
    limits: TokenLimits | None = None
    generation: int = 0
    scoped: bool | None = None

    @property
    def anonymous(self) -> bool:
        """True when nobody was named."""
        return self.user_id is None


@frozen
class RepositoryScope:
    """
    A token's reach: repositories by ``storage/name`` glob, and what it may do there.

    ``packages`` are globs of package keys that narrow this one scope; empty means every package.
    """

    repository: str
    actions: frozenset[Action]
    packages: tuple[str, ...] = ()


@frozen
class TokenLimits:
    """What a token allows at most. Empty ``repositories`` means every repository; empty ``packages`` every package."""

    scopes: frozenset[str] = frozenset()
    repositories: tuple[RepositoryScope, ...] = ()
    packages: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    expires_at: datetime | None = None


ANONYMOUS = Identity()


@frozen
class Actor:
    """Who did it, for events and audit rows."""

    user_id: int | None = None
    name: str = ""
    token_id: int | None = None
    address: str = ""
    request_id: str = field(default="")

    @classmethod
    def of(cls, identity: Identity, *, address: str = "", request_id: str = "") -> Actor:
        """The actor behind a request's identity."""
        return cls(
            user_id=identity.user_id,
            name=identity.username or "anonymous",
            token_id=identity.token_id,
            address=address,
            request_id=request_id,
        )


SYSTEM = Actor(name="system")


class UserKind(StrEnum):
    """A person logs in with a password; a service only has tokens."""

    PERSON = "person"
    SERVICE = "service"


@frozen
class User:
    """
    Somebody who can be named.

    It never carries a password or its hash. ``generation`` grows when whatever was issued to the user before must
    stop working; ``default_actions`` apply in repositories where nothing more specific is said.
    """

    id: int
    uid: str
    username: str
    key: str
    name: str
    email: str
    kind: UserKind
    active: bool
    admin: bool
    user_manager: bool
    system_manager: bool
    default_actions: frozenset[Action]
    generation: int
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None


@frozen
class Group:
    """A named set of users, to grant to."""

    id: int
    uid: str
    key: str
    name: str
    description: str
    created_at: datetime


class SubjectKind(StrEnum):
    """What a grant or a membership speaks of."""

    USER = "user"
    GROUP = "group"


@frozen
class Grant:
    """
    What a user or group may do in a repository; no actions are an explicit refusal.

    ``subject_uid`` and ``subject_name`` are for showing.
    """

    repository_id: int
    subject_kind: SubjectKind
    subject_id: int
    actions: frozenset[Action]
    subject_uid: str = ""
    subject_name: str = ""


class TokenKind(StrEnum):
    """
    What a token is for; the first letter is part of its text.

    A login token stands for the password that it was got with: docker keeps it instead.
    """

    PERSONAL = "personal"
    SERVICE = "service"
    CI = "ci"
    REPOSITORY = "repository"
    LOGIN = "login"


@frozen
class Token:
    """
    What is known of an access token; its text is never stored.

    ``shown`` is the prefix and the last characters, to tell tokens apart. ``asked`` is what its maker said of scopes
    and repositories, None where nobody was asked: ``limits`` are what became of it, and what counts.
    """

    id: int
    uid: str
    user_id: int
    shown: str
    kind: TokenKind
    name: str
    description: str
    limits: TokenLimits
    revoked_at: datetime | None
    created_at: datetime
    created_from: str
    last_used_at: datetime | None
    last_used_ip: str | None
    last_used_client: str | None
    uses: int
    asked: Mapping[str, Any] | None = None


@frozen
class TokenUse:
    """Uses of one token since the last time they were written down."""

    token_id: int
    at_ms: int
    address: str
    client: str
    count: int


@frozen
class AuditEntry:
    """One line of the audit log. ``outcome`` is ``ok``, ``refused`` or ``failed``; ``detail`` never holds secrets."""

    seq: int
    at: datetime
    request_id: str
    user_id: int | None
    actor: str
    token_id: int | None
    address: str
    action: str
    object: str
    outcome: str
    detail: Mapping[str, Any]
