"""Projects, which own packages."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from .content import Visibility
from .people import SubjectKind


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
