"""Tokens that are made with the token of a profile, for a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed

# It goes into files of tools, of which some are programs, and others have what stands in ${} replaced.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")


async def create(client: Client, body: dict[str, Any], lifetime: timedelta, *, is_fixed: bool) -> Any:
    """
    Create a token for a time, or unless ``is_fixed`` for as long as the token of the profile lasts, if that is less.

    :raises Failed: the server refuses it, or calls something a token that is none
    """
    made = await _made(client, body, lifetime, is_fixed=is_fixed)
    if not _TOKEN.fullmatch(made["token"]):
        raise Failed("the server has made a token with characters that no token has")
    return made


async def _made(client: Client, body: dict[str, Any], lifetime: timedelta, *, is_fixed: bool) -> Any:
    end = (datetime.now(UTC) + lifetime).isoformat()
    try:
        return await client.change("POST", "user", "token", body={**body, "expires_at": end})
    except Failed as refused:
        if is_fixed or refused.status not in (403, 422, 400):
            raise
    made = await client.change("POST", "user", "token", body=body)
    if made["expires_at"] and msgspec.convert(made["expires_at"], datetime) > datetime.now(UTC) + lifetime:
        await client.change("DELETE", "user", "token", made["id"])  # it was refused for another reason
        raise Failed("the server makes no token that ends so soon")
    return made


async def revoke(client: Client, token_id: str) -> bool:
    """Revoke a token; whether that was possible. One that has ended needs nothing."""
    try:
        await client.change("DELETE", "user", "token", token_id)
    except Failed as refused:
        return refused.status == 404
    return True
