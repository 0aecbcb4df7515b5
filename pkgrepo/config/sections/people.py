"""Who logs in, and who vouches for people and pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from pkgrepo.config.keys import Section
from pkgrepo.config.kinds import ExistingFile, Seconds
from pkgrepo.model.structs import meaning

from .texts import Name


class Issuer(Section, frozen=True):
    """
    An OpenID Connect issuer of identity tokens for pipelines, such as a forge.

    Publishers of repositories name it as NAME.
    """

    issuer: Annotated[
        str,
        meaning(
            "its address, exactly as in the claim iss of its tokens; plain http on this machine only",
            pattern=r"https?://[^\s?#@]+",
            title='an address such as "https://forge.example"',
        ),
    ]
    audience: Annotated[
        str,
        meaning(
            "what its tokens must name in the claim aud; empty means the address of this server (server.public_url)",
            pattern=r"\S*",
            title="a text without spaces",
        ),
    ] = ""
    kind: Annotated[
        Literal["", "github", "gitlab", "circleci"],
        meaning(
            "whose claims its tokens have, for npm trust and for provenance; empty: what the address and NAME tell. "
            "Forgejo and Gitea have those of GitHub"
        ),
    ] = ""


GroupNames = Annotated[
    Mapping[str, Name],
    meaning(
        'names of groups here by those there, such as {"IT Staff" = "it"}: for groups that have another name here, or '
        "one that no group here can have"
    ),
]


class OidcProvider(Section, frozen=True):
    """An OpenID Connect provider at which people log in; the console shows its NAME."""

    issuer: Annotated[
        str,
        meaning(
            "its address, exactly as in its own configuration; plain http on this machine only",
            pattern=r"https?://[^\s?#@]+",
            title='an address such as "https://login.example"',
        ),
    ]
    client_id: Annotated[str, meaning("the id under which this server is registered there")]
    client_secret_file: Annotated[
        ExistingFile | None, meaning("file that holds the secret of that client; without one it is a public client")
    ] = None
    scopes: Annotated[
        tuple[Annotated[str, Meta(pattern=r"[!#-\[\]-~]+", title="a scope")], ...],
        meaning(
            "what is asked for; with offline_access a daily check ends what a person has here whom it knows no more",
            title="a list of scopes",
        ),
    ] = ("openid", "profile", "email")
    username_claim: Annotated[str, meaning("the claim that becomes the name of a new account")] = "preferred_username"
    groups_claim: Annotated[
        str, meaning("the claim whose names are those of groups here; a person joins and leaves them at each login")
    ] = "groups"
    admin_groups: Annotated[
        tuple[str, ...],
        meaning("names in that claim that make admins, as long as they are in it", title="a list of names"),
    ] = ()
    group_names: GroupNames = field(default_factory=dict)
    auto_create: Annotated[bool, meaning("whether the first login of a person makes an account")] = False
    link_by_email: Annotated[
        bool,
        meaning(
            "whether the first login of a person is linked to the one account with the same e-mail address, if the "
            "provider has verified it: only for providers that you trust with every account"
        ),
    ] = False
    acr_values: Annotated[
        tuple[Annotated[str, Meta(pattern=r"[!-~]+", title="a name without spaces")], ...],
        meaning(
            "authentication contexts of which a login must have one (claim acr), such as that with a second factor; "
            "the provider is asked for them",
            title="a list of names",
        ),
    ] = ()
    amr: Annotated[
        tuple[str, ...],
        meaning(
            'methods of which a login must have used one (claim amr, RFC 8176), such as "mfa", "otp" or "hwk"',
            title="a list of names",
        ),
    ] = ()
    logout_ends_tokens: Annotated[
        bool,
        meaning(
            "whether a logout that the provider orders (back-channel logout) also ends the person's access tokens, as "
            "the daily check does with those of somebody who is gone"
        ),
    ] = False


Attribute = Annotated[str, Meta(pattern=r"[A-Za-z][A-Za-z0-9;-]{0,63}", title='the name of an attribute such as "uid"')]


class LdapDirectory(Section, frozen=True):
    """A directory (LDAP version 3, Active Directory) that checks the passwords of people, in all clients."""

    url: Annotated[
        str,
        meaning(
            "its server; ldap:// to another machine needs start_tls",
            pattern=r"ldaps?://[^\s/?#@]+/?",
            title='an address such as "ldaps://ldap.corp.example"',
        ),
    ]
    base_dn: Annotated[str, meaning('what people and groups are below, such as "dc=corp,dc=example"')]
    more_urls: Annotated[
        tuple[Annotated[str, Meta(pattern=r"ldaps?://[^\s/?#@]+/?", title="an address")], ...],
        meaning(
            "further servers of the same directory, asked when those before cannot be", title="a list of addresses"
        ),
    ] = ()
    start_tls: Annotated[bool, meaning("whether TLS begins by StartTLS at an ldap:// address")] = False
    ca_file: Annotated[
        ExistingFile | None,
        meaning("certificates of private authorities for it, PEM, beside those of the system and of proxy.ca_file"),
    ] = None
    bind_dn: Annotated[
        str,
        meaning(
            "the name under which this server searches; empty: it searches without a login",
            pattern=r".*",
            title="a text",
        ),
    ] = ""
    bind_password_file: Annotated[ExistingFile | None, meaning("file that holds the password of bind_dn")] = None
    user_base: Annotated[str, meaning("what people are below, if not base_dn", pattern=r".*", title="a text")] = ""
    group_base: Annotated[str, meaning("what groups are below, if not base_dn", pattern=r".*", title="a text")] = ""
    user_filter: Annotated[
        str, meaning("the filter of those who may log in (RFC 4515); {username} is the name that somebody typed")
    ] = "(uid={username})"
    group_filter: Annotated[
        str,
        meaning(
            "the filter of the groups of a person: {dn} is the name of the entry, {username} that of the account; "
            "empty: no groups are read",
            pattern=r".*",
            title="a text",
        ),
    ] = "(|(member={dn})(uniqueMember={dn})(memberUid={username}))"
    nested_groups: Annotated[
        bool, meaning("whether groups count that the groups of a person are in, searched level by level")
    ] = False
    username_attribute: Annotated[Attribute, meaning("the attribute that becomes the name of a new account")] = "uid"
    name_attribute: Annotated[Attribute, meaning("the attribute that becomes the full name of a new account")] = "cn"
    email_attribute: Annotated[Attribute, meaning("the attribute with the e-mail address")] = "mail"
    id_attribute: Annotated[
        str,
        meaning(
            "the attribute by which a person is recognised whatever the name is: empty for the first one there of "
            "entryUUID, objectGUID, nsUniqueId, ipaUniqueID and GUID",
            pattern=r"([A-Za-z][A-Za-z0-9;-]{0,63})?",
            title="the name of an attribute, or nothing",
        ),
    ] = ""
    group_attribute: Annotated[
        Attribute,
        meaning("the attribute whose value is that of a group here; a person joins and leaves it at each login"),
    ] = "cn"
    admin_groups: Annotated[
        tuple[str, ...],
        meaning("names of groups there that make admins, as long as they are in them", title="a list of names"),
    ] = ()
    group_names: GroupNames = field(default_factory=dict)
    auto_create: Annotated[bool, meaning("whether the first login of a person makes an account")] = False
    link_by_email: Annotated[
        bool,
        meaning(
            "whether the first login of a person is linked to the one account with the same e-mail address: only for "
            "directories in which people cannot change their own address"
        ),
    ] = False
    connect_timeout_s: Annotated[
        Seconds, meaning("how long connecting to a server may take, with TLS", ge=0.1, le=60)
    ] = 5
    timeout_s: Annotated[Seconds, meaning("how long it may take to answer a question", ge=0.1, le=60)] = 10
    connections: Annotated[int, meaning("most connections to it, in each process", ge=1, le=100)] = 4


class Auth(Section, frozen=True):
    """Anonymous access, passwords and tokens."""

    anonymous: Annotated[bool, meaning("false: reading needs credentials everywhere")] = True
    password_min: Annotated[int, meaning("shortest password that people may choose, in characters", ge=8, le=128)] = 12
    token_max_days: Annotated[int, meaning("longest life of a new token, in days", ge=1, le=36_500)] = 365
    second_factor: Annotated[
        Literal["optional", "admins", "everyone"],
        meaning(
            "whose password alone does not log in: nobody's unless they choose so; that of admins, user managers and "
            "system managers; or everyone's"
        ),
    ] = "optional"
    proxy_header: Annotated[
        str,
        meaning(
            "header field in which a reverse proxy of server.trusted_proxies, which must remove it from what clients "
            "send, names the user whom it has authenticated; empty: none is read",
            pattern=r"([A-Za-z0-9-]{1,64})?",
            title='the name of a field such as "X-Forwarded-User", or nothing',
        ),
    ] = ""
    login_hours: Annotated[
        int, meaning("time after which an unused login in a browser ends, in hours", ge=1, le=168)
    ] = 12
    issuers: Annotated[
        Mapping[str, Issuer], meaning("issuers whose identity tokens pipelines may exchange for tokens of this server")
    ] = field(default_factory=dict)
    trusted_root: Annotated[
        ExistingFile | None,
        meaning(
            "trusted root of Sigstore (JSON) by which the provenance of packages is verified; without one, that of the "
            "public instance as it was at the release of this program"
        ),
    ] = None
    oidc: Annotated[
        Mapping[str, OidcProvider], meaning("providers at which people log in to the console (single sign-on)")
    ] = field(default_factory=dict)
    ldap: Annotated[
        Mapping[str, LdapDirectory],
        meaning("directories that check the passwords of people, asked in this order (LDAP, Active Directory)"),
    ] = field(default_factory=dict)

    @property
    def links_by_email(self) -> bool:
        """Whether the e-mail address of an account decides who may log in to it, so that only the trusted say it."""
        providers, directories = self.oidc.values(), self.ldap.values()
        return any(each.link_by_email for each in providers) or any(each.link_by_email for each in directories)
