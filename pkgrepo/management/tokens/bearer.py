"""
The token service: it issues short-lived bearer tokens for credentials.

Container clients request a token after a challenge (distribution's token specification). A token that was requested
without a scope opens the rest of the API (see L{pkgrepo.auth.tokens.bearer}). Actions that are not allowed are left out
of the token, and the request is not refused: clients request ``pull,push`` where their user may only pull.

After a login with a password, a client may also request a refresh token: an access token of the kind "login", which is
listed and revoked like others. Docker stores it instead of the password.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from msgspec import UNSET, UnsetType

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.auth.tokens.bearer import Access, allowed_words
from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.errors import AuthenticationRequired, Invalid, StorageFailed, StorageFull
from pkgrepo.gateway.callers.access import code_of, road_of
from pkgrepo.management.api.access_rules import PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Identity, Repository, TokenKind, TokenLimits
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.people.tokens import add_token
from pkgrepo.untrusted.fields import form_fields

from .schema import BearerAnswer

FORM_LIMIT = 64 * 1024  # bytes
MOST_SCOPES = 100
LOGIN_DAYS = 90  # life of a refresh token
CATALOG = "registry:catalog:*"

QUERY = (
    Parameter("service", "The name of the service; it is ignored."),
    Parameter("scope", "Requested actions, as repository:storage/name/image:pull,push; may be repeated."),
    Parameter("account", "The user name; it is ignored."),
    Parameter("offline_token", "true also requests a refresh token (GET only)."),
)


table = Table("tokens")


@table.get("/auth/token", PUBLIC, "Get a bearer token", query=QUERY, audit="login", blank=True)
async def request_token(call: Call) -> BearerAnswer:
    """
    Issues a token for the user in the Authorization field, or without credentials for anonymous reads.

    Actions that the caller lacks are left out of the token. A token without a scope opens the rest of the server,
    but no container repositories. A refresh token is issued only after a login with a password.
    """
    offline = _values(call.arguments, b"offline_token") == ["true"]
    return await _issue(call, call.identity, _values(call.arguments, b"scope"), offline=offline)


@table.post("/auth/token", PUBLIC, "Get a bearer token", query=QUERY, audit="login", blank=True)
async def request_token_by_form(call: Call) -> BearerAnswer:
    """
    Like GET; credentials and scopes may also be sent as a form (OAuth 2.0, RFC 6749 sections 4.3 and 6).

    grant_type is password or refresh_token; access_type=offline in the form requests a refresh token.
    """
    body = await call.request.body.read_all(FORM_LIMIT)
    form = form_fields(body.decode("utf-8", "replace"), MOST_SCOPES)
    identity = call.identity
    grant = form.get("grant_type", [""])[0]
    if grant not in ("", "password", "refresh_token"):
        raise Invalid("grant_type is password or refresh_token", "grant_type")
    if grant == "refresh_token":
        text = form.get("refresh_token", [""])[0]
        identity = await call.services.callers.authenticator.login("", text, *_told(call), road=road_of(call.request))
        call.identity = identity
    elif "username" in form or "password" in form:
        username, password = form.get("username", [""])[0], form.get("password", [""])[0]
        identity = await call.services.callers.authenticator.login(
            username, password, *_told(call), code=code_of(call.request), road=road_of(call.request)
        )
        call.identity = identity
    elif grant:
        raise AuthenticationRequired
    scopes = _values(call.arguments, b"scope") + form.get("scope", [])
    offline = form.get("access_type", [""])[0] == "offline"
    return await _issue(call, identity, scopes, offline=offline)


def _told(call: Call) -> tuple[str, str]:
    """The address and the User-Agent of a caller."""
    return call.request.client_address, (call.request.header(b"user-agent") or b"").decode("latin-1")


async def _issue(call: Call, identity: Identity, scopes: Iterable[str], *, offline: bool) -> BearerAnswer:
    """A token for the allowed part of the scopes; without any scope, one for the rest of the server."""
    asked = _split(scopes)
    host = call.request.asked_host
    granted = [access for scope in asked if (access := await _grant(call, host, identity, scope)) is not None]
    issued = await call.services.callers.bearer.issue(identity, granted, scoped=bool(asked), catalog=CATALOG in asked)
    call.object = identity.username or "anonymous"
    if identity.anonymous:
        call.audited = True  # a token for an anonymous caller is no login
    return BearerAnswer(
        token=issued.text,
        access_token=issued.text,
        expires_in=issued.expires_in,
        issued_at=issued.issued_at,
        scope=" ".join(f"repository:{access.name}:{','.join(access.words)}" for access in granted),
        refresh_token=await _remember(call, identity) if offline and identity.via == "password" else UNSET,
    )


async def _remember(call: Call, identity: Identity) -> str | UnsetType:
    """
    A new refresh token for a caller who sent a password.

    UNSET while the catalog cannot be written: docker then stores the password, and its pulls work.
    """
    assert identity.user_id is not None
    text = make_token(TokenKind.LOGIN)
    days = min(LOGIN_DAYS, call.services.token_max_days)
    adding = call.catalog.write(
        add_token,
        user_id=identity.user_id,
        hash=hash_token(text),
        shown=shown_part(text),
        kind=TokenKind.LOGIN,
        name="login of a container client",
        limits=TokenLimits(expires_at=from_ms(call.now_ms) + timedelta(days=days)),
        created_from=call.request.client_address,
        now_ms=call.now_ms,
    )
    try:
        await adding
    except (StorageFull, StorageFailed):
        return UNSET
    return text


async def _grant(call: Call, host: str | None, identity: Identity, scope: str) -> Access | None:
    """The allowed actions of one scope; None if there are none."""
    kind, _, rest = scope.partition(":")
    name, colon, words = rest.rpartition(":")
    if kind.partition("(")[0] != "repository" or not colon:
        return None
    for repository, package in _candidates(call, host, name):
        access = await _allow(call, identity, repository, package, name, words)
        if access is not None:
            return access
    return None


async def _allow(
    call: Call, identity: Identity, repository: Repository, package: str, name: str, words: str
) -> Access | None:
    if not repository.active:
        return None
    if package:
        try:
            package = call.services.formats[repository.format].package_key(package)
        except (Invalid, KeyError):
            return None
    allowed = await allowed_words(call.services.callers.authorizer, identity, repository, package, words.split(","))
    if not allowed:
        return None
    return Access(name=name, repository=repository.authority.path, package=package, words=allowed)


def _candidates(call: Call, host: str | None, name: str) -> Iterator[tuple[Repository, str]]:
    """
    The repositories that a scope's name may mean, and the package in each; empty means the whole repository.

    The name may be that of a repository, or of an image in another repository. Both are yielded, the repository
    first: for a caller who may not see it, the other meaning counts.
    """
    storage, _, rest = name.partition("/")
    repository_name, _, package = rest.partition("/")
    repository = call.registry.find(storage, repository_name)
    if repository is not None and (not has_images(repository) or not package):
        yield repository, package
    images = call.shared.images
    for found in (images.find(host, name), images.find_default(host, name)):
        if found is not None:
            yield found.repository, found.image


def _values(arguments: Mapping[bytes, list[bytes]], name: bytes) -> list[str]:
    return [value.decode("utf-8", "replace") for value in arguments.get(name, [])]


def _split(scopes: Iterable[str]) -> list[str]:
    """Scopes from parameters, each with one scope or several separated by spaces (RFC 6749 section 3.3)."""
    return [each for text in scopes for each in text.split()][:MOST_SCOPES]
