"""
The values that all rooms share: frozen and typed, without I/O.

Times are aware UTC datetimes here and milliseconds since the epoch in the catalog; sizes are bytes; digests are
lower-case hex. ``key`` is the normalised form of ``name``.
"""

from __future__ import annotations

from pkgrepo.model.repositories import (
    Project,
    ProjectBinding,
    ProjectMember,
    ProjectRole,
    ReadLimits,
    UpstreamHealth,
    UpstreamState,
)
from pkgrepo.model.users import (
    SYSTEM,
    Action,
    Actor,
    AuditEntry,
    Extent,
    Grant,
    Owner,
    Pipeline,
    RepositoryScope,
    SubjectKind,
    Token,
    TokenKind,
    TokenLimits,
    TokenUse,
)

from .packages import BlobInfo, Document, File, Fragment, NewFile, Origin, Package, Version, VersionState
from .repositories import DatedView, Repository, RepositoryType, Storage, Visibility, folder_of
from .users import ANONYMOUS, Group, Identity, User, UserKind

__all__ = [
    "ANONYMOUS",
    "SYSTEM",
    "Action",
    "Actor",
    "AuditEntry",
    "BlobInfo",
    "DatedView",
    "Document",
    "Extent",
    "File",
    "Fragment",
    "Grant",
    "Group",
    "Identity",
    "NewFile",
    "Origin",
    "Owner",
    "Package",
    "Pipeline",
    "Project",
    "ProjectBinding",
    "ProjectMember",
    "ProjectRole",
    "ReadLimits",
    "Repository",
    "RepositoryScope",
    "RepositoryType",
    "Storage",
    "SubjectKind",
    "Token",
    "TokenKind",
    "TokenLimits",
    "TokenUse",
    "UpstreamHealth",
    "UpstreamState",
    "User",
    "UserKind",
    "Version",
    "VersionState",
    "Visibility",
    "folder_of",
]
