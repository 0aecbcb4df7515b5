"""
One-time links: a user manager makes one for a person, who chooses a password with it.

The secret is in the fragment of the link, which browsers send to no server (RFC 9110 section 4.2.5): it is in no
access log and in no Referer field.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta

from pkgrepo.errors import Conflict, Forbidden, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import PUBLIC, USER_MANAGERS, check_no_bearer
from pkgrepo.management.api.call import Call, must_do
from pkgrepo.management.api.fields import ExpiresAt, Username
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.users.permissions import find_manageable
from pkgrepo.management.users.schema import Password
from pkgrepo.model import User, UserKind
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.people.linked_identities import issuers_of
from pkgrepo.storage.catalog.people.one_time_links import USED, add_link, find_link_user, remove_link, use_link
from pkgrepo.storage.catalog.people.users import password_hash

PAGE: Final = "/ui/password-link"

table = Table("users")


class LinkAsked(Body):
    """How long the link can be used, in hours."""

    hours: Annotated[int, Meta(ge=1, le=168), meaning("For how many hours the link can be used.")] = 24


class LinkRecord(Record):
    """A one-time link, which is not shown again; invitation: the account has no password yet."""

    username: Username
    url: Annotated[str, meaning("The address, which is not shown again.")]
    invitation: Annotated[bool, meaning("Whether the account has no password yet.")]
    expires_at: ExpiresAt


class LinkUse(Body):
    """The secret of a one-time link, and the new password."""

    secret: Annotated[str, meaning("The secret of the link.")]
    password: Annotated[Password, meaning("The new password.")]


class LinkUsed(Record):
    """Whose password was set."""

    username: Annotated[str, meaning("The user whose password was set.")]


@table.post("/users/<id>/password-link", USER_MANAGERS, "Make a one-time link for a password", audit="user.link")
async def make_link(call: Call, body: LinkAsked, id: str) -> LinkRecord:
    """
    The person who has the link chooses the password of the user, once: give it only to the user.

    It replaces an earlier one. Only admins may do this for admins and system managers. Bearer tokens are refused (403).
    People who log in at a provider and have no password here get no link (409).
    """
    check_no_bearer(call.identity)
    user = await find_manageable(call, id)
    if user.kind is UserKind.SERVICE:
        raise Conflict(f"{user.username} is a service: it has tokens and no password")
    if not user.active:
        raise Conflict(f"{user.username} is switched off")
    has_password = await check_logs_in_here(call, user)
    secret = secrets.token_urlsafe(32)
    expires_ms = call.now_ms + int(timedelta(hours=body.hours).total_seconds() * 1000)
    entry = call.entry(user.username, {"hours": body.hours})
    await call.write(entry, add_link, user.id, _hash(secret), now_ms=call.now_ms, expires_ms=expires_ms)
    return LinkRecord(
        username=user.username,
        url=f"{call.base_url}{PAGE}#{secret}",
        invitation=not has_password,
        expires_at=from_ms(expires_ms),
    )


@table.command("user end-password-link USERNAME", "the link of {username} has ended")
@table.delete("/users/<id>/password-link", USER_MANAGERS, "End the one-time link of a user", audit="user.link")
async def end_link(call: Call, id: str) -> None:
    """Without a link that was not used, the answer is 404."""
    user = await find_manageable(call, id)
    end = must_do(remove_link, NotFound("one-time link", f"of {user.username}"))
    await call.write(call.entry(user.username, {"ended": True}), end, user.id)


@table.post("/user/password-link", PUBLIC, "Choose a password with a one-time link", audit="account.password")
async def choose_password(call: Call, body: LinkUse) -> LinkUsed:
    """
    Ends the link, the browser sessions and the login tokens of the user; access tokens stay valid.

    The link counts once (403 afterwards), and not for people who have logged in at a provider since it was made, and
    have no password here (409). A second factor stays, and is asked for at the next login.
    """
    hashed = _hash(body.secret)
    user = await call.catalog.look(find_link_user, hashed, call.now_ms)  # before anything that costs time
    if user is None:
        raise Forbidden(USED)
    call.object = user.username
    await check_logs_in_here(call, user)  # the person may have done so since the link was made
    call.services.callers.passwords.check(body.password, username=user.username)
    new = await call.services.callers.passwords.hash(body.password)
    await call.write(call.entry(user.username, {"by": "one-time link"}), use_link, hashed, new, now_ms=call.now_ms)
    return LinkUsed(username=user.username)


async def check_logs_in_here(call: Call, user: User) -> bool:
    """
    Whether a user has a password here.

    :raises Conflict: there is none, because the user logs in at a provider
    """
    has_password, elsewhere = await call.catalog.look(ways_in, user.id)
    if elsewhere and not has_password:
        raise Conflict(f"{user.username} logs in at a provider, and has no password here")
    return has_password


def ways_in(r: Reader, user_id: int) -> tuple[bool, list[str]]:
    """Whether a user has a password here, and the issuers of the links of the user."""
    return bool(password_hash(r, user_id)), issuers_of(r, user_id)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
