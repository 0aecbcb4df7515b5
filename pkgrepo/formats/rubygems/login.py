"""
Answers ``gem signin`` and the requests of old clients for an API key.

An API key is an access token for this repository. Its rights are those that the form asks for; a right is never added
to a key later. An access token as the password, which those have who log in at an identity provider, becomes the key
itself if it has those rights.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from pkgrepo.auth.login.credentials import TokenCredentials, parse_authorization
from pkgrepo.auth.tokens.limits import allows
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired
from pkgrepo.formats.rubygems.changes import read_fields
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.callers.tokens import PERSONAL, limits_in
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response
from pkgrepo.model import Action, Identity

LONGEST_NAME: Final = 100  # characters of a key's name

# What the words of ``gem signin`` (RubyGems 3.2 and later) allow beyond reading. Those for owners and web hooks add
# nothing: here, only who may push may change owners, and a key for owners must not push.
_RIGHTS: Final[Mapping[str, frozenset[Action]]] = {
    "index_rubygems": frozenset(),
    "push_rubygem": frozenset({Action.WRITE}),
    "yank_rubygem": frozenset({Action.DELETE}),
    "add_owner": frozenset(),
    "update_owner": frozenset(),
    "remove_owner": frozenset(),
    "access_webhooks": frozenset(),
    "configure_trusted_publishers": frozenset(),
    "show_dashboard": frozenset(),
}
# RubyGems 3.2 to 3.4 ask for each right and take Enter for no.
_NO_RIGHT: Final = (
    "Choose at least one right: answer y to push_rubygem for a key that pushes, to index_rubygems for one that reads."
)


async def create_key(context: Context[object], request: Request) -> Response:
    """
    A new key with the name and the rights in the form.

    :raises AuthenticationFailed: the password is wrong
    :raises Refusal: the form asks for no right, as the public server refuses it
    """
    identity = await _identify(context, request)
    fields = await read_fields(request)
    chosen = [rights for word, rights in _RIGHTS.items() if _is_true(fields.get(word))]
    if not chosen:
        raise Refusal(422, _NO_RIGHT, "no_right")
    actions = {Action.READ}.union(*chosen)
    if identity.limits is not None:
        return text_response(_own_token(context, request, identity, actions), headers=NO_STORE)
    return text_response(await _issue(context, request, identity, fields.get("name", ""), actions), headers=NO_STORE)


async def read_key(context: Context[object], request: Request) -> Response:
    """
    A key for everything that clients do, which RubyGems before 3.2 asks for.

    :raises Refusal: a page of another site asks for it with credentials that a browser stores
    """
    return text_response(await _personal_key(context, request), headers=NO_STORE)


async def read_json_key(context: Context[object], request: Request) -> Response:
    """The key of L{read_key}, in JSON."""
    return json_response({"rubygems_api_key": await _personal_key(context, request)}, headers=NO_STORE)


async def extend_key(context: Context[object], request: Request) -> Response:
    """Refuse to add rights to a key."""
    await _identify(context, request)
    raise Refusal(403, "A key gets no further rights later: sign in again for a key that has them.", "forbidden")


def _own_token(context: Context[object], request: Request, identity: Identity, actions: Set[Action]) -> str:
    """
    The access token that came as the password.

    :raises AuthenticationFailed: it was a token of another kind; :raises Refusal: it lacks a right
    """
    credentials = parse_authorization(request.header(b"authorization") or b"")
    if not isinstance(credentials, TokenCredentials) or identity.limits is None:
        raise AuthenticationFailed
    changes = actions - {Action.READ}  # it may read certain packages only, which its use decides
    lacking = [each for each in changes if not allows(identity.limits, each, context.repository.path, None)]
    if lacking:
        words = ", ".join(sorted(lacking))
        raise Refusal(
            403, f"This access token does not allow {words} here: make one that does, or ask for less.", "forbidden"
        )
    return credentials.text


async def _personal_key(context: Context[object], request: Request) -> str:
    # This GET changes something: Access.check_origin lets every GET pass, and browsers send no Origin with it.
    if request.method == b"HEAD" or request.header(b"sec-fetch-site") not in (None, b"none", b"same-origin"):
        raise Refusal(403, "an API key is asked for by a program, with GET or POST", "cross_site")
    identity = await _identify(context, request)
    if identity.limits is not None:
        return _own_token(context, request, identity, {Action.READ})
    return await _issue(context, request, identity, "gem", PERSONAL)


async def _identify(context: Context[object], request: Request) -> Identity:
    header = request.header(b"authorization")
    if header is None:
        raise AuthenticationRequired("sign in with your name and password")
    identity = await context.services.access.identify(request)
    if identity.limits is not None and not header[:6].lower() == b"basic ":
        raise AuthenticationFailed  # a key makes no others
    return identity


async def _issue(
    context: Context[object], request: Request, identity: Identity, name: str, actions: Set[Action]
) -> str:
    name = "".join(each for each in name if each.isprintable())[:LONGEST_NAME].strip()
    limits = limits_in(context.services.registry, context.repository, actions)
    _, text = await context.services.accounts.issue(identity, name or "gem signin", limits, actor_of(request, identity))
    return text


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() in ("true", "1", "on", "yes")
