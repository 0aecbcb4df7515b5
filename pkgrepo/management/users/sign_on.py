"""
Logins at identity providers (single sign-on), as a browser does them, logouts that a provider orders, and at which of
them a user logs in.
"""

from __future__ import annotations

from typing import Annotated, Final

from pkgrepo.auth.external_accounts import DIRECTORY
from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.errors import IdentityRefused
from pkgrepo.gateway.callers.browsers import cookie_field, login_cookie, login_cookie_field, session_secret
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, USER_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import Username
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.users.links import ways_in
from pkgrepo.management.users.permissions import find_user
from pkgrepo.model.structs import meaning
from pkgrepo.oidc.sign_on import PATIENCE_S
from pkgrepo.untrusted.fields import form_fields

FORM_LIMIT: Final = 64 * 1024  # bytes
MOST_FIELDS: Final = 100
MOST_TARGET: Final = 1000  # characters of a page's path
MOST_CLIENT: Final = 200  # characters of a User-Agent

table = Table("account")


class ProviderRecord(Record):
    """An identity provider at which people log in with a browser."""

    name: Annotated[str, meaning("The name of the identity provider.")]


class SignOnBegin(Body):
    """The page of the console to show after the login."""

    next: Annotated[str, meaning("The page of the console to show after the login.")] = ""


class SignOnBegun(Record):
    """Where the browser goes next."""

    url: Annotated[str, meaning("The address where the browser goes next.")]


class SignOnAnswer(Body):
    """What the provider sent the browser back with."""

    code: Annotated[str, meaning("The code of the provider.")] = ""
    state: Annotated[str, meaning("The state that the server gave the provider.")] = ""
    iss: Annotated[str, meaning("The issuer that answers (RFC 9207).")] = ""
    error: Annotated[str, meaning("The error of the provider; empty without any.")] = ""
    error_description: Annotated[str, meaning("What the provider says about the error.")] = ""


class LoginMethods(Record):
    """How a user logs in: with a password of this server, at identity providers, with the password of directories."""

    password: Annotated[bool, meaning("Whether users log in with a password of this server.")]
    providers: Annotated[list[str], meaning("The identity providers.")]
    directories: Annotated[list[str], meaning("The directories whose passwords are taken.")]


class SignOnEnded(Record):
    """A session that has begun: changes must repeat csrf in the field X-CSRF; next is the page to show."""

    username: Username
    csrf: Annotated[str, meaning("What changes repeat in the field X-CSRF.")]
    next: Annotated[str, meaning("The page of the console to show.")]


@table.get("/user/login/oidc", PUBLIC, "List the identity providers")
async def list_providers(call: Call) -> list[ProviderRecord]:
    """Those of the setting auth.oidc."""
    return [ProviderRecord(name=each) for each in call.services.callers.sign_on.names]


@table.get("/user/me/login-methods", ACCOUNT_HOLDERS, "Show how the caller logs in")
async def show_own_methods(call: Call) -> LoginMethods:
    """Providers and directories are those at which the caller has logged in before."""
    assert call.identity.user_id is not None
    return await _methods(call, call.identity.user_id)


@table.get("/users/<id>/login-methods", USER_MANAGERS, "Show how a user logs in")
async def show_methods(call: Call, id: str) -> LoginMethods:
    """Providers and directories are those at which the user has logged in before."""
    return await _methods(call, (await find_user(call, id)).id)


@table.post(
    "/user/login/oidc/<provider>",
    PUBLIC,
    "Begin a login at an identity provider",
    answer=SignOnBegun,
    audit="login.begin",
)
async def begin_login(call: Call, body: SignOnBegin, provider: str) -> Response:
    """Sets a cookie that binds the login to this browser for ten minutes, and returns the address to go to."""
    call.audited = True  # nothing has changed yet
    begun = await call.services.callers.sign_on.begin(provider, _redirect_uri(call, provider), body.next[:MOST_TARGET])
    cookie = login_cookie_field(call.request, begun.cookie.encode(), PATIENCE_S)
    return json_response(SignOnBegun(url=begun.url), headers=(*NO_STORE, cookie))


@table.post(
    "/user/login/oidc/<provider>/callback",
    PUBLIC,
    "End a login at an identity provider",
    answer=SignOnEnded,
    audit="login",
)
async def end_login(call: Call, body: SignOnAnswer, provider: str) -> Response:
    """Needs the cookie of the browser that began the login; sets that of a session."""
    request = call.request
    cookie = login_cookie(request)
    if cookie is None:
        raise IdentityRefused("this browser has begun no login: begin it again")
    answer = {
        name: value for name in ("code", "state", "iss", "error", "error_description") if (value := getattr(body, name))
    }
    redirect_uri = _redirect_uri(call, provider)
    ended = await call.services.callers.sign_on.end(provider, redirect_uri, cookie.decode("latin-1"), answer)
    call.identity = identity_of(ended.user, via="session")
    call.object = ended.user.username
    client = (request.header(b"user-agent") or b"").decode("latin-1")[:MOST_CLIENT]
    sessions = call.services.callers.sessions
    secret = await sessions.begin(
        call.identity,
        request.client_address,
        client,
        linked_id=ended.linked.id,
        sid=ended.sid,
        before=session_secret(request),
    )
    begun = SignOnEnded(username=ended.user.username, csrf=csrf_of(secret), next=ended.target)
    cookies = (cookie_field(request, secret, sessions.longest_s), login_cookie_field(request, b"", 0))
    return json_response(begun, headers=(*NO_STORE, *cookies))


@table.post("/user/login/oidc/<provider>/logout", PUBLIC, "End sessions by a logout token", audit="session.end")
async def log_out_by_provider(call: Call, provider: str) -> None:
    """
    The address for back-channel logout (OpenID Connect), with a form that has logout_token.

    Ends the sessions that were begun in the provider's session, or all sessions of the person from there.
    """
    body = await call.request.body.read_all(FORM_LIMIT)
    fields = form_fields(body.decode("utf-8", "replace"), MOST_FIELDS)
    try:
        await call.services.callers.sign_on.end_by_provider(provider, fields.get("logout_token", [""])[0], call.actor)
    except IdentityRefused as error:  # section 2.8
        raise Refusal(400, str(error), "identity_refused") from None
    call.audited = True  # in the same transaction


async def _methods(call: Call, user_id: int) -> LoginMethods:
    has_password, issuers = await call.catalog.look(ways_in, user_id)
    directories = [each.removeprefix(DIRECTORY) for each in issuers if each.startswith(DIRECTORY)]
    providers = [call.services.callers.sign_on.name_of(each) for each in issuers if not each.startswith(DIRECTORY)]
    return LoginMethods(password=has_password, providers=sorted(providers), directories=sorted(directories))


def _redirect_uri(call: Call, provider: str) -> str:
    return f"{call.base_url}/ui/login/oidc/{provider}/callback"
