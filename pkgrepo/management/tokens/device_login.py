"""
Logins of programs by a person's browser (device authorization grant, RFC 8628), at this server itself.

========  ==========================================================================================================
program   begins, and gets a device code, which it keeps, and a user code for the person
person    logs in to the console as always, types the user code, sees who asks for what, and approves
program   asks with the device code until it gets an access token of that person
========  ==========================================================================================================

A program on the machine of the browser names a port on it: the approval then sends the browser there (RFC 8252 section
7.3) with a proof that the program has to show, so that nobody else's login is approved by mistake.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.accounts import add_personal_token
from pkgrepo.auth.tokens.text import make_token
from pkgrepo.errors import Forbidden, Invalid, NotFound, TooManyAttempts
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, check_no_bearer
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ExpiresAt
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.model import Actor, Token, TokenKind, TokenLimits, User
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.people.login_requests import (
    LoginRequest,
    add_login_request,
    decide_login,
    find_by_device_code,
    find_by_user_code,
    take_login,
)
from pkgrepo.storage.catalog.people.users import find_user, name_key
from pkgrepo.storage.catalog.server.audit import Entry

from .limits import expiry, limits_of
from .schema import NewToken, NewTokenRecord, Words

LIFE_S: Final = 600  # of a login that is not approved, or not fetched
INTERVAL_S: Final = 2  # between two questions of a program
LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # RFC 8628 section 6.1: no vowels, so that no words come about
LENGTH: Final = 8  # letters: 34 bits, of which a person may try a few in a minute
BUSY_S: Final = 60
MOST_CLIENT: Final = 200  # characters of a User-Agent
PAGE: Final = "/ui/device"

table = Table("tokens")


class DeviceLogin(Body):
    """What the token will be called, and what it is to open: as of a new token."""

    name: Annotated[Word, meaning("What the token will be called.")]
    scopes: Annotated[Words | None, meaning("The scopes that the token is to have; null for all.")] = None
    expires_in_days: Annotated[int | None, meaning("For how many days the token is to be valid.")] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None,
        meaning("Where the program listens on the loopback interface of the person's machine."),
    ] = None


class DeviceLoginBegun(Record):
    """
    The codes, and the page at which the person types the user code (RFC 8628 section 3.2).

    The program asks with the device code every interval seconds, for expires_in seconds.
    """

    device_code: Annotated[str, meaning("The code with which the program asks.")]
    user_code: Annotated[str, meaning("The code that the person types.")]
    verification_uri: Annotated[str, meaning("The page at which the person types the code.")]
    verification_uri_complete: Annotated[str, meaning("The page with the code in its address.")]
    expires_in: Annotated[int, meaning("For how many seconds the program may ask.")]
    interval: Annotated[int, meaning("How many seconds the program waits between two questions.")]


class DeviceLoginRecord(Record):
    """A login that waits for an approval: who began it, and what it asks for; local tells of a port."""

    name: Annotated[str, meaning("What the token will be called.")]
    scopes: Annotated[list[str] | None, meaning("The scopes that the token is to have; null for all.")]
    expires_in_days: Annotated[int | None, meaning("For how many days the token is to be valid.")]
    local: Annotated[bool, meaning("Whether the program listens on the person's machine.")]
    address: Annotated[str, meaning("The address from which it was begun.")]
    client: Annotated[str, meaning("The program that began it.")]
    created_at: Annotated[datetime, meaning("When it was begun.")]
    expires_at: ExpiresAt


class DeviceDecision(Body):
    """The user code, and whether the login is approved."""

    user_code: Annotated[str, meaning("The code that the person typed.")]
    approve: Annotated[bool, meaning("Whether the login is approved.")]


class DeviceDecided(Record):
    """Where the browser goes next: to the program, if it waits on the same machine."""

    redirect: Annotated[
        str | None, meaning("Where the browser goes next; null if the program does not wait on the same machine.")
    ]


class DeviceFetch(Body):
    """The device code, and what the browser brought to the port, if the program named one."""

    device_code: Annotated[str, meaning("The code with which the program asks.")]
    code: Annotated[str, meaning("What the browser brought to the port, if the program named one.")] = ""


class DevicePending(Record):
    """Why there is no token (RFC 8628 section 3.5)."""

    error: Annotated[
        Literal["authorization_pending", "access_denied", "expired_token", "invalid_grant"],
        meaning("Why there is no token; after authorization_pending the program asks again."),
    ]
    error_description: Annotated[str | UnsetType, meaning("The same for people.")] = UNSET


@table.post("/user/login/device", PUBLIC, "Begin a login of a program", audit="login.begin")
async def begin_login(call: Call, body: DeviceLogin) -> DeviceLoginBegun:
    """
    The program shows the person the user code and the page (RFC 8628).

    At most 30 wait for one address, or one IPv6 network of 64 bits (429).
    """
    call.audited = True  # nothing has changed yet
    await _limits(call, body.scopes, body.expires_in_days)
    device_code, user_code = secrets.token_urlsafe(32), "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
    added = await call.catalog.write(
        add_login_request,
        device_hash=_hash(device_code),
        user_hash=_hash(user_code),
        name=body.name,
        scopes=body.scopes,
        days=body.expires_in_days,
        port=body.port,
        address=call.request.client_address,
        client=(call.request.header(b"user-agent") or b"").decode("latin-1")[:MOST_CLIENT],
        now_ms=call.now_ms,
        expires_ms=call.now_ms + LIFE_S * 1000,
    )
    if not added:
        raise TooManyAttempts(BUSY_S)
    shown = f"{user_code[:4]}-{user_code[4:]}"
    return DeviceLoginBegun(
        device_code=device_code,
        user_code=shown,
        verification_uri=call.base_url + PAGE,
        verification_uri_complete=f"{call.base_url}{PAGE}?user_code={shown}",
        expires_in=LIFE_S,
        interval=INTERVAL_S,
    )


@table.get(
    "/user/login/device",
    ACCOUNT_HOLDERS,
    "Show a login of a program that waits for an approval",
    query=[Parameter("user_code", "The code that the program shows.")],
)
async def show_login(call: Call) -> DeviceLoginRecord:
    """Wrong codes are counted like wrong passwords."""
    found = await _find(call, call.query("user_code"))
    return DeviceLoginRecord.from_attributes(
        found,
        scopes=None if found.scopes is None else list(found.scopes),
        expires_in_days=found.days,
        local=found.port is not None,
    )


@table.post(
    "/user/login/device/decision", ACCOUNT_HOLDERS, "Approve or deny a login of a program", audit="login.approve"
)
async def decide(call: Call, body: DeviceDecision) -> DeviceDecided:
    """The program gets an access token of the caller, who must have logged in: a token approves no logins (403)."""
    check_no_bearer(call.identity)
    if call.identity.limits is not None or call.identity.user_id is None:
        raise Forbidden("a token approves no logins: log in with a browser")
    found = await _find(call, body.user_code)
    proof = secrets.token_urlsafe(32) if found.port is not None and body.approve else ""
    await call.write(
        call.entry(found.name, {"address": found.address, "approved": body.approve}),
        decide_login,
        found,
        user_id=call.identity.user_id,
        approved=body.approve,
        proof=_hash(proof) if proof else None,
        now_ms=call.now_ms,
    )
    # RFC 8252 section 8.3: the address, since "localhost" may be another one
    return DeviceDecided(redirect=f"http://127.0.0.1:{found.port}/?code={proof}" if proof else None)


@table.post(
    "/user/login/device/token",
    PUBLIC,
    "Get the token of a login that was approved",
    answer=NewTokenRecord,
    refusal=DevicePending,
    audit="token.create",
)
async def fetch_token(call: Call, body: DeviceFetch) -> Response:
    """Until the approval the answer is 400 with the error authorization_pending; a token is given once."""
    call.audited = True  # what is made has its own row
    found = await call.catalog.look(find_by_device_code, _hash(body.device_code), call.now_ms)
    if found is None:
        return _refused("expired_token", "this login has ended: begin it again")
    if found.state == "pending":
        return _refused("authorization_pending")
    if found.state == "denied":
        await call.catalog.write(take_login, found)
        return _refused("access_denied", "the person has denied this login")
    if found.proof is not None and not secrets.compare_digest(found.proof, _hash(body.code)):
        return _refused("invalid_grant", "this is not what the browser was sent with")
    limits = await _limits(call, found.scopes, found.days)
    text = make_token(TokenKind.PERSONAL)
    actor = Actor(address=call.request.client_address, request_id=call.request.request_id)
    made = await call.catalog.write(_take, found, text, limits, actor, call.now_ms)
    if made is None:
        return _refused("expired_token", "this login has ended: begin it again")
    token, user, entry = made
    call.services.callers.audit_log.copy(entry)
    return json_response(NewTokenRecord.of(token, user.username, token=text), headers=NO_STORE)


def _take(
    tx: Transaction, found: LoginRequest, text: str, limits: TokenLimits, actor: Actor, now_ms: int
) -> tuple[Token, User, Entry] | None:
    """Write command: make the token of an approved login, once. None if it is gone, or the user is not active."""
    user = None if found.user_id is None else find_user(tx, found.user_id)
    if not take_login(tx, found) or user is None or not user.active:
        return None
    who = Actor(user_id=user.id, name=user.username, address=actor.address, request_id=actor.request_id)
    description = f"a login that was approved in a browser, from {found.address}"
    token, entry = add_personal_token(tx, user.id, text, found.name, limits, who, now_ms, description)
    return token, user, entry


async def _limits(call: Call, scopes: Any, days: int | None) -> TokenLimits:
    """The limits of a token that is made now. :raises Invalid: the request asks for what there is not"""
    limits = await limits_of(call.registry, call.knows, scopes=scopes, repositories=None, packages=(), cidrs=())
    asked = NewToken(name="login", expires_in_days=days)
    ending = expiry(asked, from_ms(call.now_ms), None, call.services.token_max_days)
    return TokenLimits(scopes=limits.scopes, repositories=limits.repositories, expires_at=ending)


async def _find(call: Call, user_code: str) -> LoginRequest:
    """
    The pending login with a code that a person has typed, in any case, with or without dash.

    :raises NotFound: there is none; :raises TooManyAttempts: this person, or the address, has tried too many
    """
    code = "".join(each for each in user_code.upper() if each in LETTERS)
    if len(code) != LENGTH:
        raise Invalid(f"a code has {LENGTH} letters", "/user_code")
    attempt = call.services.callers.throttle.begin(name_key(call.identity.username), call.request.client_address)
    found = None
    try:
        found = await call.catalog.look(find_by_user_code, _hash(code), call.now_ms)
    finally:
        attempt.end(failed=found is None)
    if found is None:
        raise NotFound("login", "with this code: it has ended, or the code is another one")
    return found


def _refused(error: Any, description: str = "") -> Response:
    pending = DevicePending(error=error, error_description=description or UNSET)
    return json_response(pending, 400, headers=NO_STORE)


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()
