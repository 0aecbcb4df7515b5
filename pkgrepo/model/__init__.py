"""
The values that cross room borders: frozen, typed, free of behaviour that touches the world.

Times are aware UTC datetimes here and milliseconds since the epoch in the catalog; sizes are bytes; digests are
lower-case hex. ``key`` is always the normalised spelling of the ``name`` beside it, made by the format.
"""

from __future__ import annotations

from .content import (
    BlobInfo,
    Document,
    File,
    NewFile,
    Package,
    Repository,
    RepositoryType,
    Storage,
    Version,
    VersionState,
    Visibility,
)
from .people import (
    ANONYMOUS,
    SYSTEM,
    Action,
    Actor,
    AuditEntry,
    Grant,
    Group,
    Identity,
    RepositoryScope,
    SubjectKind,
    Token,
    TokenKind,
    TokenLimits,
    TokenUse,
    User,
    UserKind,
)
from .projects import (
    Project,
    ProjectBinding,
    ProjectMember,
    ProjectRole,
)

__all__ = [
    "ANONYMOUS",
    "SYSTEM",
    "Action",
    "Actor",
    "AuditEntry",
    "BlobInfo",
    "Document",
    "File",
    "Grant",
    "Group",
    "Identity",
    "NewFile",
    "Package",
    "Project",
    "ProjectBinding",
    "ProjectMember",
    "ProjectRole",
    "Repository",
    "RepositoryScope",
    "RepositoryType",
    "Storage",
    "SubjectKind",
    "Token",
    "TokenKind",
    "TokenLimits",
    "TokenUse",
    "User",
    "UserKind",
    "Version",
    "VersionState",
    "Visibility",
]
