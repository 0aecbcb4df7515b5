"""Repositories that do not exist in the catalog, as input for the permission rules."""

from __future__ import annotations

from datetime import UTC, datetime

from pkgrepo.model import Repository, RepositoryType, Visibility

_EPOCH = datetime.fromtimestamp(0, UTC)


def make_placeholder(repository_id: int, storage: str, name: str, format: str = "") -> Repository:
    """A private, active, empty repository with these names. Ids in the catalog are at least 1."""
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
