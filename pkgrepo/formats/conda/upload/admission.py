"""Who may upload a package: permissions and push rules."""

from __future__ import annotations

from pkgrepo.errors import Forbidden
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.names import FileName
from pkgrepo.gateway.callers.access_tokens import came_with_token
from pkgrepo.gateway.services import Services
from pkgrepo.model import Action, Identity, Repository


class Admission:
    """Checks those who upload to one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._rules = configuration.push_rules(repository)

    async def check(self, identity: Identity, name: FileName) -> None:
        """Check that the caller may upload a package, by permissions and push rules. :raises Forbidden: they may not"""
        services, repository = self._services, self._repository
        await services.access.require(identity, Action.WRITE, repository, name.name)
        if self._rules.must_use_auth_token_for_push and not await came_with_token(services.catalog, identity):
            raise Forbidden("uploads to this repository need an access token, not a password")
        if self._rules.must_be_project_member:
            await services.access.require_member(identity, repository, name.name)
