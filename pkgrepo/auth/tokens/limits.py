"""
Limits of a token, independent of its owner's rights.

Globs are L{patterns<pkgrepo.auth.patterns>}. Those of repositories ignore case; those of packages are matched against
the package's key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from pkgrepo.auth.patterns import check_repositories, matcher
from pkgrepo.errors import Invalid
from pkgrepo.model import Action, Extent, RepositoryScope, TokenLimits

SERVER_SCOPES = frozenset({"api:read", "api:write", "users", "system", "metrics", "audit"})

# Checked before the name is known (twine and gem send it in the body) and again when it is.
NAMED_LATER = frozenset({Action.WRITE, Action.OVERWRITE, Action.DELETE})

NOWHERE = RepositoryScope(repository="", actions=frozenset())  # matches no repository


def packages_of(limits: TokenLimits | None, path: str) -> tuple[str, ...]:
    """The globs for packages to which limits narrow what is allowed in the repository ``storage/name``; empty: none."""
    if limits is None:
        return ()
    there = [each for each in limits.repositories if matcher(each.repository.casefold())(path.casefold())]
    if limits.packages or not there or not all(each.packages for each in there):
        return tuple(limits.packages)
    return tuple(dict.fromkeys(glob for each in there for glob in each.packages))


def in_force(limits: TokenLimits, now: datetime) -> bool:
    """Whether the limits have not expired at ``now``."""
    return limits.expires_at is None or now < limits.expires_at


def allows(limits: TokenLimits, action: Action, path: str, package: str | Extent | None) -> bool:
    """
    Whether the limits allow an action in the repository ``storage/name``.

    Without a package, limits to certain packages allow only actions that are checked again with the name. Actions on
    the whole repository, including the list of names, need limits without package globs. For ``Extent.SOME`` any glob
    suffices.
    """
    if not covers(limits.packages, action, package):
        return False
    if not limits.repositories:
        return True
    path = path.casefold()
    return any(
        action in scope.actions
        and matcher(scope.repository.casefold())(path)
        and covers(scope.packages, action, package)
        for scope in limits.repositories
    )


def address_allowed(limits: TokenLimits, address: str) -> bool:
    """Whether the limits allow a client address. Text that is no address is allowed only without networks."""
    if not limits.cidrs:
        return True
    found = _address(address)
    return found is not None and any(found in _network(cidr) for cidr in limits.cidrs)


def check_limits(limits: TokenLimits) -> TokenLimits:
    """
    Check limits before they are stored.

    :raises Invalid: an unknown server scope, a malformed network, or a glob that can match nothing
    """
    for scope in sorted(limits.scopes - SERVER_SCOPES):
        raise Invalid(f"unknown scope {scope!r}; there are {', '.join(sorted(SERVER_SCOPES))}", "/scopes")
    for index, cidr in enumerate(limits.cidrs):
        try:
            _network(cidr)
        except ValueError:
            raise Invalid(f"{cidr!r} is not an IP network", f"/cidrs/{index}") from None
    for index, glob in enumerate(limits.packages):
        if not glob:
            raise Invalid("an empty pattern matches no package", f"/packages/{index}")
    for index, each in enumerate(limits.repositories):
        check_repositories(each.repository, f"/repositories/{index}/repository")
    return limits


def literal(name: str) -> str:
    """The glob that matches exactly this name."""
    return re.sub(r"([*?[])", r"[\1]", name)


def covers(globs: Sequence[str], action: Action, package: str | Extent | None) -> bool:
    """Whether an action on a package is within globs for packages, of which none at all stand for every package."""
    if not globs or package is Extent.SOME:
        return True
    if package is None:
        return action in NAMED_LATER
    return any(matcher(glob)(package) for glob in globs)


@lru_cache(maxsize=1024)
def _network(cidr: str) -> IPv4Network | IPv6Network:
    return ip_network(cidr, strict=False)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # a dual-stack socket reports IPv4 clients as mapped addresses
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
