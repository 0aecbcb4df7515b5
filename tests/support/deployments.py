"""Deployments in a catalog in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import deployments
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob


class Scene:
    """A catalog with a repository; deployments are made of user 1."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)

    def add(
        self, uid: str = "one", *, now_ms: int = NOW, automatic: bool = True, leased: bool = True, **values: Any
    ) -> Deployment:
        """Add a deployment that is PENDING."""
        defaults: Mapping[str, Any] = {
            "package_key": "",
            "name": "n",
            "user_id": 1,
            "actor": "ann",
            "size": 10,
            "meta": {"a": 1},
        }
        return self.catalog.do(
            deployments.add_deployment,
            uid=uid,
            repository_id=self.repository.id,
            automatic=automatic,
            leased=leased,
            now_ms=now_ms,
            **{**defaults, **values},
        )

    def find(self, uid: str = "one") -> Deployment | None:
        """Return a deployment as it is now, or None."""
        return self.catalog.peek(deployments.find_deployment, self.repository.id, uid)

    def move(
        self,
        deployment: Deployment,
        before: DeploymentState,
        after: DeploymentState,
        *,
        leased: bool = False,
        now_ms: int = NOW,
    ) -> bool:
        """Change the state, and return whether it was ``before``."""
        return self.catalog.do(deployments.set_state, deployment.id, before, after, leased=leased, now_ms=now_ms)

    def stage(self, deployment: Deployment, path: str = "g/a/1/a-1.jar", content: bytes = b"jar") -> bool:
        """Add a file, and return whether its path had none."""
        blob = self.catalog.do(blobs.claim_blob, self.repository.storage_id, make_blob(content, md5="0"), NOW)
        staged = StagedFile(path, blob, {"k": "v"})
        return self.catalog.do(deployments.add_staged_file, deployment.id, self.repository.storage_id, staged)

    def files(self, deployment: Deployment) -> list[StagedFile]:
        """Return the files of a deployment."""
        return self.catalog.peek(deployments.staged_files, deployment.id)
