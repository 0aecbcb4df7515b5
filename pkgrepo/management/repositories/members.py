"""The routes of the members of virtual repositories."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.repositories.configuration.stored import replace, whole
from pkgrepo.management.repositories.schema import MemberRecord, Members, NewMembers
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of

table = Table("repositories")


@table.route(
    "GET",
    "/repository/<repository>/members",
    access=EDITORS,
    summary="Show the members of a virtual repository",
    answer=Members,
)
async def show_members(call: Call) -> Members:
    """In the order in which they are asked. Repositories of other types have no members (404)."""
    return _members(call, _virtual(await call.fresh_repository()))


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
async def replace_members(call: Call, body: NewMembers) -> Members:
    """New members must be readable by the caller: readers of this repository get their packages."""
    repository = _virtual(await call.fresh_repository())
    call.check_unchanged(_members(call, repository))
    names = [each if isinstance(each, str) else each.repository for each in body.members]
    config = {**whole(call, repository), **body.given("publish_to", "resolution"), "members": names}
    return _members(call, await replace(call, repository, config, ""))


def _members(call: Call, repository: Repository) -> Members:
    shown = whole(call, repository)
    found = [call.registry.find_uid(uid) for uid in virtual_config_of(repository).members]
    return Members(
        members=[MemberRecord.of(each) for each in found if each is not None],
        publish_to=shown["publish_to"],
        resolution=shown["resolution"],
    )


def _virtual(repository: Repository) -> Repository:
    if repository.type is not RepositoryType.VIRTUAL:
        raise NotFound("virtual repository", repository.path)
    return repository
