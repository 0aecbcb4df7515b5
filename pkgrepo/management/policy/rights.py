"""Who may change what holds at once: blocks, and freezes."""

from __future__ import annotations

from pkgrepo.errors import Forbidden
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.management.api.call import Call
from pkgrepo.model import Action, Repository
from pkgrepo.repositories.policy.effective import takes_repository
from pkgrepo.repositories.version_ranges import WILD


async def manages(call: Call) -> bool:
    """Whether the caller is a system manager."""
    return await call.services.callers.authorizer.may_use(call.identity, "system")


async def administers(call: Call, pattern: str) -> bool:
    """Whether a text is the path of a repository, and no pattern, where the caller has the action admin."""
    repository = None if WILD & {*pattern} else call.registry.find_path(pattern)
    return repository is not None and await call.services.callers.authorizer.may(
        call.identity, Action.ADMIN, repository
    )


async def check_rights(call: Call, pattern: str) -> list[Repository]:
    """
    The repositories that a block or a freeze with a path or a pattern holds for.

    :raises Forbidden, NotFound: the caller may not do that there
    """
    may_manage = await manages(call)
    if WILD & {*pattern}:
        if not may_manage:
            raise Forbidden("what holds for a pattern of repositories is for system managers only")
        return [each for each in call.registry.all() if takes_repository(pattern, each.path)]
    repository = call.registry.find_path(pattern)
    if repository is None or not (
        may_manage or await call.services.callers.authorizer.may(call.identity, Action.READ, repository)
    ):
        raise unknown(call.identity, pattern)
    if not may_manage and not await call.services.callers.authorizer.may(call.identity, Action.ADMIN, repository):
        raise Forbidden(await call.services.callers.authorizer.explain(call.identity, Action.ADMIN, repository, None))
    return [repository]
