"""The caller's own account, and the sessions of browsers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pkgrepo.auth.accounts import check_password_here
from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.auth.tokens.text import token_kind
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, NotFound
from pkgrepo.gateway.callers.access import code_of, road_of
from pkgrepo.gateway.callers.browsers import cookie_field, session_secret
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, USER_MANAGERS, check_no_bearer
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ObjectId, SecondFactorCode, Username
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.quotas import QuotaRecord, quota_record
from pkgrepo.management.users.permissions import find_manageable
from pkgrepo.management.users.schema import OwnChange, Password, PasswordChange, Permissions, UserRecord, Whoami
from pkgrepo.model import User
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.people import users
from pkgrepo.storage.catalog.people.grants import permissions_of_user
from pkgrepo.storage.catalog.people.logins import Session, end_other_sessions, end_session, list_sessions
from pkgrepo.storage.catalog.server.quotas import QuotaKind

table = Table("account")


@table.command(
    "whoami",
    fields="server: server | user: username or 'anonymous' | logged in by: via | "
    "is: admin+user_manager+system_manager | scopes: scopes",
    about="Show who you are to the server.",
)
@table.get("/user/whoami", PUBLIC, "Show the identity of the caller")
async def show_identity(call: Call) -> Whoami:
    """Works without credentials and with every token; via is the kind of the credentials."""
    found = call.identity
    scopes = None if found.limits is None else sorted(found.limits.scopes)
    return Whoami.from_attributes(found, authenticated=not found.anonymous, scopes=scopes)


@table.get("/user/me", ACCOUNT_HOLDERS, "Show the caller's account")
async def show_account(call: Call) -> UserRecord:
    """Returns the same record as the operations for user managers."""
    return UserRecord.of(await _user(call))


@table.patch("/user/me", ACCOUNT_HOLDERS, "Change the caller's account", audit="account.update", conditional=True)
async def change_account(call: Call, body: OwnChange) -> UserRecord:
    """Only name and email can be changed."""
    user = await _user(call)
    call.check_unchanged(UserRecord.of(user))
    changes = body.given("name", "email")
    call.shared.accounts.check_own_change(user, changes)
    entry = call.entry(user.username, {"changed": sorted(changes)})
    return UserRecord.of(await call.write(entry, users.update_user, user.id, now_ms=call.now_ms, **changes))


@table.get("/user/me/quota", ACCOUNT_HOLDERS, "Show the caller's own quota")
async def show_own_quota(call: Call) -> QuotaRecord:
    """With what the caller has published and what stands, as the same record is for user managers."""
    user = await _user(call)
    return await quota_record(call, QuotaKind.USER, user.id, user.username)


@table.get("/user/me/permissions", ACCOUNT_HOLDERS, "Show the caller's permissions")
async def show_own_permissions(call: Call) -> Permissions:
    """Flags, default actions, and grants in repositories, including those of groups."""
    user = await _user(call)
    found = await call.catalog.look(permissions_of_user, user.id)
    return Permissions.of(user, found, call.registry.listed())


@table.post("/user/change-password", ACCOUNT_HOLDERS, "Change the caller's password", audit="account.password")
async def change_password(call: Call, body: PasswordChange) -> None:
    """
    Needs the old password. Requests that authenticate with a token are refused (403), and so are those for accounts
    whose password is at a directory.

    Bearer tokens and login tokens are revoked, other access tokens stay valid.
    """
    user = await _user(call)
    check_no_bearer(call.identity)
    if call.identity.token_id is not None:
        raise Forbidden("a password is changed by a person who logs in with it, not through a token")
    if token_kind(body.old_password):
        raise AuthenticationFailed
    address = call.request.client_address
    code = body.code or code_of(call.request)
    await call.services.callers.authenticator.login(user.username, body.old_password, address, code=code)
    await call.catalog.look(check_password_here, user.id)
    call.services.callers.passwords.check(body.new_password, username=user.username)
    hashed = await call.services.callers.passwords.hash(body.new_password)
    await call.write(call.entry(user.username), users.set_password, user.id, hashed, now_ms=call.now_ms)


async def _user(call: Call) -> User:
    if call.identity.user_id is None:
        raise AuthenticationRequired
    user: User = await call.catalog.look(users.get_user, call.identity.user_id)
    return user


class BrowserLogin(Body):
    """The name and the password of a person, and the code of a second factor where the account has one."""

    username: Annotated[str, meaning("The name of the person.")]
    password: Annotated[Password, meaning("The password.")]
    code: SecondFactorCode = ""


class BegunSession(Record):
    """A session that has begun: changes must repeat csrf in the field X-CSRF."""

    username: Username
    csrf: Annotated[str, meaning("What changes repeat in the field X-CSRF.")]


class SessionRecord(Record):
    """A login in a browser; address and client are those of the login, current tells that it is the caller's own."""

    id: ObjectId
    created_at: Annotated[datetime, meaning("When the person logged in.")]
    last_used_at: Annotated[datetime, meaning("When it was last used; null for never.")]
    address: Annotated[str, meaning("The network address of the login.")]
    client: Annotated[str, meaning("The browser of the login.")]
    current: Annotated[bool, meaning("Whether it is the caller's own.")]

    measured = frozenset({"last_used_at"})

    @classmethod
    def of(cls, session: Session, current_id: int | None) -> Self:
        """The record of a session."""
        return cls.from_attributes(
            session, id=str(session.id), last_used_at=session.seen_at, current=session.id == current_id
        )


class EndedSessions(Record):
    """How many sessions were ended."""

    ended: Annotated[int, meaning("How many sessions were ended.")]


@table.post("/user/login", PUBLIC, "Log in with a browser", answer=BegunSession, audit="login")
async def log_in(call: Call, body: BrowserLogin) -> Response:
    """
    Sets a cookie that authenticates reads, and changes that repeat the returned value in the field X-CSRF.

    Only passwords begin sessions; access tokens are for programs.
    """
    request = call.request
    client = (request.header(b"user-agent") or b"").decode("latin-1")
    identity = await call.services.callers.authenticator.login(
        body.username,
        body.password,
        request.client_address,
        client,
        code=body.code or code_of(request),
        road=road_of(request),
    )
    if identity.via != "password":
        raise AuthenticationFailed
    call.identity, call.object = identity, identity.username
    sessions = call.services.callers.sessions
    before = session_secret(request)
    secret = await sessions.begin(identity, request.client_address, client, before=before)
    begun = BegunSession(username=identity.username, csrf=csrf_of(secret))
    return json_response(begun, headers=(*NO_STORE, cookie_field(request, secret, sessions.longest_s)))


@table.post("/user/logout", ACCOUNT_HOLDERS, "Log out", status=204, audit="logout")
async def log_out(call: Call) -> Response:
    """Ends the session of the request, and removes its cookie."""
    identity = call.identity
    if identity.session_id is not None and identity.user_id is not None:
        await call.write(call.entry(identity.username), end_session, identity.user_id, identity.session_id)
    return Response(204, headers=(*NO_STORE, cookie_field(call.request, b"", 0)))


@table.get("/user/sessions", ACCOUNT_HOLDERS, "List the caller's browser sessions")
async def list_own_sessions(call: Call) -> list[SessionRecord]:
    """The session that was used last comes first."""
    found = await call.catalog.look(list_sessions, _user_id(call))
    return [SessionRecord.of(each, call.identity.session_id) for each in found]


@table.delete("/user/sessions/<id>", ACCOUNT_HOLDERS, "End a browser session of the caller", audit="session.end")
async def end_own_session(call: Call, id: str) -> None:
    """Takes effect at once."""
    await call.write(call.entry(call.identity.username), end_session, _user_id(call), _number(id))


@table.delete("/user/sessions", ACCOUNT_HOLDERS, "End all other browser sessions of the caller", audit="session.end")
async def end_other_logins(call: Call) -> None:
    """The session of the request, if it has one, is kept."""
    entry = call.entry(call.identity.username)
    await call.write(entry, end_other_sessions, _user_id(call), call.identity.session_id)


@table.command(
    "user sessions USERNAME",
    columns="ID: id | ADDRESS: address | CLIENT: client:browser | SINCE: created_at:ago | USED: last_used_at:ago",
    nothing="nobody is logged in as {username} in a browser",
)
@table.get("/users/<id>/sessions", USER_MANAGERS, "List the browser sessions of a user")
async def list_sessions_of(call: Call, id: str) -> list[SessionRecord]:
    """The session that was used last comes first. Those of admins and system managers are shown to admins only."""
    user = await find_manageable(call, id)
    found = await call.catalog.look(list_sessions, user.id)
    return [SessionRecord.of(each, call.identity.session_id) for each in found]


@table.delete("/users/<id>/sessions/<session>", USER_MANAGERS, "End a browser session of a user", audit="session.end")
async def end_session_of(call: Call, id: str, session: str) -> None:
    """Takes effect at once. Only admins may do this for admins and system managers."""
    user = await find_manageable(call, id)
    await call.write(call.entry(user.username), end_session, user.id, _number(session))


@table.delete("/users/<id>/sessions", USER_MANAGERS, "End all browser sessions of a user", audit="session.end")
async def end_sessions_of(call: Call, id: str) -> EndedSessions:
    """
    The session of the request is kept. Access tokens stay valid: an inactive user has none that work.

    Only admins may do this for admins and system managers.
    """
    user = await find_manageable(call, id)
    ended = await call.write(call.entry(user.username), end_other_sessions, user.id, call.identity.session_id)
    return EndedSessions(ended=ended)


def _number(id: str) -> int:
    """The number of a session. :raises NotFound: it is no number"""
    if not id.isascii() or not id.isdigit() or len(id) > 18:
        raise NotFound("session", id)
    return int(id)


def _user_id(call: Call) -> int:
    if call.identity.user_id is None:
        raise AuthenticationRequired
    return call.identity.user_id
