"""What upstreams are not asked, and what they say that is not shown, since it is about packages of our own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.storage.catalog.packages import packages

from .resolving.leaves import Leaf


async def find_private(catalog: ICatalog, leaves: Sequence[Repository], proxy: Leaf, keys: Collection[str]) -> set[str]:
    """
    Those of the package keys that ``proxy`` must not be asked about on behalf of the repository with these ``leaves``.

    A hosted one of them has or had them, also one that is switched off, and their versions are not merged; or their
    names are reserved.
    """
    hosted = [each.id for each in leaves if each.type is RepositoryType.HOSTED]
    return await catalog.scan(_find_private, hosted, proxy, keys)


def passes_searches(leaves: Sequence[Repository], proxy: Leaf) -> bool:
    """
    Whether ``proxy`` may be asked for what somebody searches in the repository with these ``leaves``.

    Each rule on the way decides. If there is none, it may unless a hosted leaf is private: such a search may be for one
    of its packages.
    """
    switches = {rules.pass_searches for _, rules in proxy.rules} - {None}
    if switches:
        return False not in switches
    return not any(each.type is RepositoryType.HOSTED and each.is_private for each in leaves)


def _find_private(reader: Reader, hosted: Sequence[int], proxy: Leaf, keys: Collection[str]) -> set[str]:
    rules = [rules for _, rules in proxy.rules]
    return {
        key
        for key in keys
        if any(each.reserved_by(key) is not None for each in rules)
        or (not proxy.merges(key) and any(packages.ownership(reader, each, key) is not None for each in hosted))
    }
