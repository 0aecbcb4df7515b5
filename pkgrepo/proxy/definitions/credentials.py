"""
Passwords and tokens of routes.

They are sealed before a configuration is stored, for the origin, user name and hosts that they were given for: changing
the address of a route needs them again, so that an editor of a repository cannot have them sent elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pkgrepo.errors import Invalid, SecretUnreadable, UpstreamMisconfigured
from pkgrepo.outbound.urls import Target, parse_url
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.storage.secret_box import SecretBox

MASK = "***"  # a secret in answers; sent back, it stands for the stored one

SECRETS = frozenset({"password", "token"})  # keys of ``auth``

Config = Mapping[str, Any]  # the fixed object of a configuration, or a route in it


def seal_credentials(config: Config, box: SecretBox, before: Config | None = None) -> Config:
    """
    The configuration with its secrets sealed; a masked one is taken from the same route of ``before``.

    :raises Invalid: a secret is masked, and ``before`` has no route with its origin and user name
    """

    def seal(index: int, route: Config, key: str) -> str:
        if route["auth"][key] == MASK:
            return _stored(before or {}, route, key, f"/proxy/routes/{index}/auth/{key}")
        return box.seal(route["auth"][key], _context(route))

    return _with_secrets(config, seal)


def mask_credentials(config: Config) -> dict[str, Any]:
    """The configuration as people may see it."""
    return _with_secrets(config, lambda *_: MASK)


def authorization_of(route: Route, box: SecretBox) -> str | None:
    """
    The value of the Authorization field for the origin of a route (RFC 7617, RFC 6750); None without credentials.

    :raises UpstreamMisconfigured: it cannot be decrypted, because the key of the server was replaced
    """
    if route.credentials is None:
        return None
    username = route.credentials.username
    try:
        secret = box.open(
            route.credentials.sealed, _context_of(route.target, username, dict(route.hosts), route.token_hosts)
        )
    except SecretUnreadable:
        reason = "its credentials are not those of this server's key; set them again"
        raise UpstreamMisconfigured(route.name, reason) from None
    if username is None:
        return f"Bearer {secret}"
    return f"Basic {b64encode(f'{username}:{secret}'.encode()).decode('ascii')}"


def _with_secrets(config: Config, replace: Callable[[int, Config, str], str]) -> dict[str, Any]:
    """The configuration with each secret replaced; the function gets the index of the route, the route, and a key."""
    if "proxy" not in config:
        return dict(config)
    routes = [
        route
        if "auth" not in route
        else {
            **route,
            "auth": {
                key: replace(index, route, key) if key in SECRETS else value for key, value in route["auth"].items()
            },
        }
        for index, route in enumerate(config["proxy"]["routes"])
    ]
    return {**config, "proxy": {**config["proxy"], "routes": routes}}


def _stored(before: Config, route: Config, key: str, pointer: str) -> str:
    """The sealed secret of a route of ``before``; of several with the same context, that of the same URL if any."""
    found = [
        each
        for each in before.get("proxy", {}).get("routes", ())
        if key in each.get("auth", ()) and _context(each) == _context(route)
    ]
    if not found:
        raise Invalid(f"{MASK} stands for the stored {key}, and there is none for this address and user", pointer)
    same = next((each for each in found if each["url"] == route["url"]), found[0])
    return str(same["auth"][key])


def _context(route: Config) -> str:
    token_hosts = [each.lower() for each in route.get("token_hosts", ())]
    return _context_of(parse_url(route["url"]), route["auth"].get("username"), route.get("hosts", {}), token_hosts)


def _context_of(target: Target, username: str | None, hosts: Mapping[str, str], token_hosts: Sequence[str]) -> str:
    context = f"route {target.scheme}://{target.host}:{target.port} {username or ''}"
    # the token service of a registry gets the credentials where these say that it is
    if hosts:
        context += f" {sorted(hosts.items())}"
    return f"{context} {sorted(token_hosts)}" if token_hosts else context
