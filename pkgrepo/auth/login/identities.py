"""The identity of a user whose credentials are verified, or were verified by an earlier request; user names."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from pkgrepo.auth.tokens.limits import in_force
from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import SYSTEM, Identity, Token, User
from pkgrepo.storage.catalog.people.pipelines import USERNAME as PIPELINES
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.people.users import find_user

# What the audit calls the server, callers without credentials, and the account of pipelines.
RESERVED = re.compile(rf"{SYSTEM.name}|anonymous|{PIPELINES}(?:-[0-9]+)?", re.ASCII | re.IGNORECASE)
_USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{2,31}", re.ASCII | re.IGNORECASE)


def identity_of(user: User, *, via: str, token: Token | None = None, session_id: int | None = None) -> Identity:
    """The identity of a user, or of the pipeline that has the token; ``via`` is the means of authentication."""
    pipeline = token.pipeline if token else None
    return Identity(
        user_id=user.id,
        username=pipeline.name if pipeline else user.username,
        admin=user.admin,
        user_manager=user.user_manager,
        system_manager=user.system_manager,
        via=via,
        token_id=token.id if token else None,
        limits=token.limits if token else None,
        generation=user.generation,
        session_id=session_id,
        pipeline=pipeline,
    )


def present_identity(r: Reader, user_id: int | None, token_id: int | None, now_s: float) -> Identity | None:
    """
    The identity of a user who has asked for something that is done later, with the rights of now.

    None if the user is gone or inactive, or the token is gone, revoked or expired.
    """
    user = None if user_id is None else find_user(r, user_id)
    if user is None or not user.active:
        return None
    if token_id is None:
        return identity_of(user, via="password")
    token = find_token(r, token_id)
    if token is None or token.user_id != user.id or not is_valid(token, now_s):
        return None
    return identity_of(user, via="token", token=token)


def is_valid(token: Token, now_s: float) -> bool:
    """Whether a token is neither revoked nor, at this time in seconds since the epoch, expired."""
    return token.revoked_at is None and in_force(token.limits, datetime.fromtimestamp(now_s, UTC))


def check_username(text: str) -> str:
    """
    Check a user name: 3 to 32 letters, digits, dots, underscores or hyphens, beginning with a letter or digit.

    Case is kept, but names that differ only by case are equal.

    :raises Invalid: it is not a user name, or the server has it for itself
    """
    if not _USERNAME.fullmatch(text):
        raise Invalid(
            "a user name has 3 to 32 letters, digits, '.', '_' or '-', and begins with a letter or digit", "/username"
        )
    if RESERVED.fullmatch(text):
        raise Invalid(f"the server uses the name {text!r} itself", "/username")
    return text
