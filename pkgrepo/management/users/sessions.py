"""The routes by which a browser logs in and out, and those to the caller's sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, NotFound
from pkgrepo.gateway.callers.session_cookies import cookie_field
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.storage.catalog.people.sessions import Session, end_other_sessions, end_session, list_sessions

from .schema import Password


class BrowserLogin(Body):
    """The name and the password of a person."""

    username: str
    password: Password


class BegunSession(Record):
    """A session that has begun: changes must repeat csrf in the field X-CSRF."""

    username: str
    csrf: str


class SessionRecord(Record):
    """A login in a browser; address and client are those of the login, current tells that it is the caller's own."""

    id: str
    created_at: datetime
    last_used_at: datetime
    address: str
    client: str
    current: bool

    measured = frozenset({"last_used_at"})

    @classmethod
    def of(cls, session: Session, current_id: int | None) -> Self:
        """The record of a session."""
        return cls.from_attributes(
            session, id=str(session.id), last_used_at=session.seen_at, current=session.id == current_id
        )


class BrowserLogins(Handlers):
    """Begins, lists and ends browser sessions."""

    table = Table("account")

    @table.route(
        "POST",
        "/user/login",
        access=PUBLIC,
        summary="Log in with a browser",
        body=BrowserLogin,
        answer=BegunSession,
        audit="login",
    )
    async def log_in(self, call: Call, body: BrowserLogin) -> Answer:
        """
        Sets a cookie that authenticates reads, and changes that repeat the returned value in the field X-CSRF.

        Only passwords begin sessions; access tokens are for programs.
        """
        request = call.request
        client = (request.header(b"user-agent") or b"").decode("latin-1")
        identity = await self._services.authenticator.login(
            body.username, body.password, request.client_address, client
        )
        if identity.via != "password":
            raise AuthenticationFailed
        call.identity, call.object = identity, identity.username
        sessions = self._services.sessions
        secret = await sessions.begin(identity, request.client_address, client)
        begun = BegunSession(username=identity.username, csrf=csrf_of(secret))
        return json_answer(begun, headers=(*NO_STORE, cookie_field(request, secret, sessions.longest_s)))

    @table.route("POST", "/user/logout", access=ACCOUNT_HOLDERS, summary="Log out", status=204, audit="logout")
    async def log_out(self, call: Call) -> Answer:
        """Ends the session of the request, and removes its cookie."""
        identity = call.identity
        if identity.session_id is not None and identity.user_id is not None:
            await call.write(call.entry(identity.username), end_session, identity.user_id, identity.session_id)
        return Answer(204, headers=(*NO_STORE, cookie_field(call.request, b"", 0)))

    @table.route(
        "GET",
        "/user/sessions",
        access=ACCOUNT_HOLDERS,
        summary="List the caller's browser sessions",
        answer=list[SessionRecord],
    )
    async def sessions(self, call: Call) -> list[SessionRecord]:
        """The session that was used last comes first."""
        found = await self._catalog.look(list_sessions, _user_id(call))
        return [SessionRecord.of(each, call.identity.session_id) for each in found]

    @table.route(
        "DELETE",
        "/user/sessions/<id>",
        access=ACCOUNT_HOLDERS,
        summary="End a browser session of the caller",
        status=204,
        audit="session.end",
    )
    async def end(self, call: Call, id: str) -> None:
        """Takes effect at once."""
        if not id.isascii() or not id.isdigit() or len(id) > 18:
            raise NotFound("session", id)
        await call.write(call.entry(call.identity.username), end_session, _user_id(call), int(id))

    @table.route(
        "DELETE",
        "/user/sessions",
        access=ACCOUNT_HOLDERS,
        summary="End all other browser sessions of the caller",
        status=204,
        audit="session.end",
    )
    async def end_others(self, call: Call) -> None:
        """The session of the request, if it has one, is kept."""
        entry = call.entry(call.identity.username)
        await call.write(entry, end_other_sessions, _user_id(call), call.identity.session_id)


def _user_id(call: Call) -> int:
    if call.identity.user_id is None:
        raise AuthenticationRequired
    return call.identity.user_id
