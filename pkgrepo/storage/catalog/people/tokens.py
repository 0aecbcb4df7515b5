"""Access tokens with their limits and their last use. Only the hash of a token's text is stored."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from attrs import evolve

from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM, Action, Pipeline, RepositoryScope, Token, TokenKind, TokenLimits, TokenUse
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.events import append_server_event
from pkgrepo.storage.catalog.rows import (
    at,
    at_or_none,
    dump,
    dump_words,
    every,
    find,
    load,
    non_null,
    number,
    optional_conditions,
    rows,
    to_ms,
)
from pkgrepo.storage.catalog.server import settings

from .users import bump_generation, bump_identity_serial


def _limits(scopes: str, repositories: str, packages: str, cidrs: str, expires_at: int | None) -> TokenLimits:
    return TokenLimits(
        scopes=frozenset(load(scopes)),
        repositories=tuple(
            RepositoryScope(
                repository=each["repository"],
                actions=frozenset(map(Action, each["actions"])),
                packages=tuple(each.get("packages", ())),
            )
            for each in load(repositories)
        ),
        packages=tuple(load(packages)),
        cidrs=tuple(load(cidrs)),
        expires_at=at_or_none(expires_at),
    )


def _pipeline(text: str) -> Pipeline | None:
    if not text:
        return None
    value = load(text)
    publishers = frozenset(value["publishers"])
    claims, projects = value.get("claims", {}), frozenset(value.get("projects", ()))
    return Pipeline(value["name"], value["issuer"], value["subject"], publishers, claims, projects)


_SELECT, _token = rows(
    Token,
    "token",
    limits=("scopes", "repositories", "packages", "cidrs", "expires_at", _limits),
    asked=lambda text: load(text) if text else None,
    pipeline=_pipeline,
)
DAY_MS = 86_400_000
WARNED_DAYS: Final = (14, 3)  # before a token expires
_ANNOUNCED = "tokens_announced_at"  # ms; until when tokens that expire were announced
NEVER_MS = 2**52  # later than any token expires
TOKEN_ORDERS: Final[Mapping[str, Order[Token]]] = both_ways(
    {
        "created_at": [("id", int, lambda each: each.id)],
        "name": [("name", str, lambda each: each.name), ("id", int, lambda each: each.id)],
        "expires_at": [
            (
                f"COALESCE(expires_at, {NEVER_MS})",
                int,
                lambda each: to_ms(each.limits.expires_at) if each.limits.expires_at else NEVER_MS,
            ),
            ("id", int, lambda each: each.id),
        ],
        "last_used_at": [
            ("COALESCE(last_used_at, 0)", int, lambda each: to_ms(each.last_used_at) if each.last_used_at else 0),
            ("id", int, lambda each: each.id),
        ],
    }
)


class TokenChanges(TypedDict, total=False):
    """What ``update_token`` can change."""

    name: str
    description: str
    limits: TokenLimits


def add_token(
    tx: Transaction,
    *,
    user_id: int,
    hash: bytes,
    shown: str,
    kind: TokenKind,
    name: str,
    now_ms: int,
    limits: TokenLimits | None = None,
    description: str = "",
    created_from: str = "",
    asked: Mapping[str, Any] | None = None,
    pipeline: Pipeline | None = None,
) -> Token:
    """
    Add a token for a user.

    ``hash`` is the sha256 of the token's whole text, ``shown`` the part of the text that lists show, ``created_from``
    the client's address. ``asked`` is what the client asked for, as JSON; it is stored for display only.
    """
    limits = limits or TokenLimits()
    token_id = tx.insert(
        """
        INSERT INTO token (uid, user_id, hash, shown, kind, name, description, scopes, repositories, packages, cidrs,
                           expires_at, created_at, created_from, asked, pipeline)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """,
        (
            str(uuid.uuid4()),
            user_id,
            hash,
            shown,
            kind,
            name,
            description,
            *_limit_columns(limits),
            now_ms,
            created_from,
            "" if asked is None else dump(asked),
            "" if pipeline is None else dump(_pipeline_column(pipeline)),
        ),
    )
    bump_identity_serial(tx)
    return get_token(tx, token_id)


def find_token(r: Reader, token_id: int) -> Token | None:
    """The token with this catalog key, or None. It may be revoked or expired."""
    return find(r, _token, f"{_SELECT} WHERE id = ?", (token_id,))


def find_token_by_uid(r: Reader, uid: str) -> Token | None:
    """The token with this public id, or None. It may be revoked or expired."""
    return find(r, _token, f"{_SELECT} WHERE uid = ?", (uid,))


def find_token_by_hash(r: Reader, hash: bytes) -> Token | None:
    """The token whose text has this sha256, or None. It may be revoked or expired."""
    return find(r, _token, f"{_SELECT} WHERE hash = ?", (hash,))


def get_token(r: Reader, token_id: int) -> Token:
    """
    The token with this catalog key.

    :raises NotFound: there is none
    """
    return existing(find_token(r, token_id), "token", str(token_id))


def list_tokens(
    r: Reader, user_id: int, *, after: Sequence[Value] = (), limit: int = 50, order: str = "created_at"
) -> list[Token]:
    """A page of a user's tokens in one of the ``TOKEN_ORDERS``, beginning after a position; also revoked ones."""
    sorting = TOKEN_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    sql = f"{_SELECT} WHERE user_id = ? {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _token, sql, (user_id, *after, limit))


# Of people with a password, no second factor and no passkey: those with a flag, or with 1 all.
_LACKING = """user_id IN (SELECT a.id FROM account a WHERE a.kind = 'person' AND a.password_hash <> ''
    AND (a.admin + a.user_manager + a.system_manager > 0 OR 1 = ?)
    AND NOT EXISTS (SELECT 1 FROM second_factor f WHERE f.account_id = a.id AND f.confirmed_at IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM passkey k WHERE k.account_id = a.id))"""
_WORKING = (
    "user_id = ?",
    "COALESCE(last_used_at, created_at) < ?",
    _LACKING,
    "(expires_at IS NULL OR expires_at > ?)",
)


def list_working_tokens(
    r: Reader,
    user_id: int | None,
    unused_since_ms: int | None,
    lacking: int | None,
    now_ms: int,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    order: str = "created_at",
) -> list[Token]:
    """
    A page of the tokens that work, of a user or of all, in one of the ``TOKEN_ORDERS``.

    With ``unused_since_ms`` only those that were neither used nor created since then. With ``lacking`` only those of
    people who have a password and neither a second factor nor a passkey: 0 of those with the flag of an admin or
    manager, 1 of all.
    """
    sorting = TOKEN_ORDERS[order]
    values = (user_id, unused_since_ms, lacking, now_ms)
    beyond = f"AND {sorting.beyond}" if after else ""
    sql = f"""{_SELECT} WHERE revoked_at IS NULL AND {optional_conditions(_WORKING, values)} {beyond}
        ORDER BY {sorting.by} LIMIT ?"""
    return every(r, _token, sql, (*non_null(values), *after, limit))


def count_working_tokens(
    r: Reader, user_id: int | None, unused_since_ms: int | None, lacking: int | None, now_ms: int
) -> int:
    """The number of tokens on all pages of ``list_working_tokens``."""
    values = (user_id, unused_since_ms, lacking, now_ms)
    sql = f"SELECT COUNT(*) FROM token WHERE revoked_at IS NULL AND {optional_conditions(_WORKING, values)}"
    return number(r, sql, non_null(values))


def count_tokens(r: Reader, user_id: int) -> int:
    """The number of a user's tokens, including revoked tokens."""
    return number(r, "SELECT COUNT(*) FROM token WHERE user_id = ?", (user_id,))


def update_token(tx: Transaction, token_id: int, **changes: Unpack[TokenChanges]) -> Token:
    """
    Change the given fields. A change of the limits also invalidates the short-lived tokens issued to the owner before.

    :raises NotFound: no such token
    """
    before = get_token(tx, token_id)
    after = evolve(before, **changes)
    tx.execute(
        """
        UPDATE token
        SET name = ?, description = ?, scopes = ?, repositories = ?, packages = ?, cidrs = ?, expires_at = ?
        WHERE id = ?
        """,
        (after.name, after.description, *_limit_columns(after.limits), token_id),
    )
    if after.limits != before.limits:
        bump_generation(tx, before.user_id)
    bump_identity_serial(tx)
    return get_token(tx, token_id)


def revoke_token(tx: Transaction, token_id: int, *, now_ms: int) -> Token:
    """
    Revoke a token, and invalidate the short-lived tokens issued to its owner before.

    The row stays, and lists still show it. A second revocation keeps the time of the first.

    :raises NotFound: no such token
    """
    token = get_token(tx, token_id)
    if token.revoked_at is None:
        tx.execute("UPDATE token SET revoked_at = ? WHERE id = ?", (now_ms, token_id))
        bump_generation(tx, token.user_id)
    return get_token(tx, token_id)


def record_use(tx: Transaction, uses: Iterable[TokenUse]) -> None:
    """
    Add a batch of uses to the counters of their tokens, and store the time, address and client of the last use.

    An empty address or client keeps the stored one. The identity serial stays, so caches stay valid.
    """
    for use in uses:
        tx.execute(
            """
            UPDATE token
            SET uses = uses + ?, last_used_at = ?, last_used_ip = COALESCE(NULLIF(?, ''), last_used_ip),
                last_used_client = COALESCE(NULLIF(?, ''), last_used_client)
            WHERE id = ?
            """,
            (use.count, use.at_ms, use.address, use.client, use.token_id),
        )


def _pipeline_column(pipeline: Pipeline) -> Mapping[str, Any]:
    return {
        "name": pipeline.name,
        "issuer": pipeline.issuer,
        "subject": pipeline.subject,
        "publishers": sorted(pipeline.publishers),
        "claims": dict(pipeline.claims),
        "projects": sorted(pipeline.projects),
    }


def _limit_columns(limits: TokenLimits) -> tuple[str, str, str, str, int | None]:
    repositories = [
        {"repository": each.repository, "actions": sorted(each.actions), "packages": list(each.packages)}
        for each in limits.repositories
    ]
    return (
        dump_words(limits.scopes),
        dump(repositories),
        dump(limits.packages),
        dump(limits.cidrs),
        to_ms(limits.expires_at),
    )


def announce_expiring(tx: Transaction, now_ms: int) -> int:
    """
    Append an event for each token that expires within ``WARNED_DAYS`` by now and did not at the last call.

    A token that lives shorter than that from the beginning gets none of that many days. Returns the number of events.
    """
    last_ms = int(settings.get(tx, _ANNOUNCED) or now_ms - DAY_MS)
    count = 0
    for days in WARNED_DAYS:
        found = tx.all(
            """
            SELECT t.uid, t.name, t.shown, t.expires_at, a.username FROM token t JOIN account a ON a.id = t.user_id
            WHERE t.expires_at > ? AND t.expires_at <= ? AND t.created_at <= t.expires_at - ?
                AND t.revoked_at IS NULL AND t.kind <> 'login' AND a.active = 1
            ORDER BY t.id
            """,
            (last_ms + days * DAY_MS, now_ms + days * DAY_MS, days * DAY_MS),
        )
        for uid, name, shown, expires_ms, username in found:
            expires_at = at(expires_ms).isoformat().replace("+00:00", "Z")
            data = {"name": name, "token": uid, "shown": shown, "user": username, "expires_at": expires_at}
            append_server_event(tx, "token.expiring", {**data, "days": days}, SYSTEM, now_ms)
        count += len(found)
    settings.put(tx, _ANNOUNCED, str(max(last_ms, now_ms)))  # a clock that goes back announces nothing twice
    return count
