"""Passkeys: make one with the password, log in with one, list and remove them."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.login.passkeys import ALGORITHMS, Site, decode, encode, read_new, verify_login
from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.errors import AuthenticationRequired, Conflict, IdentityRefused, NotFound, SecretUnreadable
from pkgrepo.gateway.callers.browsers import cookie_field, session_secret
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, USER_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import CreatedAt, ObjectId, Ticket, Username
from pkgrepo.management.api.route import Created, Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.users.permissions import find_manageable
from pkgrepo.management.users.second_factor import Proof, prove
from pkgrepo.management.users.sessions import BegunSession
from pkgrepo.model import User, UserKind
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.people import passkeys, users
from pkgrepo.storage.catalog.people.passkeys import Passkey
from pkgrepo.storage.catalog.people.pipelines import spend_token

LIFE_S: Final = 300  # of a challenge
MAKING: Final = "challenge of a new passkey"
LOGIN: Final = "challenge of a login with a passkey"
MOST_CLIENT: Final = 200  # characters of a User-Agent

table = Table("account")


class PasskeyOptions(Record):
    """
    What a browser needs to make a passkey (navigator.credentials.create); bytes are base64url.

    The ticket comes back with what it made, within five minutes.
    """

    ticket: Ticket
    challenge: Annotated[str, meaning("The challenge to be signed, in base64url.")]
    rp_id: Annotated[str, meaning("The host for which the passkey is.")]
    user_id: Annotated[str, meaning("The id of the user for the passkey, in base64url.")]
    username: Username
    algorithms: Annotated[list[int], meaning("The COSE numbers of the algorithms that the server takes.")]
    exclude: Annotated[list[str], meaning("The ids of the passkeys that the account has.")]


class PasskeyMade(Body):
    """A new passkey, as a browser returns it: bytes are base64url, public_key is DER (getPublicKey)."""

    ticket: Ticket
    name: Annotated[Word, meaning("A name, by which people tell their passkeys apart.")]
    client_data: Annotated[str, meaning("The client data that the browser made, in base64url.")]
    authenticator_data: Annotated[str, meaning("The authenticator data, in base64url.")]
    public_key: Annotated[str, meaning("The public key in DER, in base64url.")]


class PasskeyRecord(Record):
    """A passkey."""

    id: ObjectId
    name: Annotated[str, meaning("A name, by which people tell their passkeys apart.")]
    created_at: CreatedAt
    last_used_at: Annotated[datetime | None, meaning("When it was last used; null for never.")]

    measured = frozenset({"last_used_at"})

    @classmethod
    def of(cls, passkey: Passkey) -> Self:
        """The record of a passkey."""
        return cls.from_attributes(passkey, id=str(passkey.id))


class PasskeyChallenge(Record):
    """What a browser needs for a login with a passkey (navigator.credentials.get); the ticket comes back."""

    ticket: Ticket
    challenge: Annotated[str, meaning("The challenge to be signed, in base64url.")]
    rp_id: Annotated[str, meaning("The host for which the passkey is.")]


class PasskeyLogin(Body):
    """What a browser returns of a login with a passkey; bytes are base64url."""

    ticket: Ticket
    credential_id: Annotated[str, meaning("The id of the passkey, in base64url.")]
    client_data: Annotated[str, meaning("The client data that the browser made, in base64url.")]
    authenticator_data: Annotated[str, meaning("The authenticator data, in base64url.")]
    signature: Annotated[str, meaning("The signature over both data, in base64url.")]


@table.post("/user/passkeys/begin", PUBLIC, "Begin to make a passkey", audit="passkey.begin")
async def begin(call: Call, body: Proof) -> PasskeyOptions:
    """
    Needs the password, and a code where the account has a second factor.

    People whose password is that of a directory get none (409): what they have here must end with them there.
    """
    user = await prove(call, body, enrolling=True)
    if not await call.catalog.look(users.password_hash, user.id):
        raise Conflict("passkeys are for accounts with a password of this server")
    found = await call.catalog.look(passkeys.list_passkeys, user.id)
    challenge, ticket = _challenge(call, MAKING, user.uid)
    return PasskeyOptions(
        ticket=ticket,
        challenge=challenge,
        rp_id=_site(call).rp_id,
        user_id=encode(user.uid.encode()),
        username=user.username,
        algorithms=list(ALGORITHMS),
        exclude=[encode(each.credential_id) for each in found],
    )


@table.post("/user/passkeys", PUBLIC, "Make a passkey", audit="passkey.create")
async def make(call: Call, body: PasskeyMade) -> Created[PasskeyRecord]:
    """From now on it logs in without the password and a code. What was logged in stays."""
    challenge, uid = _opened(call, body.ticket, MAKING)
    user = await call.catalog.look(users.find_user_by_uid, uid)
    if user is None or not user.active:
        raise IdentityRefused("this account is not active")
    call.object = user.username
    client_data, data, key = (decode(each) for each in (body.client_data, body.authenticator_data, body.public_key))
    found = read_new(_site(call), challenge, client_data, data, key)
    made = await call.write(
        call.entry(user.username, {"passkey": body.name}),
        passkeys.add_passkey,
        user.id,
        credential_id=found.credential_id,
        public_key=key,
        sign_count=found.sign_count,
        name=body.name,
        now_ms=call.now_ms,
    )
    return Created(PasskeyRecord.of(made), f"/api/user/passkeys/{made.id}")


@table.get("/user/passkeys", ACCOUNT_HOLDERS, "List the caller's passkeys")
async def list_own(call: Call) -> list[PasskeyRecord]:
    """In the order in which they were made."""
    return [PasskeyRecord.of(each) for each in await call.catalog.look(passkeys.list_passkeys, _user_id(call))]


@table.delete("/user/passkeys/<id>", ACCOUNT_HOLDERS, "Remove a passkey of the caller", audit="passkey.remove")
async def remove(call: Call, id: str) -> None:
    """Ends the sessions that were begun with it."""
    if not (id.isascii() and id.isdigit() and 0 < len(id) < 19):
        raise NotFound("passkey", id)
    entry = call.entry(call.identity.username)
    await call.write(entry, passkeys.remove_passkeys, _user_id(call), int(id) or -1)


@table.command(
    "user remove-passkeys USERNAME",
    "{username} has no passkeys any more",
    more="For someone who has lost a device; logins with them end.",
)
@table.delete("/users/<id>/passkeys", USER_MANAGERS, "Remove all passkeys of a user", audit="passkey.remove")
async def remove_all(call: Call, id: str) -> None:
    """For someone who has lost a device; sessions that were begun with them end. Only admins may do this for admins."""
    user = await find_manageable(call, id)
    await call.write(call.entry(user.username), passkeys.remove_passkeys, user.id)


@table.post("/user/login/passkey/begin", PUBLIC, "Begin a login with a passkey", audit="login.begin")
async def begin_login(call: Call) -> PasskeyChallenge:
    """The ticket is valid for five minutes."""
    call.audited = True  # nothing has changed yet
    challenge, ticket = _challenge(call, LOGIN, "")
    return PasskeyChallenge(ticket=ticket, challenge=challenge, rp_id=_site(call).rp_id)


@table.post("/user/login/passkey", PUBLIC, "Log in with a passkey", answer=BegunSession, audit="login")
async def log_in(call: Call, body: PasskeyLogin) -> Response:
    """Sets the cookie of a session. A challenge counts once."""
    challenge, _ = _opened(call, body.ticket, LOGIN)
    parts = (body.credential_id, body.client_data, body.authenticator_data, body.signature)
    credential, client_data, data, signature = (decode(each) for each in parts)
    passkey, user = await call.catalog.look(_read, credential)
    if passkey is None or user is None or not user.active or user.kind is not UserKind.PERSON:
        raise IdentityRefused("this server does not know this passkey: it was removed, or is of another account")
    call.object = user.username
    found = verify_login(_site(call), challenge, passkey.public_key, client_data, data, signature)
    until_ms = call.now_ms + LIFE_S * 1000
    await call.catalog.write(_use, passkey, found.sign_count, hashlib.sha256(challenge).digest(), until_ms, call.now_ms)
    call.identity = identity_of(user, via="session")
    request, sessions = call.request, call.services.callers.sessions
    client = (request.header(b"user-agent") or b"").decode("latin-1")[:MOST_CLIENT]
    secret = await sessions.begin(
        call.identity, request.client_address, client, passkey_id=passkey.id, before=session_secret(request)
    )
    begun = BegunSession(username=user.username, csrf=csrf_of(secret))
    return json_response(begun, headers=(*NO_STORE, cookie_field(request, secret, sessions.longest_s)))


def _read(r: Reader, credential_id: bytes) -> tuple[Passkey | None, User | None]:
    passkey = passkeys.find_passkey(r, credential_id)
    return passkey, None if passkey is None else users.find_user(r, passkey.account_id)


def _use(tx: Transaction, passkey: Passkey, count: int, digest: bytes, until_ms: int, now_ms: int) -> None:
    if not spend_token(tx, digest, until_ms, now_ms=now_ms):
        raise IdentityRefused("this login was used before: begin it again")
    try:
        passkeys.note_passkey_use(tx, passkey, count, now_ms=now_ms)
    except Conflict as error:
        raise IdentityRefused(str(error)) from None


def _site(call: Call) -> Site:
    parts = urlsplit(call.base_url)
    return Site(f"{parts.scheme}://{parts.netloc}", parts.hostname or "")


def _challenge(call: Call, purpose: str, value: str) -> tuple[str, str]:
    """A new challenge, and the ticket that it comes back with, both as text."""
    challenge = encode(secrets.token_bytes(32))
    until_ms = call.now_ms + LIFE_S * 1000
    return challenge, call.services.secrets.seal(f"{until_ms} {challenge} {value}", purpose)


def _opened(call: Call, ticket: str, purpose: str) -> tuple[bytes, str]:
    """The challenge and the value of a ticket. :raises IdentityRefused: it was not made here, or has expired"""
    try:
        until_ms, challenge, value = call.services.secrets.open(ticket, purpose).split(" ", 2)
    except (SecretUnreadable, ValueError):
        raise IdentityRefused("this was not begun here: begin it again") from None
    if call.now_ms > int(until_ms):
        raise IdentityRefused("this took too long: begin it again")
    return decode(challenge), value


def _user_id(call: Call) -> int:
    if call.identity.user_id is None:
        raise AuthenticationRequired
    return call.identity.user_id
