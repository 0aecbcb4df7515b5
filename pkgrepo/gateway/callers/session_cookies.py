"""The cookie of a browser session."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.request import Request

# A name with __Host- is bound to this very host and to https (RFC 6265bis section 4.1.3.2).
SECURE_NAME: Final = b"__Host-pkgrepo"
PLAIN_NAME: Final = b"pkgrepo_session"
LONGEST: Final = 4096  # bytes of a Cookie field that is looked at


def session_secret(request: Request) -> bytes | None:
    """The secret in the request's cookie, or None."""
    field = request.header(b"cookie")
    if field is None or len(field) > LONGEST:
        return None
    wanted = _name(request)
    for pair in field.split(b";"):
        name, equals, value = pair.strip().partition(b"=")
        if equals and name == wanted:
            return value
    return None


def cookie_field(request: Request, secret: bytes, max_age_s: int) -> tuple[bytes, bytes]:
    """The Set-Cookie field that begins a session, or ends it with an empty secret and an age of zero."""
    secure = b"; Secure" if _is_secure(request) else b""
    value = b"%b=%b; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%b" % (_name(request), secret, max_age_s, secure)
    return b"Set-Cookie", value


def _name(request: Request) -> bytes:
    return SECURE_NAME if _is_secure(request) else PLAIN_NAME


def _is_secure(request: Request) -> bool:
    return request.base_url.startswith("https:")
