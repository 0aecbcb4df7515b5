"""Repositories as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlsplit

from pkgrepo.model import Repository

from .schema import RepositoryRecord


def record(
    repository: Repository, storage_uid: str, base_url: str, warnings: Iterable[str] = (), *, usage: bool = True
) -> RepositoryRecord:
    """The record of a repository whose figures are fresh; ``usage`` off leaves them out."""
    size = repository.bytes_used if usage else None
    return RepositoryRecord(
        id=repository.uid,
        name=repository.name,
        storage_id=storage_uid,
        storage_name=repository.storage_name,
        format=repository.format,
        type=repository.type,
        visibility=repository.visibility,
        active=repository.active,
        description=repository.description,
        auth_enabled=repository.auth_enabled,
        created_at=repository.created_at,
        updated_at=repository.updated_at,
        url=f"{base_url}/repositories/{quote(repository.path)}",
        registry_host=urlsplit(base_url).netloc,
        warnings=list(warnings),
        usage_bytes=size,
        package_count=repository.package_count if usage else None,
        repository_type=repository.format,
        repository_kind=repository.type,
        storage_usage_bytes=size,
    )
