"""
Second factors: set one up, remove it, new recovery codes; each needs the password, whatever else the caller has.

They work without a session, since an account that must have a second factor has none before it is set up.
"""

from __future__ import annotations

from typing import Annotated

from pkgrepo.auth.login.second_factors import hash_recovery_code, make_recovery_codes
from pkgrepo.errors import AuthenticationFailed, Conflict, NotFound
from pkgrepo.gateway.callers.access import code_of, road_of
from pkgrepo.management.api.access_rules import PUBLIC, USER_MANAGERS
from pkgrepo.management.api.call import Call, must_do
from pkgrepo.management.api.fields import SecondFactorCode, Ticket
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.users.permissions import find_manageable
from pkgrepo.management.users.schema import Password
from pkgrepo.model import User
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.people import second_factors, users

table = Table("account")


class Proof(Body):
    """The name and the password of a person, and a code where the account has a second factor."""

    username: Annotated[str, meaning("The name of the person.")]
    password: Annotated[Password, meaning("The password.")]
    code: SecondFactorCode = ""


class Confirmation(Body):
    """The ticket of a secret, and the code that the app shows for it."""

    ticket: Ticket
    code: Annotated[str, meaning("The code that the app shows.")]


class EnrolmentRecord(Record):
    """
    A new secret for an app that shows one-time passwords: as people type it, and as the address in a QR code.

    It counts once a code of it is sent with the ticket, within 15 minutes.
    """

    secret: Annotated[str, meaning("The secret as people type it into an app.")]
    uri: Annotated[str, meaning("The secret as the address in a QR code.")]
    ticket: Ticket


class RecoveryCodes(Record):
    """Codes that stand for a one-time password, each once. They are shown this once."""

    codes: Annotated[
        list[str], meaning("Codes that stand for a one-time password, each once; they are shown this once.")
    ]


@table.post("/user/second-factor", PUBLIC, "Begin to set up a second factor", audit="second_factor.begin")
async def begin(call: Call, body: Proof) -> EnrolmentRecord:
    """An account that has a second factor must remove it first (409)."""
    user = await prove(call, body, enrolling=True)
    made = await call.services.callers.second_factors.begin(user)
    return EnrolmentRecord(secret=made.secret, uri=made.uri, ticket=made.ticket)


@table.post("/user/second-factor/confirm", PUBLIC, "Set up a second factor", audit="second_factor.enable")
async def confirm(call: Call, body: Confirmation) -> RecoveryCodes:
    """
    From now on the password needs a code.

    Sessions in browsers, login tokens and bearer tokens end; access tokens stay valid.
    """
    factors = call.services.callers.second_factors
    uid = factors.open_ticket(body.ticket)
    user = None if uid is None else await call.catalog.look(users.find_user_by_uid, uid)
    if user is None or not user.active:
        raise Conflict("this second factor was to be confirmed within 15 minutes: begin anew")
    call.object = user.username
    found = await factors.find_unconfirmed(user, body.code, call.request.client_address)
    if found is None:
        raise AuthenticationFailed
    codes = make_recovery_codes()
    hashes = [hash_recovery_code(each) for each in codes]
    command = second_factors.confirm_second_factor
    await call.write(call.entry(user.username), command, user.id, *found, hashes, now_ms=call.now_ms)
    return RecoveryCodes(codes=codes)


@table.post("/user/second-factor/recovery-codes", PUBLIC, "Make new recovery codes", audit="second_factor.recovery")
async def renew(call: Call, body: Proof) -> RecoveryCodes:
    """The earlier ones count no more. Without a second factor there are none (404)."""
    user = await prove(call, body)
    if not user.mfa:
        raise NotFound("second factor of", user.username)
    codes = make_recovery_codes()
    hashes = [hash_recovery_code(each) for each in codes]
    await call.write(call.entry(user.username), second_factors.replace_recovery_codes, user.id, hashes)
    return RecoveryCodes(codes=codes)


@table.post("/user/second-factor/remove", PUBLIC, "Remove the own second factor", audit="second_factor.remove")
async def remove(call: Call, body: Proof) -> None:
    """The password alone logs in again; an account that must have a second factor can only set up another one."""
    await _remove(call, await prove(call, body, enrolling=True))


@table.command(
    "user remove-second-factor USERNAME",
    "the password of {username} needs no code any more",
    more="For someone who has lost the app and the recovery codes.",
)
@table.delete(
    "/users/<id>/second-factor", USER_MANAGERS, "Remove the second factor of a user", audit="second_factor.remove"
)
async def reset(call: Call, id: str) -> None:
    """For someone who has lost the app and the recovery codes. Only admins may do this for admins."""
    await _remove(call, await find_manageable(call, id))


async def _remove(call: Call, user: User) -> None:
    command = must_do(second_factors.remove_second_factor, NotFound("second factor of", user.username))
    await call.write(call.entry(user.username), command, user.id, now_ms=call.now_ms)


async def prove(call: Call, body: Proof, *, enrolling: bool = False) -> User:
    """The user of a name and a password. :raises AuthenticationFailed: they are wrong, or those of a token"""
    request = call.request
    identity = await call.services.callers.authenticator.login(
        body.username,
        body.password,
        request.client_address,
        (request.header(b"user-agent") or b"").decode("latin-1"),
        code=body.code or code_of(request),
        enrolling=enrolling,
        road=road_of(request),
    )
    if identity.via != "password" or identity.user_id is None:
        raise AuthenticationFailed
    call.identity, call.object = identity, identity.username
    user: User = await call.catalog.look(users.get_user, identity.user_id)
    return user
