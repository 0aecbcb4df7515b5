"""
Questions to upstreams whose responses are passed on and not kept, such as searches and audits.

Upstreams are not asked about packages of our own, and what they say about such is not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import ReadLimits, Repository, RepositoryType
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.storage.catalog.packages import packages

ABSENT: Final = (404, 405, 410)  # an upstream that does not know the question


@frozen
class UncachedQuestion:
    """
    A question of the kind ``what``, at a ``path`` (as on the wire, with a query if any) below the URL of each route.

    With a ``body``, which is JSON, it is a POST.
    """

    what: str
    path: str
    limits: ReadLimits
    body: bytes | None = None


async def ask_routes(upstreams: Upstreams, repository: Repository, question: UncachedQuestion) -> bytes:
    """
    The response of the first route of a proxy that has one. After a failure the next is asked only if it is a replica,
    and never after a refusal.

    :raises NotFound: all routes answered, and none has it; :raises UpstreamFailed: some route failed, and none has it
    """
    failure: UpstreamFailed | None = None
    config = proxy_config_of(repository)
    headers = {"Accept": "application/json"}
    if question.body is not None:
        headers["Content-Type"] = "application/json"
    for route in config.routes:
        try:
            async with upstreams.of(repository.id, route).open(
                "GET" if question.body is None else "POST",
                question.path,
                headers,
                body=question.body,
                limits=question.limits,
                kind=question.what,
                decode=True,
                tries=1,  # the caller can do without a response, and its client waits
            ) as response:
                if response.status == 200:
                    return await response.read()
                if response.status not in ABSENT:
                    raise UpstreamFailed(route.name, f"it answered {response.status}")
        except UpstreamFailed as error:
            if not config.replicas or isinstance(error, UpstreamDenied):
                raise
            failure = failure or error
    raise failure or NotFound(question.what, repository.path)


async def find_private(
    catalog: ICatalog, members: Sequence[Repository], proxy: FlatMember, keys: Collection[str]
) -> set[str]:
    """
    Those of the package keys that ``proxy`` must not be asked about on behalf of the repository with these ``members``.

    A hosted one of them has or had them, also one that is switched off, and their versions are not merged; or their
    names are reserved.
    """
    hosted = [each.id for each in members if each.type is RepositoryType.HOSTED]
    return await catalog.scan(_find_private, hosted, proxy, keys)


def passes_searches(members: Sequence[Repository], proxy: FlatMember) -> bool:
    """
    Whether ``proxy`` may be asked for what a person searches in the repository with these ``members``.

    Each rule on the way decides. If there is none, it may unless a hosted flat is private: such a search may be for one
    of its packages.
    """
    switches = {rules.pass_searches for _, rules in proxy.rules} - {None}
    if switches:
        return False not in switches
    return not any(each.type is RepositoryType.HOSTED and each.is_private for each in members)


def _find_private(reader: Reader, hosted: Sequence[int], proxy: FlatMember, keys: Collection[str]) -> set[str]:
    return {
        key
        for key in keys
        if proxy.reserved_by(key) is not None
        or (not proxy.merges(key) and any(packages.ownership(reader, each, key) is not None for each in hosted))
    }
