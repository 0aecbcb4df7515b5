"""One OpenID Connect provider: its settings, requests to it for tokens and claims, and what the claims say."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from attrs import Factory, frozen

from pkgrepo.auth.external_accounts import MOST_TEXT, make_person
from pkgrepo.errors import IdentityRefused, Invalid, IssuerUnavailable
from pkgrepo.storage.catalog.people.linked_identities import Person
from pkgrepo.untrusted.strict_json import decode_json

from .documents import Document, Documents, check_address
from .identity_tokens import IdentityToken, parse
from .issuers import Issuer


@frozen(kw_only=True)
class Provider:
    """
    One provider with its settings; ``secret`` is that of our client there, empty for a public client.

    A login must be in one of the authentication contexts ``acr_values``, and have used one of the methods ``amr``,
    where there are any. With ``logout_ends_tokens`` its logout tokens also end access tokens. ``group_names`` are names
    of groups here by those there. Without ``tells_email`` its addresses are not those of accounts.
    """

    name: str
    issuer: Issuer
    client_id: str
    secret: str
    scopes: Sequence[str]
    username_claim: str
    groups_claim: str
    admin_groups: frozenset[str]
    auto_create: bool
    link_by_email: bool
    tells_email: bool = True
    group_names: Mapping[str, str] = Factory(dict)
    acr_values: Sequence[str] = ()
    amr: frozenset[str] = frozenset()
    logout_ends_tokens: bool = False


class GrantRefused(IdentityRefused):
    """The provider knows the code, or the refresh token, no more."""


async def ask_tokens(documents: Documents, provider: Provider, form: Mapping[str, str]) -> Mapping[str, Any]:
    """
    The response of the token endpoint to a form (RFC 6749 section 4.1.3, and 6).

    :raises GrantRefused: the code, or the refresh token; :raises IssuerUnavailable: it gives none now
    """
    metadata = await provider.issuer.metadata()
    url = check_address(provider.name, metadata.get("token_endpoint"))
    methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    fields: dict[str, str] = {}
    form = dict(form)
    if provider.secret and "client_secret_basic" in methods:
        # RFC 6749 section 2.3.1: both are form-encoded before
        pair = f"{quote(provider.client_id, safe='')}:{quote(provider.secret, safe='')}"
        fields["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = provider.client_id
        if provider.secret:
            form["client_secret"] = provider.secret
    document = await documents.post(provider.name, url, form, fields)
    value = _object(document)
    if document.status in (400, 401) and isinstance(value.get("error"), str):
        if value["error"] == "invalid_grant":
            raise GrantRefused("the provider does not accept this login: it was used, or has expired")
        raise IssuerUnavailable(provider.name, f"it refuses our client: {value['error'][:MOST_TEXT]!r}")
    if document.status != 200:
        raise IssuerUnavailable(provider.name, f"it answers {document.status} for tokens")
    return value


async def read_identity(provider: Provider, tokens: Mapping[str, Any], now_s: float) -> IdentityToken:
    """
    The identity token in a response of the token endpoint (OpenID Connect Core 1.0 section 3.1.3.7).

    :raises IdentityRefused: there is none, or it is not valid; :raises IssuerUnavailable: there are no keys
    """
    text = tokens.get("id_token")
    if not isinstance(text, str):
        raise IdentityRefused("the provider sent no identity token")
    unverified = parse(text)
    if unverified.issuer != provider.issuer.url:
        raise IdentityRefused("the identity token is of another issuer")
    token = await provider.issuer.verify(unverified, [provider.client_id], now_s, own=True)
    if token.claims.get("azp", provider.client_id) != provider.client_id:
        raise IdentityRefused("the identity token was issued to another client")
    return token


async def ask_userinfo(
    documents: Documents, provider: Provider, tokens: Mapping[str, Any], subject: str
) -> Mapping[str, Any]:
    """What the provider tells of the person beside the identity token; empty if it has no such address."""
    url, access = (await provider.issuer.metadata()).get("userinfo_endpoint"), tokens.get("access_token")
    if url is None or not isinstance(access, str) or not access.isascii() or not access.isprintable():
        return {}
    fields = {"authorization": f"Bearer {access}"}
    document = await documents.get(provider.name, check_address(provider.name, url), fields)
    if document.status >= 500:
        raise IssuerUnavailable(provider.name, f"it answers {document.status} for the person (userinfo)")
    if document.status != 200:
        raise IdentityRefused(f"the provider answers {document.status} when it is asked for the person (userinfo)")
    value = _object(document)
    if "sub" not in value:  # such as a signed token, OpenID Connect Core 1.0 section 5.3.2
        raise IdentityRefused("what the provider tells of the person (userinfo) is no JSON object with the claim sub")
    if value["sub"] != subject:
        raise IdentityRefused("what the provider tells of the person (userinfo) is about another one")
    return value


def person_of(provider: Provider, token: IdentityToken, claims: Mapping[str, Any]) -> Person:
    """What the claims of a verified identity token, and of userinfo, say of a person."""
    groups = claims.get(provider.groups_claim)
    has_email = provider.tells_email and claims.get("email_verified") is True
    names = [group_name(each) for each in groups if isinstance(each, str)] if isinstance(groups, list) else []
    return make_person(
        token.issuer,
        token.subject,
        username=claims.get(provider.username_claim),
        name=claims.get("name"),
        email=claims.get("email") if has_email else "",
        groups=names,
        group_names=provider.group_names,
        admin_groups=provider.admin_groups,
    )


def group_name(name: str) -> str:
    """The name of a group as it is compared: Keycloak sends paths from a root, such as /crew, unless told otherwise."""
    return name.removeprefix("/")


def check_methods(provider: Provider, claims: Mapping[str, Any]) -> None:
    """Check how a person has logged in, by an identity token. :raises IdentityRefused: it is not enough"""
    if provider.acr_values and claims.get("acr") not in provider.acr_values:
        raise IdentityRefused(f"{provider.name} has not logged this person in as strongly as it must (acr_values)")
    methods = claims.get("amr")
    used = {each for each in methods if isinstance(each, str)} if isinstance(methods, list) else set[str]()
    if provider.amr and provider.amr.isdisjoint(used):
        raise IdentityRefused(f"{provider.name} has not asked this person for what it must (amr): log in there anew")


def _object(document: Document) -> Mapping[str, Any]:
    try:
        value = decode_json(document.body)
    except Invalid:
        value = None
    return value if isinstance(value, dict) else {}
