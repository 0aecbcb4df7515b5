"""
The client's address and our own when requests come through proxies (Forwarded, X-Forwarded-*).

These fields count only when a trusted proxy sent them, and only those of the one kind that our proxies set: a proxy
passes on the others as the client wrote them. Addresses are read from the right, where our own proxies append: the
first one that is not a trusted proxy is the client. Everything to the left of it is only what the client claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal, Protocol

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.http.reading.head import is_host

ForwardedHeader = Literal["X-Forwarded-For", "Forwarded"]
"""Where our proxies name clients; X-Forwarded-Proto, -Host, -Port and -Prefix belong to the first."""

_log = Logger()

_PAIR = re.compile(rb'[ \t]*([A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^;,"\s]*))[ \t]*')
_PORT = re.compile(r":[0-9]{1,5}$")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")


@frozen
class Addresses:
    """The client's IP address and ``scheme://host[/prefix]`` as the client typed it."""

    client_address: str
    base_url: str


class ForwardedRequest(Protocol):
    """What is read of a request."""

    fields: dict[bytes, bytes]

    @property
    def authority(self) -> bytes | None:
        """Host and port, from the head."""

    def isSecure(self) -> bool:
        """Whether the connection has TLS that ends in this process."""

    @property
    def client(self) -> object:
        """The peer's address."""

    @property
    def host(self) -> object:
        """Our end's address."""


@frozen
class _Hop:
    """One entry of the forwarding fields: the address it came from, and the scheme and host that were asked for."""

    node: str
    scheme: str = ""
    host: str = ""


class TrustedProxies:
    """
    The networks whose proxies are trusted, and the header field in which they name clients.

    ``"unix"`` among the networks stands for peers on a Unix socket. Who asked for the host of an https ``public_url``
    did so by https: a proxy that ends TLS need not be trusted, nor say so.
    """

    def __init__(
        self, networks: Iterable[str] = (), header: ForwardedHeader = "X-Forwarded-For", *, public_url: str = ""
    ) -> None:
        self._header = header
        scheme, _, rest = public_url.partition("://")
        self._https_host = rest.partition("/")[0].lower() if scheme == "https" else ""
        self._report = lru_cache(maxsize=1024)(self._report_once)
        names = list(networks)
        self._unix = "unix" in names
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(name) for name in names if name != "unix"]
        self._trusts_address = lru_cache(maxsize=1024)(self._look_up)

    def resolve(self, request: ForwardedRequest) -> Addresses:
        """The client behind ``request`` and the address it used."""
        peer = getattr(request.client, "host", "")
        scheme = "https" if request.isSecure() else "http"
        host = (request.authority or b"").decode("ascii") or _local_host(request.host)
        if not self.trusts(peer):
            return Addresses(peer, f"{self._scheme(scheme, host)}://{host}")
        fields = request.fields
        forwarded, x_forwarded = _read_forwarded(fields), _read_x_forwarded(fields)
        hops, ignored = (forwarded, x_forwarded) if self._header == "Forwarded" else (x_forwarded, forwarded)
        client, hop = self._find_client(hops, peer)
        if any(other.node for other in ignored) and self._find_client(ignored, peer)[0] != client:
            self._report(peer)
        port = prefix = ""
        if self._header == "X-Forwarded-For":
            port, prefix = _last(fields, b"x-forwarded-port"), _prefix(fields)
        said = hop.scheme or scheme
        outer_host = _with_port(hop.host or host, said, port)
        return Addresses(client, f"{self._scheme(said, outer_host)}://{outer_host}{prefix}")

    def _scheme(self, said: str, host: str) -> str:
        return "https" if host.lower() == self._https_host else said

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

    def _report_once(self, peer: str) -> None:
        """Log a contradiction; once for each proxy, as clients may cause any number of them."""
        ignored = "X-Forwarded-For" if self._header == "Forwarded" else "Forwarded"
        _log.warn(
            "the proxy {peer} passed on a header {ignored} that names another client than {used} does. It is ignored. "
            "If the proxy sets it, name it in server.forwarded_header; otherwise let the proxy remove it",
            peer=peer or "at the Unix socket",
            ignored=ignored,
            used=self._header,
        )

    def _find_client(self, hops: list[_Hop], peer: str) -> tuple[str, _Hop]:
        """The client, and the outermost trusted proxy's entry; ``hops`` are in the order in which they were added."""
        known, outer = peer, _Hop("")
        for hop in reversed(hops):
            outer = hop  # added by a trusted proxy: the one before it in this loop, or the peer
            if not _is_address(hop.node):
                break  # "unknown" or an obfuscated name: no more is known than the proxy that wrote it
            known = hop.node
            if not self.trusts(known):
                break
        return known, outer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone means nothing on another machine, and may hold anything


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


def _read_forwarded(fields: Mapping[bytes, bytes]) -> list[_Hop]:
    """
    The entries of ``Forwarded`` (RFC 7239).

    No address, scheme or host has a comma, so the text is cut at all of them: what a client has written, such as a
    quote without an end, cannot hide the entries that proxies append. A malformed entry has no address.
    """
    text = fields.get(b"forwarded")
    return [] if text is None else [_read_element(element) for element in text.split(b",")]


def _read_element(text: bytes) -> _Hop:
    values: dict[str, str] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or text[pair.end() : pair.end() + 1] not in (b";", b""):
            return _Hop("")
        values[pair[1].decode("ascii").lower()] = (pair[2] if pair[2] is not None else pair[3]).decode("latin-1")
        at = pair.end() + 1
    return _checked(values.get("for", ""), values.get("proto", ""), values.get("host", ""))


def _read_x_forwarded(fields: Mapping[bytes, bytes]) -> list[_Hop]:
    """
    The entries of the ``X-Forwarded-*`` fields.

    Most proxies replace ``-Proto`` and ``-Host`` instead of appending to them. So where such a list is not as long as
    the list of addresses, its last entry applies to all of them.
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
    """``host`` with the port of the outer proxy, unless it has one or the port is the scheme's default."""
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
