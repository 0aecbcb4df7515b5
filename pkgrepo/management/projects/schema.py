"""Projects: named owners of packages."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.management.api.schema import LARGEST, Body, Line, Record, Text, Word
from pkgrepo.model import Project, ProjectRole
from pkgrepo.untrusted.text import END

Slug = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}" + END)]
Size = Annotated[int, Meta(ge=0, le=LARGEST)]


class NewProject(Body):
    """A new project; the caller becomes its owner."""

    key: Slug
    name: Line = ""
    description: Text = ""
    visibility: str = "private"
    quota: Size | None = None


class ProjectChange(Body):
    """The fields of a project that can be changed. The key cannot: image names may contain it."""

    name: Line | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    visibility: str | UnsetType = UNSET
    quota: Size | UnsetType | None = UNSET


class MemberRecord(Record):
    """The role of a user or group in a project."""

    kind: str
    id: str
    name: str
    role: ProjectRole


class BindingRecord(Record):
    """Package names in a repository that a project owns, as a pattern."""

    repository_id: str
    repository: str
    pattern: str


class ProjectSummary(Record):
    """A project in a list."""

    id: str
    key: str
    name: str
    description: str
    visibility: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, project: Project) -> Self:
        """The record of a project in a list."""
        return cls.from_attributes(project, id=project.uid)


class ProjectRecord(ProjectSummary):
    """A project with its members (null if the caller may not see them) and the package names that it owns."""

    quota: int | None
    members: list[MemberRecord] | None
    bindings: list[BindingRecord]


class MemberGiven(Body):
    """The role of a user or a group (name or id) in a project; either user or group is required."""

    user: str | None = None
    group: str | None = None
    role: ProjectRole = ProjectRole.DEVELOPER


class BindingGiven(Body):
    """Package names: a repository (id or storage/name) and a pattern in the syntax of its format."""

    repository: str
    pattern: Word
