"""Builds the issuers of identity tokens and the identity providers of the settings, for the server and for checks."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from pkgrepo.config import Config
from pkgrepo.config.sections.people import OidcProvider
from pkgrepo.errors import Invalid
from pkgrepo.oidc.documents import Documents
from pkgrepo.oidc.issuers import Issuer
from pkgrepo.oidc.providers import Provider, group_name


def make_documents(config: Config, reactor: Any) -> Documents:
    """What asks all issuers and providers of the settings."""
    return Documents(
        [
            *(each.issuer for each in config.auth.issuers.values()),
            *(each.issuer for each in config.auth.oidc.values()),
        ],
        ca_files=[] if config.proxy.ca_file is None else [config.proxy.ca_file],
        proxies=getproxies_environment(),
        reactor=reactor,
    )


def make_issuers(config: Config, documents: Documents, reactor: Any) -> list[Issuer]:
    """The issuers of pipelines, in their order."""
    return [
        Issuer(name, each.issuer, _audiences(each.audience, config.server.public_url), documents, reactor, each.kind)
        for name, each in config.auth.issuers.items()
    ]


def make_providers(config: Config, documents: Documents, reactor: Any) -> list[Provider]:
    """The providers at which people log in. :raises Invalid: the file of a client's secret cannot be read"""
    links = config.auth.links_by_email
    return [_provider(name, each, documents, reactor, links=links) for name, each in config.auth.oidc.items()]


def _provider(name: str, given: OidcProvider, documents: Documents, reactor: Any, *, links: bool) -> Provider:
    """:raises Invalid: the file of the client's secret cannot be read"""
    try:
        file = given.client_secret_file
        secret = "" if file is None else file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"auth.oidc.{name}.client_secret_file cannot be read: {error}") from None
    return Provider(
        name=name,
        issuer=Issuer(name, given.issuer, [given.client_id], documents, reactor),
        client_id=given.client_id,
        secret=secret,
        scopes=given.scopes,
        username_claim=given.username_claim,
        groups_claim=given.groups_claim,
        admin_groups=frozenset(map(group_name, given.admin_groups)),
        group_names={group_name(there): here for there, here in given.group_names.items()},
        auto_create=given.auto_create,
        link_by_email=given.link_by_email,
        tells_email=given.link_by_email or not links,
        acr_values=given.acr_values,
        amr=frozenset(given.amr),
        logout_ends_tokens=given.logout_ends_tokens,
    )


def _audiences(given: str, public_url: str) -> list[str]:
    """The audiences of identity tokens: that of the settings, and the one that npm makes of the host."""
    host = urlsplit(public_url).hostname
    return [given or public_url, *([f"npm:{host}"] if host else [])]
