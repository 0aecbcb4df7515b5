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

from .hosts import is_host

_PAIR = re.compile(rb'[ \t]*([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^;,"\s]*))[ \t]*')
_PORT = re.compile(r":[0-9]{1,5}$")
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
    """What one proxy says of the request it got: from whom it came, and which address of ours was asked for."""

    node: str
    scheme: str = ""
    host: str = ""


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
        hops = _read_forwarded(request.fields)
        if hops is None:
            hops = _read_x_forwarded(request.fields)
        client, hop = self._look_through(hops, peer)
        outer_host = _with_port(hop.host or host, hop.scheme or scheme, _last(request.fields, b"x-forwarded-port"))
        return Via(client, f"{hop.scheme or scheme}://{outer_host}{_prefix(request.fields)}")

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

    def _look_through(self, hops: list[_Hop], peer: str) -> tuple[str, _Hop]:
        """The client, and what the outermost trusted proxy says; ``hops`` are in the order in which they were added."""
        known, outer = peer, _Hop("")
        for hop in reversed(hops):
            outer = hop  # added by a proxy that is trusted, or we would not be here
            if not _is_address(hop.node):
                break  # "unknown" or an obfuscated name: the proxy that says so is all we know
            known = hop.node
            if not self.trusts(known):
                break
        return known, outer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone means nothing elsewhere, and may hold anything


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


def _read_forwarded(fields: Mapping[bytes, bytes]) -> list[_Hop] | None:
    """``Forwarded`` (RFC 7239); an unreadable one counts for nothing."""
    text = fields.get(b"forwarded")
    if text is None:
        return None
    hops: list[_Hop] = []
    at, element = 0, dict[str, str]()
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            return None
        value = pair[2] if pair[2] is not None else pair[3]
        element[pair[1].decode("ascii").lower()] = value.decode("latin-1")
        at = pair.end()
        separator = text[at : at + 1]
        if separator in (b",", b""):
            hops.append(_checked(element.get("for", ""), element.get("proto", ""), element.get("host", "")))
            element = {}
        elif separator != b";":
            return None
        at += 1
    return hops


def _read_x_forwarded(fields: Mapping[bytes, bytes]) -> list[_Hop]:
    """
    The ``X-Forwarded-*`` family.

    Most proxies replace ``-Proto`` and ``-Host`` rather than append to them, so a list that is not as long as the
    list of addresses belongs, by its last entry, to all of them.
    """
    nodes = _list(fields, b"x-forwarded-for") or [""]
    schemes, hosts = _list(fields, b"x-forwarded-proto"), _list(fields, b"x-forwarded-host")
    count = len(nodes)
    schemes = schemes if len(schemes) == count else [_last(fields, b"x-forwarded-proto")] * count
    hosts = hosts if len(hosts) == count else [_last(fields, b"x-forwarded-host")] * count
    return [_checked(*hop) for hop in zip(nodes, schemes, hosts, strict=True)]


def _checked(node: str, scheme: str, host: str) -> _Hop:
    scheme = scheme.lower()
    return _Hop(
        node=_bare(node),
        scheme=scheme if scheme in ("http", "https") else "",
        host=host if is_host(host.encode("latin-1")) else "",
    )


def _with_port(host: str, scheme: str, port: str) -> str:
    """``host`` with the outer port, if it names none itself and the port is not the scheme's own."""
    if not _PORT.fullmatch(":" + port) or _PORT.search(host) or port == {"http": "80", "https": "443"}[scheme]:
        return host
    joined = f"{host}:{port}"
    return joined if is_host(joined.encode("latin-1")) else host


def _list(fields: Mapping[bytes, bytes], name: bytes) -> list[str]:
    text = fields.get(name, b"").decode("latin-1")
    return [entry.strip() for entry in text.split(",")] if text else []


def _last(fields: Mapping[bytes, bytes], name: bytes) -> str:
    entries = _list(fields, name)
    return entries[-1] if entries else ""


def _prefix(fields: Mapping[bytes, bytes]) -> str:
    prefix = _last(fields, b"x-forwarded-prefix").rstrip("/")
    return prefix if _PREFIX.fullmatch(prefix) else ""
