"""Projects, which own packages."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from .permissions import SubjectKind
from .repositories import Visibility


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
    """A named owner of packages; ``key`` is the slug in its normalised form."""

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
