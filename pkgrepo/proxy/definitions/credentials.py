"""
Passwords and tokens of routes.

They are sealed before a configuration is stored, for the origin and user name that they were given for: changing the
address of a route needs them again, so that whoever may edit a repository cannot have them sent elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.proxy.routes import Credentials, Route
from pkgrepo.proxy.urls import Target, parse_url
from pkgrepo.storage.secret_box import SecretBox

MASK = "***"  # a secret in answers; sent back, it stands for the stored one

Config = Mapping[str, Any]  # the fixed object of a configuration
_Route = dict[str, Any]


def seal_credentials(config: Config, box: SecretBox, before: Config | None = None) -> Config:
    """
    The configuration with its secrets sealed; a masked one is taken from the same route of ``before``.

    :raises Invalid: a secret is masked, and ``before`` has no route with its origin and user name
    """
    sealed = deepcopy(dict(config))
    for index, route, key in _secrets(sealed):
        context = _context(parse_url(route["url"]), route["auth"].get("username"))
        if route["auth"][key] == MASK:
            route["auth"][key] = _stored(before, route, key, context, f"/proxy/routes/{index}/auth/{key}")
        else:
            route["auth"][key] = box.seal(route["auth"][key], context)
    return sealed


def mask_credentials(config: Config) -> dict[str, Any]:
    """The configuration as people may see it."""
    masked = deepcopy(dict(config))
    for _, route, key in _secrets(masked):
        route["auth"][key] = MASK
    return masked


def authorization_of(route: Route, box: SecretBox) -> str | None:
    """
    The value of the Authorization field for the origin of a route (RFC 7617, RFC 6750); None without credentials.

    :raises SecretUnreadable: the server's key was replaced
    """
    if route.credentials is None:
        return None
    username, secret = route.credentials.username, open_secret(route.credentials, route.target, box)
    if username is None:
        return f"Bearer {secret}"
    return f"Basic {b64encode(f'{username}:{secret}'.encode()).decode('ascii')}"


def open_secret(credentials: Credentials, target: Target, box: SecretBox) -> str:
    """The password or token itself. :raises SecretUnreadable: the server's key was replaced"""
    return box.open(credentials.sealed, _context(target, credentials.username))


def _secrets(config: Config) -> Iterator[tuple[int, _Route, str]]:
    """Each route that has a secret: its index, the route, and the key of the secret in its ``auth``."""
    for index, route in enumerate(config.get("proxy", {}).get("routes", ())):
        for key in {"password", "token"} & {*route.get("auth", ())}:
            yield index, route, key


def _stored(before: Config | None, route: _Route, key: str, context: str, pointer: str) -> str:
    """The sealed secret of a route of ``before``; of several with the same context, that of the same URL if any."""
    found = [
        each
        for _, each, kind in _secrets(before or {})
        if kind == key and _context(parse_url(each["url"]), each["auth"].get("username")) == context
    ]
    if not found:
        raise Invalid(f"{MASK} stands for the stored {key}, and there is none for this address and user", pointer)
    same = next((each for each in found if each["url"] == route["url"]), found[0])
    return str(same["auth"][key])


def _context(target: Target, username: str | None) -> str:
    return f"route {target.scheme}://{target.host}:{target.port} {username or ''}"
