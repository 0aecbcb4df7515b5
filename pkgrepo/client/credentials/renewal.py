"""``python -m pkgrepo.client.credentials.renewal PROFILE``: make a new short-lived token for a profile, and keep it."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from pkgrepo.client.api import Client
from pkgrepo.client.credentials.lending import LIFETIME, Lent, keep_lent, lent_file
from pkgrepo.client.http import Failed
from pkgrepo.client.printer import Printer
from pkgrepo.client.profiles import Profile, Target, find_profiles_file, read_profiles
from pkgrepo.client.session import Session, checked, run_with
from pkgrepo.client.tokens import create, revoke

ACTIONS: Final = ("read", "write", "overwrite", "delete")  # what clients of packages do; a token reaches no settings


def main() -> None:
    """Make and keep a token; print nothing. Exit codes as of other commands."""
    name = sys.argv[1]
    profiles = checked(lambda: read_profiles(find_profiles_file(os.environ)))
    profile = checked(lambda: profiles.get(name))
    target = Target(profile.url, f"Bearer {profile.token}", Path(profile.ca_file) if profile.ca_file else None)

    async def work(session: Session) -> None:
        await renew(session.client, name, profile)

    run_with(target, Printer(as_json=False), work)


async def renew(client: Client, name: str, profile: Profile) -> None:
    """
    Make a token for a profile, and keep it. One that cannot be kept is revoked: no program has it.

    :raises Failed: the server refuses it; :raises Conflict, OSError: it cannot be kept
    """
    lent = await make_short_lived(client, profile)
    try:
        before = keep_lent(lent_file(os.environ), name, lent)
    except BaseException:
        with suppress(Failed):
            await revoke(client, lent.id)
        raise
    # one that has hours left may be in use by a program that runs: it ends by itself
    if before is not None and before.id and before.made_by != lent.made_by:
        with suppress(Failed):
            await revoke(client, before.id)


async def make_short_lived(client: Client, profile: Profile) -> Lent:
    """
    Make a token for what the token of a profile may do with packages.

    One that reaches no repository but those it lists passes on these. :raises Failed: the server refuses it
    """
    body: dict[str, Any] = {"name": f"short-lived, of {socket.gethostname()}"[:100], "description": "for programs"}
    everywhere = [{"repository": "*", "actions": list(ACTIONS)}]
    try:
        made = await create(client, {**body, "repositories": everywhere}, LIFETIME, is_fixed=False)
    except Failed as refused:
        if refused.status != 403 or not profile.token_id:
            raise
        own = await client.get("user", "token", profile.token_id)
        listed = [
            {
                "repository": each["repository"],
                "actions": [action for action in each["actions"] if action in ACTIONS],
                "packages": each["packages"],
            }
            for each in own["repositories"]
        ]
        limits = {"packages": own["packages"], "cidrs": own["cidrs"], "repositories": listed}
        made = await create(client, {**body, **limits}, LIFETIME, is_fixed=False)
    return Lent(
        username=profile.username or made["owner"],
        token=made["token"],
        id=made["id"],
        made_by=profile.token_id,
        expires_at=msgspec.convert(made["expires_at"], datetime) if made["expires_at"] else None,
    )


if __name__ == "__main__":
    main()
