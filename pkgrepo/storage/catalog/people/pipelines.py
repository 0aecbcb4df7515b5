"""
What pipelines exchanged identity tokens for: tokens of one service account, which stands for all pipelines.

The account is created by the first exchange. It has no rights: the publishers of repositories decide. An administrator
may deactivate it, which ends the tokens of all pipelines.
"""

from __future__ import annotations

import itertools
from typing import Final

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Pipeline, Token, TokenKind, TokenLimits, User, UserKind
from pkgrepo.storage.catalog.rows import number
from pkgrepo.storage.catalog.server import settings

from .tokens import add_token
from .users import add_user, find_user_by_name, find_user_by_uid

USERNAME: Final = "pipelines"
KEPT_MS: Final = 7 * 86_400_000  # how long the rows of tokens stay after they have expired
_ACCOUNT: Final = "pipelines_account"


def add_pipeline_token(
    tx: Transaction,
    *,
    digest: bytes,
    identity_expires_ms: int,
    hash: bytes,
    shown: str,
    limits: TokenLimits,
    pipeline: Pipeline,
    created_from: str,
    now_ms: int,
) -> Token | None:
    """
    Exchange an identity token, which ``digest`` stands for, for a token; None if it was exchanged before.

    ``identity_expires_ms`` is when the identity token can be used no more.
    """
    if not spend_token(tx, digest, identity_expires_ms, now_ms=now_ms):
        return None
    return add_token(
        tx,
        user_id=_account(tx, now_ms).id,
        hash=hash,
        shown=shown,
        kind=TokenKind.CI,
        name=pipeline.name,
        limits=limits,
        created_from=created_from,
        now_ms=now_ms,
        pipeline=pipeline,
    )


def spend_token(tx: Transaction, digest: bytes, expires_ms: int, *, now_ms: int) -> bool:
    """Note that a signed token was used, until it expires; False if it was used before."""
    tx.execute("DELETE FROM exchanged_token WHERE expires_at < ?", (now_ms,))
    taken = tx.execute(
        "INSERT INTO exchanged_token (digest, expires_at) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
        (digest, expires_ms),
    )
    return bool(taken)


def remove_old_pipeline_tokens(tx: Transaction, *, now_ms: int) -> int:
    """Remove the rows of tokens of pipelines that expired ``KEPT_MS`` ago. Returns their number."""
    uid = settings.get(tx, _ACCOUNT)
    user_id = number(tx, "SELECT COALESCE(MAX(id), 0) FROM account WHERE uid = ?", (uid or "",))
    sql = "DELETE FROM token WHERE user_id = ? AND pipeline <> '' AND expires_at < ?"
    return tx.execute(sql, (user_id, now_ms - KEPT_MS))


def _account(tx: Transaction, now_ms: int) -> User:
    uid = settings.get(tx, _ACCOUNT)
    found = None if uid is None else find_user_by_uid(tx, uid)
    if found is not None:
        return found
    names = itertools.chain([USERNAME], (f"{USERNAME}-{number}" for number in itertools.count(2)))
    name = next(each for each in names if find_user_by_name(tx, each) is None)
    added = add_user(tx, username=name, kind=UserKind.SERVICE, name="Pipelines", now_ms=now_ms)
    settings.put(tx, _ACCOUNT, added.uid)
    return added
