"""
HTTP proxies for outgoing connections, from the environment: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case.

The standard library reads the variables (``urllib.request.getproxies_environment``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from attrs import field, frozen

from pkgrepo.errors import Invalid

from .addresses import is_loopback
from .urls import Target, parse_url


@frozen
class HttpProxy:
    """A proxy: where it is, and the value of Proxy-Authorization."""

    target: Target
    authorization: bytes | None = field(repr=False)


class ProxyChoice:
    """
    Which proxy a URL goes through.

    ``variables`` are URLs of proxies by scheme, and hosts without a proxy under "no": names, which stand for their
    subdomains as well, addresses, networks, or "*". This machine is never reached through a proxy.

    :raises Invalid: a proxy's URL cannot be used
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        self._proxies = {
            scheme: _parse_proxy(scheme, variables[scheme]) for scheme in ("http", "https") if variables.get(scheme)
        }

    def find(self, scheme: str, host: str) -> HttpProxy | None:
        """The proxy for a URL of this scheme and host; None: connect directly."""
        proxy = self._proxies.get(scheme)
        if proxy is None or is_loopback(host) or self._is_excepted(host):
            return None
        return proxy

    def _is_excepted(self, host: str) -> bool:
        if proxy_bypass_environment(host, self._variables):
            return True
        return any(_is_in_network(host, text.strip()) for text in self._variables.get("no", "").split(","))


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _parse_proxy(scheme: str, url: str) -> HttpProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, _, address = parts.netloc.rpartition("@")
    try:
        target = parse_url(f"{parts.scheme}://{address}")
    except ValueError as error:
        raise Invalid(f"the URL of the proxy for {scheme}, from the environment, cannot be used: {error}") from None
    authorization = b"Basic " + b64encode(unquote(user).encode()) if user else None
    return HttpProxy(target, authorization)
