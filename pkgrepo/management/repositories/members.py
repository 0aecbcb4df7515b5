"""The routes of the members of virtual repositories."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.repositories.configuration.stored import ConfigurationHandlers
from pkgrepo.management.repositories.schema import MemberRecord, Members, NewMembers
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of


class RepositoryMembers(ConfigurationHandlers):
    """Shows and replaces members; what a GET returns can be sent back with PUT."""

    table = Table("repositories")

    @table.route(
        "GET",
        "/repository/<repository>/members",
        access=EDITORS,
        summary="Show the members of a virtual repository",
        answer=Members,
    )
    async def get(self, call: Call) -> Members:
        """In the order in which they are asked. Repositories of other types have no members (404)."""
        return self._members(_virtual(await call.fresh_repository()))

    @table.route(
        "PUT",
        "/repository/<repository>/members",
        access=EDITORS,
        summary="Replace the members of a virtual repository",
        body=NewMembers,
        answer=Members,
        audit="repository.configure",
        conditional=True,
    )
    async def put(self, call: Call, body: NewMembers) -> Members:
        """New members must be readable by the caller: readers of this repository get their packages."""
        repository = _virtual(await call.fresh_repository())
        call.check_unchanged(self._members(repository))
        names = [each if isinstance(each, str) else each.repository for each in body.members]
        config = {**self._whole(repository), **body.given("publish_to", "resolution"), "members": names}
        return self._members(await self._replace(call, repository, config, ""))

    def _members(self, repository: Repository) -> Members:
        shown = self._whole(repository)
        found = [self._registry.find_uid(uid) for uid in virtual_config_of(repository).members]
        return Members(
            members=[MemberRecord.of(each) for each in found if each is not None],
            publish_to=shown["publish_to"],
            resolution=shown["resolution"],
        )


def _virtual(repository: Repository) -> Repository:
    if repository.type is not RepositoryType.VIRTUAL:
        raise NotFound("virtual repository", repository.path)
    return repository
