"""
The networks of a client's address, by which everything is counted and limited that a client may do without credentials.

A customer of an IPv6 provider has at least 2**64 addresses (RFC 6177), often 2**80; a small provider has 2**96. So a
limit for a single address would be none.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Final

# Networks share a queue fairly at each of these prefix lengths; what a client does is counted for the last one.
IPV4_PREFIXES: Final = (16, 24, 32)
IPV6_PREFIXES: Final = (32, 48, 64)


@lru_cache(maxsize=1024)
def networks_of(address: str) -> tuple[Hashable, ...]:
    """The networks of an address, the largest first; text that is no address is its own network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return (address,)
    if not isinstance(found, IPv4Address):
        found = found.ipv4_mapped or found
    prefixes = IPV4_PREFIXES if isinstance(found, IPv4Address) else IPV6_PREFIXES
    return tuple(ip_network((found, prefix), strict=False) for prefix in prefixes)


def client_network(address: str) -> str:
    """The network for which a client is counted, such as 192.0.2.1/32 or 2001:db8:0:1::/64."""
    return str(networks_of(address)[-1])
