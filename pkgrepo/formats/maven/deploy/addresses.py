"""The addresses of deployments below a repository (pure)."""

from __future__ import annotations

import re
from typing import Final, Literal

from attrs import frozen

DEPLOY: Final = b"deploy"
_ID: Final = re.compile(rb"deploy/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:/(.*))?", re.DOTALL)
_PORTAL: Final = b"api/v1/publisher/"
_PORTAL_ID: Final = re.compile(rb"deployment/([0-9a-f-]{36})")

What = Literal["begin", "status", "publish", "file", "staged", "portal upload", "portal status", "portal deployment"]


@frozen
class Address:
    """
    What an address is of. ``uid`` is that of a deployment, ``path`` the raw rest behind it.

    ========  ===========================
    what      address
    ========  ===========================
    begin     ``deploy``
    status    ``deploy/<id>``
    publish   ``deploy/<id>/publish``
    staged    ``deploy/<id>/files/<path>``
    file      ``deploy/<id>/<file>``
    ========  ===========================

    The others are those of the public portal's publisher API.
    """

    what: What
    uid: str = ""
    path: bytes = b""


def find_address(raw: bytes) -> Address | None:
    """The address of a deployment at a raw path, or None; whether there is such a deployment, the catalog tells."""
    if raw in (DEPLOY, DEPLOY + b"/"):
        return Address("begin")
    if raw.startswith(_PORTAL):
        return _portal(raw.removeprefix(_PORTAL))
    match = _ID.fullmatch(raw)
    if match is None:
        return None
    return _of_deployment(match[1].decode("ascii"), match[2] or b"")


def _of_deployment(uid: str, rest: bytes) -> Address:
    if not rest:
        return Address("status", uid)
    if rest == b"publish":
        return Address("publish", uid)
    if rest.startswith(b"files/"):
        return Address("staged", uid, rest.removeprefix(b"files/"))
    return Address("file", uid, rest)


def _portal(rest: bytes) -> Address | None:
    if rest == b"upload":
        return Address("portal upload")
    if rest == b"status":
        return Address("portal status")
    match = _PORTAL_ID.fullmatch(rest)
    return None if match is None else Address("portal deployment", match[1].decode("ascii"))
