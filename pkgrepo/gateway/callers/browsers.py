"""Browsers: the cookie of a session, and whether a request was sent to show a page, not by a client of a format."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response

CONSOLE: Final = "/ui"
SAFE_METHODS: Final = (b"GET", b"HEAD")
# A name with __Host- is bound to this very host and to https (RFC 6265bis section 4.1.3.2).
SECURE_PREFIX: Final = b"__Host-"
SECURE_NAME: Final = SECURE_PREFIX + b"pkgrepo"
PLAIN_NAME: Final = b"pkgrepo_session"
LOGIN_SUFFIX: Final = b"_login"
LANGUAGE_NAME: Final = b"pkgrepo_language"
LANGUAGE_AGE_S: Final = 365 * 86400
LONGEST: Final = 4096  # bytes of a Cookie field that is looked at


def session_secret(request: Request) -> bytes | None:
    """The secret in the request's cookie, or None."""
    return _cookie(request, _name(request))


def _cookie(request: Request, wanted: bytes) -> bytes | None:
    field = request.header(b"cookie")
    if field is None or len(field) > LONGEST:
        return None
    for pair in field.split(b";"):
        name, equals, value = pair.strip().partition(b"=")
        if equals and name == wanted:
            return value
    return None


def cookie_field(request: Request, secret: bytes, max_age_s: int) -> tuple[bytes, bytes]:
    """The Set-Cookie field that begins a session, or ends it with an empty secret and an age of zero."""
    return _field(request, _name(request), secret, max_age_s)


def _field(request: Request, name: bytes, value: bytes, max_age_s: int) -> tuple[bytes, bytes]:
    secure = b"; Secure" if _is_secure(request) else b""
    return b"Set-Cookie", b"%b=%b; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%b" % (name, value, max_age_s, secure)


def login_cookie(request: Request) -> bytes | None:
    """The cookie of a login that this browser began at an identity provider, or None."""
    return _cookie(request, _name(request) + LOGIN_SUFFIX)


def login_cookie_field(request: Request, value: bytes, max_age_s: int) -> tuple[bytes, bytes]:
    """The Set-Cookie field that binds a login to the browser, or removes it with an empty value and an age of zero."""
    return _field(request, _name(request) + LOGIN_SUFFIX, value, max_age_s)


def chosen_language(request: Request) -> str | None:
    """The code of the language in which this browser reads the console, as it was chosen; not yet validated."""
    found = _cookie(request, _language_name(request))
    return None if found is None else found.decode("ascii", "replace")


def language_cookie_field(request: Request, code: str) -> tuple[bytes, bytes]:
    """The Set-Cookie field that keeps a choice for a year."""
    return _field(request, _language_name(request), code.encode("ascii"), LANGUAGE_AGE_S)


def shows_page(request: Request) -> bool:
    """
    Whether the response will be shown to a person as a page.

    Browsers say so (Fetch metadata, section 2.2). Older ones prefer HTML to all other types and name Mozilla; pip,
    Gradle and others accept HTML among other types.
    """
    if request.method not in SAFE_METHODS:
        return False
    mode = request.header(b"sec-fetch-mode")
    if mode is not None:
        return mode == b"navigate"
    agent, accept = request.header(b"user-agent") or b"", request.header(b"accept") or b""
    return agent.startswith(b"Mozilla/") and accept.startswith(b"text/html,")


def to_console(base_url: str, path: str) -> Response:
    """Send a browser to a page of the console of the server with this address, a path below ``/ui``."""
    location = f"{base_url}{CONSOLE}{path}".encode("ascii")
    vary = (b"Vary", b"Sec-Fetch-Mode, User-Agent, Accept")
    return Response(303, headers=((b"Location", location), vary, *NO_STORE))


def _name(request: Request) -> bytes:
    return SECURE_NAME if _is_secure(request) else PLAIN_NAME


def _language_name(request: Request) -> bytes:
    return SECURE_PREFIX + LANGUAGE_NAME if _is_secure(request) else LANGUAGE_NAME


def _is_secure(request: Request) -> bool:
    return request.base_url.startswith("https:")
