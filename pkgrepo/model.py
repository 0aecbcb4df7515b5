"""
The values that cross room borders: frozen, typed, free of behaviour that touches the world.

Times are aware UTC datetimes here and milliseconds since the epoch in the catalog; sizes are bytes; digests are
lower-case hex. ``key`` is always the normalised spelling of the ``name`` beside it, made by the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import Factory, field, frozen


class Action(StrEnum):
    """What a caller wants to do in a repository."""

    READ = "read"
    WRITE = "write"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    EDIT = "edit"
    ADMIN = "admin"


class Visibility(StrEnum):
    """Who sees a repository without a grant: everybody, nobody, or whoever knows its exact name."""

    PUBLIC = "public"
    PRIVATE = "private"
    HIDDEN = "hidden"


class RepositoryType(StrEnum):
    """Where a repository's packages come from; the spellings are the specification's."""

    HOSTED = "Hosted"
    PROXY = "Proxy"
    VIRTUAL = "Virtual"


class VersionState(StrEnum):
    """Life of a version. Deleted versions keep no files; what remains of them is a tombstone."""

    LIVE = "live"
    YANKED = "yanked"
    DEPRECATED = "deprecated"


@frozen
class Storage:
    """A place for bytes; repositories live in exactly one."""

    id: int
    uid: str
    name: str
    kind: str
    settings: Mapping[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime


@frozen
class Repository:
    """One repository as the catalog has it; ``config`` is the object of the management API, defaults filled in."""

    id: int
    uid: str
    storage_id: int
    storage_name: str
    name: str
    format: str
    type: RepositoryType
    visibility: Visibility
    active: bool
    description: str
    config: Mapping[str, Any]
    settings: Mapping[str, Any]
    serial: int
    bytes_used: int
    package_count: int
    created_at: datetime
    updated_at: datetime

    @property
    def path(self) -> str:
        """``storage/name``, the way people and scopes write it."""
        return f"{self.storage_name}/{self.name}"

    @property
    def auth_enabled(self) -> bool:
        """Whether even public reads need credentials."""
        auth = self.settings.get("auth")
        return bool(auth and auth.get("enabled", False))


@frozen
class Package:
    """
    A named thing with versions, in one repository.

    ``modified_s`` is the Unix time under which HTTP tells of its last change: another second, and a later one, for
    each, so that it is ahead of the clock for a while after several in one second.
    """

    id: int
    repository_id: int
    key: str
    name: str
    latest: str | None
    serial: int
    meta: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    modified_s: int


@frozen
class Version:
    """One release of a package; ``sort`` orders as the format orders, bytewise."""

    id: int
    package_id: int
    key: str
    text: str
    sort: bytes
    state: VersionState
    reason: str
    meta: Mapping[str, Any]
    published_at: datetime
    publisher: str


@frozen
class BlobInfo:
    """Bytes that are durable in a storage. ``digests`` maps algorithm name to hex and always has ``sha256``."""

    sha256: str
    size: int
    locator: str
    digests: Mapping[str, str]


@frozen
class File:
    """What a repository answers under ``path`` (decoded, no leading slash)."""

    id: int
    repository_id: int
    storage_id: int
    path: str
    package_id: int | None
    version_id: int | None
    sha256: str
    size: int
    locator: str
    media_type: str
    digests: Mapping[str, str]
    attrs: Mapping[str, Any]
    created_at: datetime


@frozen
class NewFile:
    """A file about to be published; its bytes are durable already."""

    path: str
    blob: BlobInfo
    media_type: str = "application/octet-stream"
    attrs: Mapping[str, Any] = Factory(dict)


@frozen
class Document:
    """
    A rendered index document, ready to be sent.

    ``etag`` is the quoted strong validator of the identity form; the compressed forms carry it with a suffix.
    Absent compressed forms mean that compressing was not worth it. ``modified_s`` is that of the package, where the
    document is of one and is told with a date.
    """

    content_type: str
    body: bytes
    etag: str
    serial: int
    gzip: bytes | None = None
    zstd: bytes | None = None
    modified_s: int | None = None


@frozen
class Identity:
    """
    Who is asking, as established from credentials.

    ``via`` is how: ``anonymous``, ``password``, ``token`` or ``bearer`` (a short-lived token from the token service).
    A token's own limits travel in ``limits`` and cap whatever the owner may do.
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

    ``shown`` is the prefix and the last characters, to tell tokens apart.
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


@frozen
class TokenUse:
    """Uses of one token since the last time they were written down."""

    token_id: int
    at_ms: int
    address: str
    client: str
    count: int


class ProjectRole(StrEnum):
    """A member's standing in a project, lowest first."""

    GUEST = "guest"
    REPORTER = "reporter"
    DEVELOPER = "developer"
    MAINTAINER = "maintainer"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """0 for the lowest role; grows with the role."""
        return list(ProjectRole).index(self)


@frozen
class Project:
    """A named owner of packages; ``key`` is the normalised slug."""

    id: int
    uid: str
    key: str
    name: str
    description: str
    visibility: Visibility
    quota: int | None
    created_at: datetime
    updated_at: datetime


@frozen
class ProjectMember:
    """A user's or group's role in a project; ``subject_uid`` and ``subject_name`` are for showing."""

    project_id: int
    subject_kind: SubjectKind
    subject_id: int
    role: ProjectRole
    subject_uid: str = ""
    subject_name: str = ""


@frozen
class ProjectBinding:
    """Names in a repository that a project owns; the format gives ``pattern`` its meaning."""

    repository_id: int
    pattern: str
    project_id: int


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
