"""Tokens that are made with the token of a profile, for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed


async def create(client: Client, body: dict[str, Any], lifetime: timedelta, *, is_fixed: bool) -> Any:
    """
    Create a token for a time, or unless ``is_fixed`` for as long as the token of the profile lasts, if that is less.

    :raises Failed: the server refuses it
    """
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
