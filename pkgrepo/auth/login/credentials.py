"""
Parses Authorization headers into twisted.cred credentials.

==========================================  ========================================================
header value                                who sends it
==========================================  ========================================================
``Basic <base64 of name:secret>``           pip, twine, Maven, docker login; the secret is a password
                                            or an access token
``Bearer <access token>``                   npm, the management API
``Bearer <signed token>``                   container clients, from the token service
``Bearer <base64 of name:secret>``          tools that deploy bundles of Java artifacts
``<access token>``                          gem: the whole value, no scheme word (RubyGems API)
``Token <access token>``                    scripts written for other registries
``Basic <base64>, <access token>``          gem push, if the URL holds credentials too: net/http
                                            joins both fields; the token is used
==========================================  ========================================================

A token may also be the Basic user name, without a password (bundler: ``bundle config <address> <token>``). Schemes
are case-insensitive (RFC 9110 11.1). Secrets never appear in ``repr``.

The secret of a browser session comes in a cookie, and the name of a user in the field of a trusted proxy.
L{session_header} and L{proxied_header} give them a form that no header value has, so that all share one cache of
identities.
"""

from __future__ import annotations

import base64
import binascii

from attrs import field, frozen
from twisted.cred.credentials import ICredentials
from zope.interface import Attribute, implementer

from pkgrepo.auth.tokens.text import token_kind
from pkgrepo.errors import AuthenticationFailed

MAX_NAME = 256  # characters; failed names are kept in memory for a while
MAX_CODE = 64  # characters of a code, with blanks
MAX_SECRET = 1024  # characters; longer passwords only cost hashing time

_SESSION = b"\0session "  # no field value has NUL (RFC 9110 section 5.5)
_PROXIED = b"\0proxied "
_UNNAMED = frozenset({"", "token", "__token__", "oauth2accesstoken", "00000000-0000-0000-0000-000000000000"})


class IPasswordCredentials(ICredentials):
    """A user name and a password."""

    username = Attribute("as the client spelled it, a str")
    password = Attribute("the password in clear, a str")
    address = Attribute("where it came from, a str, for counting failures")
    code = Attribute("the code of a second factor, or a recovery code, a str; empty without one")
    enrolling = Attribute("whether a second factor is set up, so that one that the account must have may be missing")


class ITokenCredentials(ICredentials):
    """An access token."""

    text = Attribute("the whole token, a str whose form and check characters are right")
    username = Attribute("the user name sent beside it, a str; empty when none was, or it names no user")


class ISignedCredentials(ICredentials):
    """A short-lived token of the token service."""

    text = Attribute("the compact form, a str")


class ISessionCredentials(ICredentials):
    """The cookie of a browser session."""

    secret = Attribute("its value, bytes")


@implementer(IPasswordCredentials)
@frozen
class PasswordCredentials:
    """A name and a password, from Basic or from a form."""

    username: str
    password: str = field(repr=False)
    address: str = ""
    code: str = field(default="", repr=False)
    enrolling: bool = False


@implementer(ITokenCredentials)
@frozen
class TokenCredentials:
    """An access token, and the name in the same Basic header."""

    text: str = field(repr=False)
    username: str = ""


@implementer(ISignedCredentials)
@frozen
class SignedCredentials:
    """A signed bearer token."""

    text: str = field(repr=False)


class IProxiedCredentials(ICredentials):
    """The name of a user whom a trusted reverse proxy has authenticated."""

    username = Attribute("as the proxy spelled it, a str")


@implementer(IProxiedCredentials)
@frozen
class ProxiedCredentials:
    """A name in the header field of a trusted proxy."""

    username: str


@implementer(ISessionCredentials)
@frozen
class SessionCredentials:
    """The secret of a browser session."""

    secret: bytes = field(repr=False)


Credentials = PasswordCredentials | TokenCredentials | SignedCredentials | SessionCredentials | ProxiedCredentials


def session_header(secret: bytes) -> bytes:
    """The secret of a browser session in place of an Authorization header, for L{parse_authorization}."""
    return _SESSION + secret


def proxied_header(username: bytes) -> bytes:
    """The name of a user, from a trusted proxy, in place of an Authorization header, for L{parse_authorization}."""
    return _PROXIED + username


def parse_authorization(header: bytes, address: str = "", code: str = "") -> Credentials:
    """
    Parse the value of an Authorization header; ``address`` is the client's, ``code`` that of a second factor.

    :raises AuthenticationFailed: it has none of the forms above
    """
    if header.startswith(b"\0"):
        return _from_elsewhere(header)
    try:
        value = header.decode("ascii").strip()
    except UnicodeDecodeError:
        raise AuthenticationFailed from None
    if "," in value:
        value = _foremost(value)
    scheme, _, rest = value.partition(" ")
    if not rest:
        return _token(value)
    rest = rest.strip()
    match scheme.lower():
        case "basic":
            return _basic(rest, address, code)
        case "bearer":
            if token_kind(rest):
                return _token(rest)
            return _signed(rest) if "." in rest else _basic(rest, address, code)
        case "token":
            return _token(rest)
        case _:
            raise AuthenticationFailed


def _from_elsewhere(header: bytes) -> Credentials:
    """The credentials in a form that no header value has."""
    if header.startswith(_SESSION):
        return SessionCredentials(header.removeprefix(_SESSION))
    return ProxiedCredentials(header.removeprefix(_PROXIED).decode("utf-8", "replace").strip())


def is_blank(header: bytes) -> bool:
    """Whether an Authorization header is Basic with an empty name and an empty password."""
    scheme, _, rest = header.strip().partition(b" ")
    return scheme.lower() == b"basic" and rest.strip() == b"Og=="  # base64 of ":"


def named_secret(
    username: str, secret: str, address: str = "", code: str = "", *, enrolling: bool = False
) -> Credentials:
    """
    The credentials for a name and a secret, from Basic or from a form.

    A secret or a name in the form of an access token is an access token; names such as ``__token__`` have no meaning.

    :raises AuthenticationFailed: secret or name is missing, or too long
    """
    if token_kind(secret):
        return TokenCredentials(text=secret, username="" if username.lower() in _UNNAMED else username)
    if token_kind(username):
        return TokenCredentials(text=username)
    if not username or not secret or len(secret) > MAX_SECRET or len(username) > MAX_NAME:
        raise AuthenticationFailed
    return PasswordCredentials(
        username=username, password=secret, address=address, code=code[:MAX_CODE], enrolling=enrolling
    )


def _foremost(value: str) -> str:
    """The access token among the parts of a joined field, else the first part."""
    parts = [part.strip() for part in value.split(",")]
    return next((part for part in parts if token_kind(part)), parts[0])


def _basic(encoded: str, address: str, code: str) -> Credentials:
    try:
        raw = base64.b64decode(encoded, validate=True)
        text = raw.decode("utf-8")
    except binascii.Error:
        raise AuthenticationFailed from None
    except UnicodeDecodeError:
        # RFC 7617 does not fix the charset; old Java clients and Python's requests send latin-1
        text = raw.decode("latin-1")
    username, colon, secret = text.partition(":")
    if not colon:
        raise AuthenticationFailed
    return named_secret(username, secret, address, code)


def _token(text: str) -> TokenCredentials:
    if not token_kind(text):
        raise AuthenticationFailed
    return TokenCredentials(text=text)


def _signed(text: str) -> SignedCredentials:
    if text.count(".") != 2:  # header, claims, signature: RFC 7515 7.1
        raise AuthenticationFailed
    return SignedCredentials(text=text)
