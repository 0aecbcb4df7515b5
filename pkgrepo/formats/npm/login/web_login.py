"""
Login through a browser: the client gets two addresses, opens one in a browser and polls the other.

=======  ===========================================  =====================================================
who      does                                         result
=======  ===========================================  =====================================================
client   ``POST /-/v1/login``                         a random secret inside ``doneUrl``; nothing is stored
user     opens ``loginUrl``, enters name, password,   the approval is stored under the digest of the secret
         or agrees, if logged in to the console
client   polls ``GET doneUrl``                        202 until the approval; then the token, once
=======  ===========================================  =====================================================

Both addresses carry their expiry time and an HMAC, so that a begun login takes no storage. The secret is in the query,
which is not logged; ``loginUrl`` has only its digest.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from html import escape
from typing import Final
from urllib.parse import parse_qs, quote

from pkgrepo.auth.accounts import add_personal_token, owner_of
from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.auth.tokens.text import make_token
from pkgrepo.errors import DirectoryUnavailable, Forbidden, NotFound, SecondFactorMissing, SecondFactorRequired
from pkgrepo.formats.npm.login.accounts import authenticate, limits_for
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.callers.browsers import CONSOLE, session_secret
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Refusal, Response, json_response
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Identity, TokenKind, TokenLimits
from pkgrepo.storage.catalog.people import logins, users
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.audit import Entry

LIFE_MS: Final = 5 * 60 * 1000
POLL_S: Final = 2  # seconds between two polls of a client
FORM_SIZE: Final = 16 * 1024  # bytes
SETTING: Final = "npm_login_secret"

PAGE_FIELDS: Final[Fields] = (
    *NO_STORE,
    (
        b"Content-Security-Policy",
        b"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    ),
    # With no-referrer browsers send no Origin with the form; it is checked (Fetch standard, section 3.2).
    (b"Referrer-Policy", b"same-origin"),
)
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:10vh auto;padding:0 1rem}"
    "label{display:block;margin:1rem 0}input{display:block;width:100%;font:inherit;padding:.4rem;box-sizing:border-box}"
    "button{font:inherit;padding:.4rem 1rem}.wrong{color:#a00}"
)


async def begin_login(context: Context[object], request: Request) -> Response:
    """The two addresses of a new login."""
    key = await _key(context)
    until_ms = context.services.clock.now_ms() + LIFE_MS
    secret = secrets.token_urlsafe(32)
    done = seal(key, "done", until_ms, secret)
    opened = seal(key, "login", until_ms, _digest(secret))
    response = {
        "loginUrl": f"{context.url(request)}/-/v1/login?session={opened}",
        "doneUrl": f"{context.url(request)}/-/v1/done?session={done}",
    }
    return json_response(response, headers=NO_STORE)


async def poll_login(context: Context[object], request: Request) -> Response:
    """The token of an approved login, once; 202 before the approval. :raises Refusal: the login has ended"""
    secret, _ = await _open(context, request, "done")
    digest = _digest(secret)
    approval = await context.services.catalog.look(logins.find_approval, digest)
    if approval is None:
        return json_response({}, 202, headers=(*NO_STORE, (b"Retry-After", b"%d" % POLL_S)))
    text = make_token(TokenKind.PERSONAL)
    limits = context.services.accounts.ending(limits_for(context))
    actor = Actor(address=request.client_address, request_id=request.request_id)
    entry = await context.services.catalog.write(
        _issue_token, digest, text, limits, actor, context.services.clock.now_ms()
    )
    if entry is None:
        raise _ended()
    context.services.accounts.copy_entry(entry)
    return json_response({"token": text}, headers=NO_STORE)


async def login_form(context: Context[object], request: Request) -> Response:
    """The page that asks for name and password, or only for consent if the browser is logged in to the console."""
    await _open(context, request, "login")
    secret = session_secret(request)
    if secret is not None:
        identity = await context.services.access.session_identity(request, secret)
        if not identity.anonymous:
            return _consent(context, identity.username, csrf_of(secret))
    return _page(context, request)


async def approve_login(context: Context[object], request: Request) -> Response:
    """
    Approve the login, when name and password in the submitted form are right, or it is the consent of a session.

    Otherwise the page again.
    """
    digest, until_ms = await _open(context, request, "login")
    fields = parse_qs((await read_body(request, FORM_SIZE)).decode("utf-8", "replace"))
    username, password, code = (fields.get(name, [""])[0] for name in ("username", "password", "code"))
    request.csrf = fields.get("csrf", [""])[0]
    if request.csrf:
        return await _approve_in_session(context, request, digest, until_ms)
    if not username or not password:
        return _page(context, request, "Type your user name and your password.", username)
    try:
        identity = await authenticate(context, request, username, password, code)
    except SecondFactorRequired:
        return _page(context, request, "Type the one-time password of your app, too.", username, status=401)
    except (Refusal, SecondFactorMissing, NotFound, Forbidden, DirectoryUnavailable) as error:
        sentence = error.sentence if isinstance(error, Refusal) else str(error)
        status = {NotFound: 404, Forbidden: 403, DirectoryUnavailable: 503}.get(type(error), 401)
        return _page(context, request, f"{sentence[:1].upper()}{sentence[1:]}.", username, status=status)
    if identity.limits is not None:
        return _page(context, request, "Log in with the password, not with a token.", username, status=403)
    return await _approve(context, identity, digest, until_ms)


async def _approve_in_session(context: Context[object], request: Request, digest: str, until_ms: int) -> Response:
    """Approve the login for the person who is logged in to the console, whose form repeats the session's value."""
    identity = await context.services.access.identify(request)
    if identity.via != "session":
        return _page(context, request, "Your login in this browser has ended.", status=401)
    if not await context.services.access.authorizer.knows(identity, context.repository):
        raise unknown(identity, context.repository.path)
    return await _approve(context, identity, digest, until_ms)


async def _approve(context: Context[object], identity: Identity, digest: str, until_ms: int) -> Response:
    approved = await context.services.catalog.write(
        logins.approve_login,
        digest,
        user_id=owner_of(identity),
        until_ms=until_ms,
        now_ms=context.services.clock.now_ms(),
    )
    if not approved:
        raise _ended()
    return _html("<h1>Logged in</h1><p>You may close this page and go back to the terminal.</p>")


async def _open(context: Context[object], request: Request, purpose: str) -> tuple[str, int]:
    """The value and expiry time in a sealed address. :raises Refusal: the seal is wrong, or has expired"""
    sealed = request.parameter(b"session") or ""
    opened = unseal(await _key(context), purpose, sealed)
    if opened is None or opened[1] <= context.services.clock.now_ms():
        raise _ended()
    return opened


async def _key(context: Context[object]) -> bytes:
    """The HMAC key, which all processes share."""
    found = await context.services.catalog.look(settings.get, SETTING)
    if found is None:
        found = await context.services.catalog.write(settings.ensure_secret, SETTING)
    return found.encode()


def _asking(context: Context[object]) -> str:
    return (
        f"<h1>Log in</h1><p>A package client wants to use <b>{escape(context.repository.path)}</b> in your name. "
        "Go on only if you started it yourself just now.</p>"
    )


def _consent(context: Context[object], username: str, csrf: str) -> Response:
    return _html(
        f'{_asking(context)}<form method="post"><input type="hidden" name="csrf" value="{escape(csrf)}">'
        f"<button>Go on as {escape(username)}</button></form>"
    )


def _page(
    context: Context[object], request: Request, problem: str = "", username: str = "", *, status: int = 200
) -> Response:
    here = quote(request.uri.decode("ascii", "replace"), safe="")
    problem_line = f'<p class="wrong">{escape(problem)}</p>' if problem else ""
    return _html(
        f"{_asking(context)}{problem_line}"
        '<form method="post"><label>User name<input name="username" autocomplete="username" required '
        f'value="{escape(username)}"></label><label>Password<input name="password" type="password" '
        'autocomplete="current-password" required></label><label>One-time password, if you have a second factor'
        '<input name="code" autocomplete="one-time-code" maxlength="64"></label><button>Log in</button></form>'
        f'<p>Without a password here: <a href="{CONSOLE}/login?next={escape(here)}">log in to the console</a>, which '
        "comes back to this page.</p>",
        status,
    )


def _issue_token(
    tx: Transaction, digest: str, text: str, limits: TokenLimits, actor: Actor, now_ms: int
) -> Entry | None:
    """Issue the token of an approved login. Returns its audit entry; None when the token was fetched before."""
    user_id = logins.fetch_login(tx, digest, now_ms=now_ms)
    user = None if user_id is None else users.find_user(tx, user_id)
    if user is None or not user.active:
        return None
    who = Actor(user_id=user.id, name=user.username, address=actor.address, request_id=actor.request_id)
    return add_personal_token(tx, user.id, text, "npm login (web)", limits, who, now_ms)[1]


def _ended() -> Refusal:
    return Refusal(404, "this login has ended; begin anew with npm login", "login_ended")


def _html(body: str, status: int = 200) -> Response:
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Log in</title><style>{_STYLE}</style>{body}</html>"
    return Response(status, page.encode(), b"text/html; charset=utf-8", headers=PAGE_FIELDS)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def seal(key: bytes, purpose: str, until_ms: int, value: str) -> str:
    """A value with its expiry time and their HMAC; a value sealed for one purpose is invalid for another."""
    return f"{until_ms}.{value}.{_mac(key, purpose, until_ms, value)}"


def unseal(key: bytes, purpose: str, sealed: str) -> tuple[str, int] | None:
    """The value in a seal and its expiry time, in milliseconds; None when the HMAC does not match."""
    until, _, rest = sealed.partition(".")
    value, _, mac = rest.partition(".")
    if not (until.isascii() and until.isdigit() and len(until) < 16 and value.isascii() and mac.isascii()):
        return None
    if not hmac.compare_digest(mac, _mac(key, purpose, int(until), value)):
        return None
    return value, int(until)


def _mac(key: bytes, purpose: str, until_ms: int, value: str) -> str:
    digest = hmac.digest(key, f"{purpose}.{until_ms}.{value}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
