"""Whether rules refuse a version that is stored, for answers about it and for what is done with it."""

from __future__ import annotations

from pkgrepo.management.api.call import Call
from pkgrepo.model import Package, Repository
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal


async def find_refusal(
    call: Call, package: Package, version: str, asked: Repository | None = None
) -> RuleRefused | None:
    """
    The error that clients get for all files of a version in the repository of the call; None if they get files.

    Of an image ``version`` is a tag or digest. ``asked`` is the virtual repository that clients ask for it, if any.
    """
    proxy, repository = call.shared.proxy, call.repository
    asked = asked or repository
    by_format = call.services.formats[repository.format].refusal
    if by_format is not None:
        return await by_format(call.shared, repository, package.key, version, asked)
    judge = await proxy.judges.of(proxy.resolver.flat_member(asked, repository), package.key)
    if judge is None:
        return None
    hidden, _ = await call.catalog.scan(judge.hidden_files, package.id)
    verdict = hidden.get(version)
    return None if verdict is None else refusal(f"{package.name} {version}", verdict, asked, repository)
