"""Deployments: files that are received together, and published together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import Factory, frozen

from .packages import BlobInfo


class DeploymentState(StrEnum):
    """The state of a deployment; see ``pkgrepo.storage.catalog.packages.deployments``."""

    PENDING = "PENDING"
    VALIDATING = "VALIDATING"
    VALIDATED = "VALIDATED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"

    @property
    def ended(self) -> bool:
        """Whether it never changes again."""
        return self in (DeploymentState.PUBLISHED, DeploymentState.FAILED)


@frozen(kw_only=True)
class Deployment:
    """
    A deployment. Times are in milliseconds since the epoch, ``size`` in bytes.

    A deployment with a ``package_key`` is a session: it gets its files one by one, for that package. With ``automatic``
    it is published as soon as it is validated. ``errors`` are sentences by path, the empty path meaning the whole.
    ``lease_ms`` is the time until which a process works on it, None while none does. ``meta`` is what its format keeps
    of it.
    """

    id: int
    uid: str
    repository_id: int
    package_key: str
    name: str
    state: DeploymentState
    automatic: bool
    user_id: int | None
    actor: str
    size: int
    errors: Mapping[str, list[str]]
    meta: Mapping[str, Any]
    lease_ms: int | None
    created_ms: int
    touched_ms: int


@frozen
class StagedFile:
    """A file of a deployment that is not published yet; ``attrs`` is what the format knows of it."""

    path: str
    blob: BlobInfo
    attrs: Mapping[str, Any] = Factory(dict)
