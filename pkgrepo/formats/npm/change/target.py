"""The repository that takes the changes that are sent to a repository of any type."""

from __future__ import annotations

from pkgrepo.formats.npm.authorization import RepositoryRequests
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target


class ChangeTarget(RepositoryRequests):
    """Finds the target of changes that are sent to one repository."""

    async def find(self, request: Request) -> Repository:
        """
        The hosted repository that is changed, and that checks the permissions of the caller.

        :raises ReadOnly: no member takes publishes; only callers who may read this repository are told so
        """
        if self._repository.type is not RepositoryType.HOSTED:
            await self._authorize_read(request, None)
        return publish_target(self._services.registry, self._repository)
