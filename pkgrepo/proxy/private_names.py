"""The packages about which upstreams are not asked, and not listened to, since they are our own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.storage.catalog.packages import packages

from .configuration import Rules
from .resolving.leaves import Leaf


async def find_private(catalog: ICatalog, leaves: Sequence[Repository], proxy: Leaf, keys: Collection[str]) -> set[str]:
    """
    Those of the package keys that ``proxy`` must not be asked about on behalf of the repository with these ``leaves``.

    A hosted one of them has them, also one that is switched off, or their names are reserved.
    """
    hosted = [each.id for each in leaves if each.type is RepositoryType.HOSTED]
    rules = [rules for _, rules in proxy.rules]
    return await catalog.scan(_find_private, hosted, rules, keys)


def _find_private(reader: Reader, hosted: Sequence[int], rules: Sequence[Rules], keys: Collection[str]) -> set[str]:
    return {
        key
        for key in keys
        if any(each.reserved_by(key) is not None for each in rules)
        or any(packages.package_serial(reader, each, key) is not None for each in hosted)
    }
