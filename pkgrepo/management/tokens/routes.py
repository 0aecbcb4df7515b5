"""The routes to the caller's own access tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from attrs import evolve

from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.errors import AuthenticationRequired, Conflict, Invalid, NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, check_no_bearer
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Table, sorting
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Token, TokenKind, TokenLimits
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.storage.catalog.people import canaries, tokens

from .limits import check_not_wider, expiry, is_cut, limits_of, narrowed
from .schema import AskedRecord, NewToken, NewTokenRecord, Rotation, TokenChange, TokenRecord

table = Table("tokens")


@table.get(
    "/user/token",
    ACCOUNT_HOLDERS,
    "List the caller's tokens",
    query=[sorting(tokens.TOKEN_ORDERS, "created_at")],
    aliases=[("GET", "/user/token/list")],
)
async def list_tokens(call: Call) -> Page[TokenRecord]:
    """With revoked and expired ones. Who never expires is last by expiry, who was never used first by last use."""
    owner = _owner(call)
    return await call.page(
        tokens.list_tokens,
        owner,
        by=call.order(tokens.TOKEN_ORDERS, "created_at"),
        show=lambda token: TokenRecord.of(token, call.identity.username, told=True),
        count=(tokens.count_tokens, owner),
    )


@table.post(
    "/user/token", ACCOUNT_HOLDERS, "Create a token", audit="token.create", aliases=[("POST", "/user/token/create")]
)
async def create_token(call: Call, body: NewToken) -> Created[NewTokenRecord]:
    """The new token cannot allow more than the token that the caller uses. Bearer tokens are refused (403)."""
    token, text = await issue(call, body, _owner(call))
    record = NewTokenRecord.of(token, call.identity.username, told=True, token=text, notes=list(call.request.notes))
    return Created(record, f"/api/user/token/{token.uid}")


async def issue(call: Call, body: NewToken, owner: int) -> tuple[Token, str]:
    """
    Create a token of a user, which allows no more than the token that the caller uses. Returns it with its text.

    :raises Forbidden: the caller uses a bearer token, or a token that allows less; :raises Invalid: a limit is wrong
    """
    check_no_bearer(call.identity)
    repositories = body.repositories if body.repositories is not None else body.repository_scopes
    limits = await limits_of(
        call.registry,
        call.knows,
        scopes=body.scopes,
        repositories=repositories,
        packages=body.packages,
        cidrs=body.cidrs,
    )
    if body.canary and owner != call.identity.user_id:
        raise Invalid("a canary is a token of your own", "/canary")
    timed = body.expires_at is not None or body.expires_in_days is not None
    lasting = body.canary and not timed  # what opens nothing need not end
    expires_at = expiry(body, from_ms(call.now_ms), call.identity.limits, call.services.token_max_days)
    if not lasting and is_cut(body, expires_at, from_ms(call.now_ms), call.services.token_max_days):
        call.request.notes += (
            f"the token ends on {format_time(expires_at)}, as the one with which it is made: log in to the console, or "
            "use the password, to make one that lasts longer",
        )
    check_not_wider(evolve(limits, expires_at=expires_at), call.identity.limits)
    limits = evolve(limits, expires_at=None if lasting else expires_at)
    text = make_token(body.kind)
    detail: dict[str, Any] = {"kind": body.kind, "scopes": sorted(limits.scopes)}
    asked = msgspec.to_builtins(AskedRecord(scopes=body.scopes, repositories=repositories))
    if body.canary:
        detail["canary"] = asked["canary"] = True
    if owner != call.identity.user_id:
        detail["owner"] = call.object
    token = await call.write(
        call.entry(body.name, detail),
        tokens.add_token,
        user_id=owner,
        hash=hash_token(text),
        shown=shown_part(text),
        kind=body.kind,
        name=body.name,
        description=body.description,
        limits=limits,
        created_from=call.request.client_address,
        now_ms=call.now_ms,
        asked=asked,
    )
    return token, text


@table.get(
    "/user/token/<id>", ACCOUNT_HOLDERS, "Show one of the caller's tokens", aliases=[("GET", "/user/token/get/<id>")]
)
async def show_token(call: Call, id: str) -> TokenRecord:
    """The text of the token is not returned."""
    return TokenRecord.of(await _find(call, id), call.identity.username, told=True)


@table.patch(
    "/user/token/<id>", ACCOUNT_HOLDERS, "Rename a token, or reduce its limits", audit="token.update", conditional=True
)
async def change_token(call: Call, body: TokenChange, id: str) -> TokenRecord:
    """Limits can only be reduced (403 otherwise); more rights need a new token."""
    token = await _find(call, id)
    call.check_unchanged(TokenRecord.of(token, call.identity.username, told=True))
    changes = body.given("name", "description")
    limits = await narrowed(call.registry, call.knows, token.limits, body)
    if limits != token.limits:
        check_not_wider(limits, token.limits)
        changes["limits"] = limits
    if changes:
        entry = call.entry(token.name, {"changed": sorted(changes)})
        token = await call.write(entry, tokens.update_token, token.id, **changes)
    return TokenRecord.of(token, call.identity.username, told=True)


@table.delete(
    "/user/token/<id>",
    ACCOUNT_HOLDERS,
    "Revoke a token",
    audit="token.revoke",
    aliases=[("DELETE", "/user/token/delete/<id>")],
)
async def revoke_token(call: Call, id: str) -> None:
    """Takes effect at once and cannot be undone. The token stays in the list."""
    token = await _find(call, id)
    await call.write(call.entry(token.name), tokens.revoke_token, token.id, now_ms=call.now_ms)


@table.post("/user/token/<id>/rotate", ACCOUNT_HOLDERS, "Replace a token by one with a new text", audit="token.rotate")
async def rotate_token(call: Call, body: Rotation, id: str) -> Created[NewTokenRecord]:
    """
    Creates a token with the same name, limits and lifetime, and revokes the old one, after grace_s if that is set.

    The answer is 409 for tokens that are revoked or expired. Bearer tokens are refused (403).
    """
    check_no_bearer(call.identity)
    token = await _find(call, id)
    if token.revoked_at is not None:
        raise Conflict(f"token {token.name!r} is revoked")
    limits = token.limits
    now = from_ms(call.now_ms)
    if limits.expires_at is not None:
        if limits.expires_at <= now:
            raise Conflict(f"token {token.name!r} has expired")
        limits = evolve(limits, expires_at=now + (limits.expires_at - token.created_at))
    if call.identity.token_id != token.id:
        check_not_wider(limits, call.identity.limits)
    text = make_token(token.kind)
    fresh = await call.write(
        call.entry(token.name, {"grace_s": body.grace_s}),
        _rotate,
        token,
        limits,
        text,
        grace_s=body.grace_s,
        call=call,
    )
    return Created(
        NewTokenRecord.of(fresh, call.identity.username, told=True, token=text), f"/api/user/token/{fresh.uid}"
    )


class RingRecord(Record):
    """A use of a canary token, which was refused; further ones from its address in that minute are not listed."""

    token: Annotated[str, meaning("The id of the token.")]
    name: Annotated[str, meaning("The name of the token.")]
    owner: Annotated[str, meaning("The name of its owner.")]
    at: Annotated[datetime, meaning("When it was used.")]
    address: Annotated[str, meaning("The address of the client.")]
    road: Annotated[str, meaning("What it was used for: method and path.")]
    client: Annotated[str, meaning("The program, as it calls itself.")]


@table.command(
    "token rings",
    columns="USED: at:ago | TOKEN: name | OWNER: owner | ADDRESS: address | FOR: road | CLIENT: client",
    nothing="no canary token was used",
    about="List the uses of your canary tokens, and for admins of those of everyone.",
)
@table.get("/user/canary", ACCOUNT_HOLDERS, "List the uses of canary tokens")
async def list_rings(call: Call) -> list[RingRecord]:
    """The latest 500 of all, the newest first: those of the caller's tokens, for admins of the tokens of everyone."""
    await call.services.callers.canaries.flush()
    every = await call.catalog.scan(canaries.list_rings)
    mine = [each for each in every if call.identity.admin or each.user_id == _owner(call)]
    return [RingRecord.from_attributes(each, at=from_ms(each.at_ms)) for each in reversed(mine)]


async def _find(call: Call, id: str) -> Token:
    token: Token | None = await call.catalog.look(tokens.find_token_by_uid, id.lower())
    if token is None or token.user_id != _owner(call):
        raise NotFound("token", id)
    call.object = token.name
    return token


def _owner(call: Call) -> int:
    if call.identity.user_id is None:
        raise AuthenticationRequired
    return call.identity.user_id


def _rotate(tx: Transaction, token: Token, limits: TokenLimits, text: str, *, grace_s: int, call: Call) -> Token:
    fresh = tokens.add_token(
        tx,
        user_id=token.user_id,
        hash=hash_token(text),
        shown=shown_part(text),
        kind=TokenKind(token.kind),
        name=token.name,
        description=token.description,
        limits=limits,
        created_from=call.request.client_address,
        now_ms=call.now_ms,
        asked=token.asked,
    )
    if grace_s:
        end = from_ms(call.now_ms) + timedelta(seconds=grace_s)
        if token.limits.expires_at is None or end < token.limits.expires_at:
            tokens.update_token(tx, token.id, limits=evolve(token.limits, expires_at=end))
    else:
        tokens.revoke_token(tx, token.id, now_ms=call.now_ms)
    return fresh
