"""
Who asked, and under which of our addresses, when requests come through proxies.

A proxy's word counts only when the proxy is trusted. Addresses are read from the right, where our own proxies append:
the first one that is not a trusted proxy is the client. Everything further left is what the client claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

from attrs import frozen

_PAIR = re.compile(rb'[ \t]*([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^;,"\s]*))[ \t]*')
_HOST = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")


@frozen
class Via:
    """The client's IP address and ``scheme://host[/prefix]`` as the client typed it."""

    client_address: str
    base_url: str


class Asked(Protocol):
    """What is needed of a request."""

    fields: dict[bytes, bytes]

    @property
    def authority(self) -> bytes | None:
        """Host and port as the head says."""

    def isSecure(self) -> bool:
        """Whether TLS ends at us."""

    @property
    def client(self) -> object:
        """The peer's address."""

    @property
    def host(self) -> object:
        """Our end's address."""


@frozen
class _Hop:
    """What the proxies say: the chain of addresses from the client to us, and the outer address of the server."""

    chain: tuple[str, ...]
    scheme: str = ""
    host: str = ""
    prefix: str = ""


class TrustedProxies:
    """The networks whose proxies are believed; ``"unix"`` among them stands for peers on a Unix socket."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        names = list(networks)
        self._unix = "unix" in names
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(name) for name in names if name != "unix"]
        self._trusts_address = lru_cache(maxsize=1024)(self._look_up)

    def resolve(self, request: Asked) -> Via:
        """The client behind ``request`` and the address it used."""
        peer = getattr(request.client, "host", "")
        scheme = "https" if request.isSecure() else "http"
        host = (request.authority or b"").decode("ascii") or _local_host(request.host)
        if not self.trusts(peer):
            return Via(peer, f"{scheme}://{host}")
        hop = _read_forwarded(request.fields) or _read_x_forwarded(request.fields, host, scheme)
        client = self._client((*hop.chain, peer))
        return Via(client, f"{hop.scheme or scheme}://{hop.host or host}{hop.prefix}")

    def trusts(self, address: str) -> bool:
        """Whether a peer of this address is one of our proxies; an empty one means a Unix socket."""
        if not address:
            return self._unix
        return bool(self._networks) and self._trusts_address(address)

    def _look_up(self, address: str) -> bool:
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)

    def _client(self, chain: tuple[str, ...]) -> str:
        known = ""
        for address in reversed(chain):
            if address and not _is_address(address):
                break  # "unknown" or an obfuscated name: the proxy behind it is all we know
            known = address or known
            if address and not self.trusts(address):
                break
        return known


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _local_host(host: object) -> str:
    name, port = getattr(host, "host", "localhost"), getattr(host, "port", None)
    name = f"[{name}]" if ":" in name else name
    return f"{name}:{port}" if port is not None else name


def _bare(node: str) -> str:
    """The address of a node that may carry a port: ``1.2.3.4:80``, ``[::1]:80``, ``::1``."""
    node = node.strip()
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node


def _read_forwarded(fields: Mapping[bytes, bytes]) -> _Hop | None:
    """``Forwarded`` (RFC 7239); an unreadable one counts for nothing."""
    text = fields.get(b"forwarded")
    if text is None:
        return None
    chain: list[str] = []
    outer: dict[str, str] = {}
    at, element = 0, dict[str, str]()
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            return None
        value = pair[2] if pair[2] is not None else pair[3]
        element[pair[1].decode().lower()] = value.decode("latin-1")
        at = pair.end()
        if at == len(text) or text[at : at + 1] == b",":
            chain.append(_bare(element.get("for", "unknown")))
            outer = element  # the last one was added by the proxy next to us
            element = {}
        elif text[at : at + 1] != b";":
            return None
        at += 1
    return _checked(tuple(chain), outer.get("proto", ""), outer.get("host", ""), _prefix(fields))


def _read_x_forwarded(fields: Mapping[bytes, bytes], host: str, scheme: str) -> _Hop:
    """The ``X-Forwarded-*`` family; of a list in all but ``-For`` the last entry is our own proxy's."""
    chain = fields.get(b"x-forwarded-for", b"").decode("latin-1")
    outer_scheme = _last(fields, b"x-forwarded-proto") or scheme
    outer_host = _last(fields, b"x-forwarded-host") or host
    port = _last(fields, b"x-forwarded-port")
    has_port = re.search(r":[0-9]+$", outer_host) is not None
    if port.isdigit() and not has_port and port != {"http": "80", "https": "443"}.get(outer_scheme):
        outer_host = f"{outer_host}:{port}"
    nodes = tuple(_bare(node) for node in chain.split(",")) if chain else ()
    return _checked(nodes, outer_scheme, outer_host, _prefix(fields))


def _checked(chain: tuple[str, ...], scheme: str, host: str, prefix: str) -> _Hop:
    scheme = scheme.lower()
    return _Hop(
        chain=chain,
        scheme=scheme if scheme in ("http", "https") else "",
        host=host if _HOST.fullmatch(host) else "",
        prefix=prefix,
    )


def _last(fields: Mapping[bytes, bytes], name: bytes) -> str:
    return fields.get(name, b"").decode("latin-1").rpartition(",")[2].strip()


def _prefix(fields: Mapping[bytes, bytes]) -> str:
    prefix = _last(fields, b"x-forwarded-prefix").rstrip("/")
    return prefix if _PREFIX.fullmatch(prefix) else ""
