"""Users, groups and tokens, what they may do, the identity of a caller, and the actor of a change."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any

from attrs import field, frozen


class Action(StrEnum):
    """What a caller may do in a repository, in ascending order."""

    READ = "read"
    WRITE = "write"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    EDIT = "edit"
    ADMIN = "admin"


class Extent(Enum):
    """What a question about permissions concerns in place of one package."""

    SOME = "at least one package, whichever it is"


class SubjectKind(StrEnum):
    """Whether a grant or a membership is of a user or of a group."""

    USER = "user"
    GROUP = "group"


@frozen
class Grant:
    """
    The actions that a user or group may take in a repository, or in all that a pattern matches; none are a refusal.

    A pattern is ``storage/name`` in lower case, with wildcards; ``repository_id`` is None then.

    ``subject_uid`` and ``subject_name`` are only shown.
    """

    repository_id: int | None
    pattern: str
    subject_kind: SubjectKind
    subject_id: int
    actions: frozenset[Action]
    subject_uid: str = ""
    subject_name: str = ""

    @property
    def place(self) -> int | str:
        """The catalog key of the repository, or the pattern."""
        return self.pattern if self.repository_id is None else self.repository_id


@frozen
class RepositoryScope:
    """
    Repositories that a token opens, as a glob of ``storage/name``, and the actions that it allows there.

    ``packages`` are globs of package keys; the scope covers only these packages. Empty means every package.
    """

    repository: str
    actions: frozenset[Action]
    packages: tuple[str, ...] = ()


@frozen
class TokenLimits:
    """The most that a token allows. Empty ``repositories`` mean every repository, empty ``packages`` every package."""

    scopes: frozenset[str] = frozenset()
    repositories: tuple[RepositoryScope, ...] = ()
    packages: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    expires_at: datetime | None = None


class TokenKind(StrEnum):
    """
    The purpose of a token; its first letter is part of the text of the token.

    A login token is issued after a login with a password; container clients store it instead of the password.
    """

    PERSONAL = "personal"
    SERVICE = "service"
    CI = "ci"
    REPOSITORY = "repository"
    LOGIN = "login"


@frozen
class Pipeline:
    """
    The pipeline that a token was issued to.

    ``name`` is what versions name as their publisher, ``issuer`` the name of the issuer of its identity token, and
    ``subject`` whom that was about. ``publishers`` are the ids of the publishers of repositories that it was
    recognised as, ``projects`` those of publishers of projects. ``claims`` are those of the identity token with which
    attestations are compared.
    """

    name: str
    issuer: str
    subject: str
    publishers: frozenset[str]
    claims: Mapping[str, str] = field(factory=dict, eq=False)
    projects: frozenset[str] = frozenset()


@frozen
class Token:
    """
    An access token without its text, which is never stored.

    ``shown`` is the prefix and the last characters of the text, so that people can tell their tokens apart. ``asked``
    are the scopes and repositories as the request for the token named them, None for tokens that no request named them
    for. Only ``limits``, which were made of them, decide what the token allows. They also have ``canary`` for one that
    nobody is to use.
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
    pipeline: Pipeline | None = None

    @property
    def is_canary(self) -> bool:
        """Whether any use of it is refused, and reported."""
        return self.asked is not None and self.asked.get("canary") is True


@frozen
class TokenUse:
    """The uses of one token since they were last written to the catalog."""

    token_id: int
    at_ms: int
    address: str
    client: str
    count: int


class UserKind(StrEnum):
    """The kind of a user: a person can log in with a password, a service has only tokens."""

    PERSON = "person"
    SERVICE = "service"


@frozen
class Owner:
    """The person or group that a service account belongs to; ``uid`` and ``name`` are only shown."""

    kind: SubjectKind
    subject_id: int
    uid: str = field(default="", eq=False)
    name: str = field(default="", eq=False)


@frozen
class User:
    """
    A person or a service with an account, without the hash of the password.

    ``generation`` grows when all bearer tokens that were issued to the user must stop working. ``default_actions``
    apply in repositories in which the user has no grant. ``owner`` is that of a service; None: user managers alone
    manage it. ``mfa``: the password needs a code of a second factor.
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
    owner: Owner | None = None
    mfa: bool = False


@frozen
class Group:
    """A named set of users; grants and memberships may be given to it."""

    id: int
    uid: str
    key: str
    name: str
    description: str
    created_at: datetime


@frozen
class Identity:
    """
    Who the caller is, by the credentials of the request.

    ``via`` is their kind: ``anonymous``, ``password``, ``token``, ``bearer`` (a short-lived token from the token
    service) or ``session`` (a login in a browser, whose key is ``session_id``). ``limits`` are those of the token: the
    caller may do what the owner may and the limits allow. ``scoped`` says of a bearer token whether it was requested
    with scopes, and is None for all other credentials. ``pipeline`` is that which the token was issued to: then the
    publishers of repositories decide instead of the rights of the user, who stands for all pipelines. An ``anonymous``
    caller has sent no credentials.
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
    session_id: int | None = None
    pipeline: Pipeline | None = None
    anonymous: bool = field(init=False, eq=False, repr=False)

    @anonymous.default
    def _anonymous(self) -> bool:
        return self.user_id is None


ANONYMOUS = Identity()


@frozen
class Actor:
    """The user who made a change, for events and for rows of the audit log."""

    user_id: int | None = None
    name: str = ""
    token_id: int | None = None
    address: str = ""
    request_id: str = ""

    @classmethod
    def of(cls, identity: Identity, *, address: str = "", request_id: str = "") -> Actor:
        """The actor of a request with this identity."""
        return cls(
            user_id=identity.user_id,
            name=identity.username or "anonymous",
            token_id=identity.token_id,
            address=address,
            request_id=request_id,
        )


SYSTEM = Actor(name="system")


@frozen
class AuditEntry:
    """One row of the audit log. ``outcome`` is ``ok``, ``refused`` or ``failed``; ``detail`` never holds secrets."""

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
