"""Storages, repositories, the projects that own packages in them, and the upstreams of proxy repositories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from attrs import evolve, field, frozen

from pkgrepo.model.users import SubjectKind

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # of a storage, and of a repository: a regular expression


class Visibility(StrEnum):
    """
    Who may read a repository without a grant.

    Public: all callers. Private: none. Hidden: all, but only callers with the action edit see it in lists.
    """

    PUBLIC = "public"
    PRIVATE = "private"
    HIDDEN = "hidden"


class RepositoryType(StrEnum):
    """Where the packages of a repository come from. The values are spelt like this in the API."""

    HOSTED = "Hosted"
    PROXY = "Proxy"
    VIRTUAL = "Virtual"


@frozen
class Storage:
    """A place where blobs are stored; each repository belongs to one."""

    id: int
    uid: str
    name: str
    kind: str
    settings: Mapping[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime

    @property
    def is_local(self) -> bool:
        """Whether it is a folder; else it is in a bucket."""
        return self.kind == "Local"

    @property
    def readable_layout(self) -> bool:
        """Whether a readable layout is kept: files under their names, from which a lost catalog can be rebuilt."""
        return bool(self.settings.get("readable_layout", True))

    @property
    def before(self) -> Storage | None:
        """The storage as it was in its old place, if its copies are being moved; see ``begin_move``."""
        before = self.settings.get("before")
        return None if before is None else evolve(self, kind=before["kind"], settings=before["settings"])


def folder_of(name: str) -> str:
    """
    The folder of a repository in the readable layout, by its name.

    A companion's folder is beside its parent's, in which a package may have any name; no repository's name has a dot.
    """
    return name.replace("/", ".")


@frozen
class DatedView:
    """
    A repository as it was known at a time: what its address has behind the name, such as ``2026-09-01``, as ``text``.

    ``at_ms`` is the last millisecond that counts. The view is ``settled`` when its day (UTC) is past. ``live`` is the
    repository as it is now, which has the files.
    """

    text: str
    at_ms: int
    settled: bool
    live: Repository


@frozen
class Repository:
    """
    One repository. ``config`` and ``settings`` are its configuration with the defaults filled in.

    A companion repository has a ``parent``, which decides who may do what in it: ``visibility`` and ``active`` are the
    parent's. Its name is the parent's name, a slash, and the path segment at which it is served below the parent.

    A repository of a ``stage`` (its id) has a parent, too, which counts as private: visibility alone lets nobody read
    what is staged. The hosted one has what is staged for its parent. The virtual one shows that on top of its parent.
    Both have addresses of their own, beside that of the parent.

    With a ``view`` it is what documents show of a past state; rights, rules and files are those of the repository.

    What each request asks of it is worked out when the value is made: its ``path`` is ``storage/name``, as people and
    scopes of tokens write it, ``push_rules`` are the rules for pushes, which a companion has from its parent (one that
    is not set has its default), and ``is_companion`` tells whether it is a companion of another repository, also of one
    of a stage, and what is in it made of that.
    """

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
    version_count: int = 0
    stage: str | None = None
    parent: Repository | None = None
    view: DatedView | None = None
    path: str = field(init=False, eq=False, repr=False)
    push_rules: Mapping[str, Any] = field(init=False, eq=False, repr=False)
    is_companion: bool = field(init=False, eq=False, repr=False)

    @path.default
    def _path(self) -> str:
        return f"{self.storage_name}/{self.name}"

    @push_rules.default
    def _push_rules(self) -> Mapping[str, Any]:
        owner = self.authority
        return owner.config.get("push_rules") or owner.settings.get("push_rules") or {}

    @is_companion.default
    def _is_companion(self) -> bool:
        return self.parent is not None and self.parent.stage == self.stage

    @property
    def live(self) -> Repository:
        """The repository as it is now: itself, unless it is a view."""
        return self if self.view is None else self.view.live

    @property
    def address(self) -> str:
        """Its path in addresses, which is ``storage/name@2026-09-01`` for a view."""
        if self.view is None:
            return self.path
        own, slash, companion = self.name.partition("/")
        return f"{self.storage_name}/{own}@{self.view.text}{slash}{companion}"

    @property
    def authority(self) -> Repository:
        """The repository whose visibility, grants, tokens and projects apply: the parent, or itself as it is now."""
        return self.live if self.parent is None else self.parent.authority

    @property
    def addressed(self) -> bool:
        """Whether clients reach it at an address of its own, and not below that of its parent."""
        return not self.is_companion

    @property
    def folder(self) -> str:
        """The folder in the readable layout; see L{folder_of}."""
        return folder_of(self.name)

    @property
    def policy(self) -> Mapping[str, Any]:
        """The rules of the format for what is published; one that is not set has its default."""
        policy: Mapping[str, Any] = self.settings.get("policy") or {}
        return policy

    @property
    def auth_enabled(self) -> bool:
        """Whether reads need credentials also when the repository is public."""
        auth = self.authority.settings.get("auth")
        return bool(auth and auth.get("enabled", False))

    @property
    def is_private(self) -> bool:
        """Whether some people may not read it, or not without credentials."""
        return self.visibility is not Visibility.PUBLIC or self.auth_enabled


def make_placeholder(repository_id: int, storage: str, name: str, format: str = "") -> Repository:
    """A private, active, empty hosted repository that is not stored, with these names; stored ids are at least 1."""
    return Repository(
        id=repository_id,
        uid="",
        storage_id=repository_id,
        storage_name=storage,
        name=name,
        format=format,
        type=RepositoryType.HOSTED,
        visibility=Visibility.PRIVATE,
        active=True,
        description="",
        config={},
        settings={},
        serial=0,
        bytes_used=0,
        package_count=0,
        created_at=_EPOCH,
        updated_at=_EPOCH,
    )


class ProjectRole(StrEnum):
    """The role of a member in a project, from the lowest to the highest; each includes the lower ones."""

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
    """
    A named owner of packages; ``key`` is the slug in its normalised form.

    ``publishers`` are those of its packages, as those of a repository are stored.
    """

    id: int
    uid: str
    key: str
    name: str
    description: str
    visibility: Visibility
    created_at: datetime
    updated_at: datetime
    publishers: tuple[Mapping[str, Any], ...] = field(default=(), eq=False)


@frozen
class ProjectMember:
    """The role of a user or group in a project; ``subject_uid`` and ``subject_name`` are only shown."""

    project_id: int
    subject_kind: SubjectKind
    subject_id: int
    role: ProjectRole
    subject_uid: str = ""
    subject_name: str = ""


@frozen
class ProjectBinding:
    """Names of packages in a repository that a project owns; the format defines what ``pattern`` matches."""

    repository_id: int
    pattern: str
    project_id: int


@frozen
class ReadLimits:
    """
    Limits of one answer.

    ``max_bytes`` counts what the reader gets, after decompression. ``total_s`` is the time from the request to the end
    of the body in seconds, with redirects and retries; None: as long as bytes keep arriving.
    """

    max_bytes: int
    total_s: float | None = None


class UpstreamState(StrEnum):
    """Whether requests are sent. A probe is the single request that decides whether to send others again."""

    CLOSED = "closed"  # all of them
    OPEN = "open"  # none
    HALF_OPEN = "half_open"  # the next one is the probe


@frozen
class UpstreamHealth:
    """
    What one process knows about an upstream.

    Times are aware UTC, None: never. ``last_error`` is a sentence without addresses. ``latency_s`` is the time until
    the head of the last answer. The counts begin when the process, or this value of the route, does.
    """

    state: UpstreamState
    last_error: str | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    latency_s: float | None
    successes: int
    failures: int
    limited_until: datetime | None

    @property
    def failed_last(self) -> bool:
        """Whether requests are sent, and the last one failed."""
        failed, succeeded = self.last_failure_at, self.last_success_at
        newest = failed is not None and (succeeded is None or failed > succeeded)
        return newest and self.state is UpstreamState.CLOSED
