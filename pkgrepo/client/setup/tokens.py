"""Tokens that are made for files of tools: they open one repository, and end by themselves."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from pkgrepo.client.api import Client
from pkgrepo.client.setup.state import KeptToken
from pkgrepo.client.tokens import create

DAYS: Final = 30  # of a token in a file, unless --days says otherwise
_PASSED_ON: Final = ("read", "write", "overwrite", "delete")  # those that clients of packages use


async def make_token(client: Client, repository: str, actions: Sequence[str], days: int | None) -> KeptToken:
    """
    Make a token that opens a repository for what its owner may do there with packages.

    Without ``days`` it ends with the token of the profile, if that is sooner than in ``DAYS``.

    :raises Failed: the server refuses it
    """
    may = [each for each in _PASSED_ON if each in actions] or ["read"]
    body: dict[str, Any] = {
        "name": f"pkgrepo setup on {socket.gethostname()}"[:100],
        "description": f"in files of tools that use {repository}",
        "repositories": [{"repository": repository, "actions": may}],
    }
    made = await create(client, body, timedelta(days=days or DAYS), is_fixed=days is not None)
    ends = made["expires_at"]
    return KeptToken(
        server=client.url,
        repository=repository,
        id=made["id"],
        text=made["token"],
        expires_at=msgspec.convert(ends, datetime) if ends else None,
    )
