"""
A login by a browser: the person approves it in the console, and the program waits for its token (RFC 8628).

With a browser on this machine, the approval comes back to a port of the loopback interface (RFC 8252 section 7.3), so
that nobody can make somebody else approve it. Without one, the person types a code at any machine.
"""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import Site

from pkgrepo.client.api import at
from pkgrepo.client.http import Failed
from pkgrepo.client.session import Session

MOST_CODE: Final = 200  # characters
WAITING: Final = ("authorization_pending", "invalid_grant")  # RFC 8628 section 3.5; the proof has not come yet
ENDED: Final = {
    "access_denied": "the login was denied",
    "expired_token": "nobody has approved this login in time",
}
_PAGE: Final = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>Logged in</title>'
    b"<p>You are logged in. You may close this page and go back to the terminal.</p>"
)


def can_open_browser(environ: Mapping[str, str]) -> bool:
    """Whether a browser can be opened that runs on this machine, with a window."""
    if "BROWSER" in environ:
        return True
    if "SSH_CONNECTION" in environ or "SSH_TTY" in environ:
        return False
    return sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


async def log_in_by_browser(session: Session, body: Mapping[str, Any], *, opens: bool) -> Any:
    """
    The record of a new token, with its text, after the person has approved it; ``body`` says what it is for.

    :raises Failed: the server refused, the person denied it, or it took too long
    """
    if opens:
        loopback = _Loopback(session.reactor)
        try:
            begun = await _begin(session, {**body, "port": loopback.port})
            session.printer.note(f"opening {begun['verification_uri_complete']}")
            session.printer.note(f"its code is {begun['user_code']}; with a browser elsewhere, use --no-browser")
            if await deferToThread(webbrowser.open, begun["verification_uri_complete"]):
                return await _wait(session, begun, loopback)
        finally:
            await loopback.close()
        session.printer.note("no browser could be opened")
    begun = await _begin(session, body)
    session.printer.note(f"open {begun['verification_uri']} in any browser, and type the code {begun['user_code']}")
    return await _wait(session, begun, None)


async def _begin(session: Session, body: Mapping[str, Any]) -> Any:
    return await session.client.change("POST", "user", "login", "device", body=dict(body))


async def _wait(session: Session, begun: Mapping[str, Any], loopback: _Loopback | None) -> Any:
    until = session.reactor.seconds() + begun["expires_in"]
    while session.reactor.seconds() < until:
        code = ""
        if loopback is None:
            await session.sleep(begun["interval"])
        else:
            code = await loopback.next_code(begun["interval"])
        made = await _fetch(session, begun["device_code"], code)
        if made is not None:
            return made
    raise Failed(ENDED["expired_token"])


async def _fetch(session: Session, device_code: str, code: str) -> Any:
    """The record of the token; None before the approval. :raises Failed: the login has ended"""
    body = {"device_code": device_code, "code": code}
    try:
        return (await session.client.call("POST", at("user", "login", "device", "token"), value=body)).value
    except Failed as refused:
        error = str(refused)
        if refused.status != 400 or error not in (*ENDED, *WAITING):
            raise
        if error in ENDED:
            raise Failed(ENDED[error]) from None
        return None


class _Loopback(Resource):
    """Listens on the loopback interface for the browser, which brings the ``code`` of an approval."""

    isLeaf = True

    def __init__(self, reactor: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._reactor = reactor
        self._codes: list[str] = []
        self._waiting: Deferred[str] | None = None
        self._listening = reactor.listenTCP(0, Site(self), interface="127.0.0.1")
        self.port: int = self._listening.getHost().port

    def render_GET(self, request: Any) -> bytes:
        """Take the code; other requests, as for an icon, bring none."""
        code = request.args.get(b"code", [b""])[0].decode("ascii", "replace")[:MOST_CODE]
        request.setHeader(b"content-type", b"text/html; charset=utf-8")
        request.setHeader(b"connection", b"close")
        if request.path != b"/" or not code:
            request.setResponseCode(404)
            return b""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            self._codes.append(code)
        else:
            waiting.callback(code)
        return _PAGE

    async def next_code(self, patience_s: float) -> str:
        """The next code; empty if none came in time."""
        if self._codes:
            return self._codes.pop(0)
        self._waiting = Deferred()
        self._waiting.addTimeout(patience_s, self._reactor)
        try:
            return await self._waiting
        except DeferredTimeout:
            self._waiting = None
            return ""

    async def close(self) -> None:
        """Listen no longer."""
        await self._listening.stopListening()
