"""
All settings: name, type, default, unit and meaning.

A class is a section, a field is a key. The output of ``pkgrepo init`` and ``pkgrepo check-config --explain`` is
generated from this file. A key has the name of its field without the suffix ``_s`` (seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.structs import force_setattr

from pkgrepo.model.repositories import NAME
from pkgrepo.model.structs import meaning

from .keys import AUTO, Section
from .kinds import (
    ALIASES,
    HOSTS,
    BackupPlace,
    BaseUrl,
    Bytes,
    Endpoint,
    ExistingFile,
    Network,
    Place,
    Schedule,
    Seconds,
    Secret,
    Target,
)

Name = Annotated[
    str,
    Meta(pattern=NAME, title="1 to 64 letters, digits, dots, dashes or underscores"),
]
User = Annotated[
    str,
    Meta(pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{2,31}", title="3 to 32 letters, digits, dots, dashes or underscores"),
]
Address = Annotated[str, Meta(pattern=r"https?://[^\s]+", title="an address with https:// or http://")]
Sha256 = Annotated[str, Meta(pattern=r"[0-9a-f]{64}", title="64 lower-case hex digits")]

HOST_PATTERN = r"(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
MOST_WORKERS = 256
KIB, MIB, GIB = 2**10, 2**20, 2**30

_SQLITE = "sqlite:///"
_POSTGRESQL = r"postgres(ql)?://(?![^@?]*:[^?]*@)(?!.*[?&](ssl)?password=).+"


class Server(Section, frozen=True):
    """Addresses, limits and timeouts of client connections."""

    listen: Annotated[
        tuple[Endpoint, ...],
        meaning(
            "addresses to listen at, as Twisted server endpoints; systemd:domain=INET:index=0 takes a "
            "socket from systemd",
            title="a list of Twisted server endpoints",
        ),
    ] = ("tcp:8081:interface=127.0.0.1",)
    profile: Annotated[
        Literal["standard", "small"],
        meaning(
            "small: for a machine or container of 256 MiB: one process, 16 MiB for server.cache_memory unless they are "
            "set, 16 MiB for pages of SQLite, and one pool of memory for all threads"
        ),
    ] = "standard"
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_WORKERS)] | None,
        AUTO,
        meaning("processes that serve; auto is one on each processor. A server inside another daemon is always one"),
    ] = None
    cache_memory: Annotated[
        Annotated[Bytes, Meta(ge=MIB)] | None,
        AUTO,
        meaning(
            "memory for responses and documents that are sent again, of all processes together; auto is a quarter of "
            "what the machine or container has, and at most 1.5 GiB for each process"
        ),
    ] = None
    public_url: Annotated[
        BaseUrl, meaning("the address clients use, for absolute links; empty means the address each request came to")
    ] = ""
    hsts_days: Annotated[
        int,
        meaning(
            "for so many days browsers use https alone with the host of an https public_url, on all its ports (HSTS); "
            "0: they are not told to",
            ge=0,
            le=3650,
        ),
    ] = 365
    trusted_proxies: Annotated[
        tuple[Network, ...],
        meaning(
            "reverse proxies that say who the client is: networks, or unix for a Unix socket",
            title='a list of networks, or "unix"',
        ),
    ] = ()
    forwarded_header: Annotated[
        Literal["X-Forwarded-For", "Forwarded"],
        meaning(
            "header field in which these proxies name the client. X-Forwarded-Proto, -Host, -Port and -Prefix count "
            "with X-Forwarded-For only; the other fields are ignored"
        ),
    ] = "X-Forwarded-For"
    max_upload: Annotated[Bytes, meaning("largest upload", ge=1)] = 10 * GIB
    shutdown_grace_s: Annotated[Seconds, meaning("how long a stop waits for transfers to end", ge=0, le=3600)] = 60
    idle_timeout_s: Annotated[Seconds, meaning("how long a connection may be idle between requests", ge=1, le=3600)] = (
        75
    )
    header_deadline_s: Annotated[
        Seconds, meaning("how long the head of a request may take to arrive", ge=1, le=3600)
    ] = 20
    header_bytes: Annotated[Bytes, meaning("largest head of a request", ge=1024, le=2**20)] = 32 * KIB
    header_count: Annotated[int, meaning("most header fields of a request", ge=10, le=10_000)] = 200
    min_body_rate: Annotated[Bytes, meaning("least average rate of an upload, in bytes a second", ge=0, le=2**30)] = 100
    write_stall_s: Annotated[Seconds, meaning("how long a client may read nothing of a response", ge=1, le=86400)] = 120

    def __post_init__(self) -> None:
        if self.profile == "small":
            force_setattr(self, "workers", self.workers or 1)
            force_setattr(self, "cache_memory", self.cache_memory or 16 * MIB)


class Tls(Section, frozen=True):
    """With ``cert`` and ``key``, every address of ``server.listen`` speaks TLS."""

    cert: Annotated[ExistingFile | None, meaning("certificate chain, PEM")] = None
    key: Annotated[ExistingFile | None, meaning("private key, PEM")] = None
    reload: Annotated[
        Literal["auto", "never"], meaning("auto: new connections use the current content of the files")
    ] = "auto"


class Data(Section, frozen=True):
    """The data folder and how safely it is written."""

    dir: Annotated[Path, meaning("folder of the database and of the storages")] = Path("data")
    storages: Annotated[
        Path | None,
        meaning("folder of storages without a path of their own, which several nodes share; unset means below dir"),
    ] = None
    fsync: Annotated[
        Literal["always", "never"], meaning("never: acknowledged uploads may be lost when the machine loses power")
    ] = "always"
    scrub_days: Annotated[
        int,
        meaning(
            "in so many days all that is stored in folders is read once, and compared with its digests; 0: never",
            ge=0,
            le=3650,
        ),
    ] = 30
    low_water: Annotated[
        Annotated[Bytes, Meta(ge=0)] | None,
        AUTO,
        meaning("uploads are refused when the disk has less room; auto is 1 GiB or 2 % of the disk, whichever is less"),
    ] = None

    def __post_init__(self) -> None:
        force_setattr(self, "dir", Path.cwd() / self.dir)


class Database(Section, frozen=True):
    """The catalog."""

    url: Annotated[
        str,
        meaning(
            "the database: the embedded one in a file, or PostgreSQL for several nodes",
            pattern=rf"{_SQLITE}.+|{_POSTGRESQL}",
            title='"sqlite:///" with a path, in which {dir} is the value of data.dir, or a "postgresql://" address '
            "without password, which is database.password",
        ),
    ] = f"{_SQLITE}{{dir}}/pkgrepo.db"
    password: Annotated[Secret | None, meaning("the password for PostgreSQL")] = None
    replica_url: Annotated[
        Annotated[
            str,
            Meta(pattern=_POSTGRESQL, title='a "postgresql://" address without password, which is database.password'),
        ]
        | None,
        meaning("a streaming replica of the PostgreSQL database, which answers queries while it has the newest commit"),
    ] = None


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


class Limits(Section, frozen=True):
    """Limits per client."""

    login_failures: Annotated[
        int, meaning("wrong logins a minute, per address and per account, before logins are delayed", ge=1, le=1000)
    ] = 5


class Log(Section, frozen=True):
    """Logging. Lines go to standard output unless twistd's own options say otherwise."""

    format: Annotated[Literal["text", "json"], meaning("form of the lines")] = "text"
    level: Annotated[Literal["debug", "info", "warn", "error"], meaning("lowest level that is logged")] = "info"
    access: Annotated[bool, meaning("one line for each request")] = True
    user_agent: Annotated[bool, meaning("whether that line ends with the client's User-Agent")] = False
    audit_file: Annotated[Path | None, meaning("file that audit events are appended to as JSON lines")] = None


class Audit(Section, frozen=True):
    """The audit log, in the database."""

    retention_days: Annotated[int, meaning("days for which its rows are kept", ge=1, le=36_500)] = 400


class Downloads(Section, frozen=True):
    """The download log, in the database: who fetched which version, and when."""

    log_days: Annotated[
        int, meaning("days for which its rows are kept; 0: nothing is logged, and what was is removed", ge=0, le=3650)
    ] = 90
    log_addresses: Annotated[
        bool, meaning("whether it has the networks of clients: /24 of an IPv4 address, /48 of an IPv6 address")
    ] = False


class Gc(Section, frozen=True):
    """Garbage collection: removes stored bytes that no package needs any more."""

    daily: Annotated[bool, meaning("collect once a day on each storage what was not used for 24 hours")] = True


class Backup(Section, frozen=True):
    """
    Backups of the catalog and of all stored bytes, by night.

    Credentials for a bucket are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the
    instance.
    """

    destination: Annotated[
        BackupPlace,
        meaning("a folder, or a bucket as s3://bucket/prefix; empty means that the server makes no backups"),
    ] = ""
    endpoint: Annotated[BaseUrl, meaning("address of the server of the bucket")] = ""
    region: Annotated[str, meaning("region of the bucket, as signatures name it")] = "us-east-1"
    path_style: Annotated[bool, meaning("false: the bucket is a part of the host name")] = True
    ca_file: Annotated[ExistingFile | None, meaning("certificates of private authorities for the bucket, PEM")] = None
    schedule: Annotated[
        Schedule, meaning("when, in UTC: minute, hour, day of the month, month, day of the week, as in crontab")
    ] = "30 2 * * *"
    keep: Annotated[int, meaning("how many backups are kept", ge=1, le=10_000)] = 14
    key: Annotated[
        bool,
        meaning(
            "whether a backup has the key that decrypts stored credentials (credentials.key); without it, keep a copy "
            "of that file in another place"
        ),
    ] = False
    check: Annotated[
        bool,
        meaning(
            "whether each backup is read and compared afterwards, and some packages are fetched from a server that is "
            "started with it"
        ),
    ] = True


class Retention(Section, frozen=True):
    """How long what was deleted can be restored, and what is staged waits."""

    trash_days: Annotated[
        int,
        meaning(
            "days for which deleted versions, packages, tags and repositories stay in the trash; 0: there is no trash",
            ge=0,
            le=3650,
        ),
    ] = 14
    stage_days: Annotated[
        int, meaning("days after which a stage expires that nobody approved or rejected", ge=1, le=3650)
    ] = 30


class Proxy(Section, frozen=True):
    """Connections of proxy repositories to their upstreams. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are heeded, too."""

    allow_private: Annotated[
        tuple[Target, ...],
        meaning(
            "upstreams outside of the public internet: hosts (also *.corp.example), addresses, networks; all other "
            "connections to private addresses are refused",
            title="a list of hosts, addresses and networks",
        ),
    ] = ()
    connect_timeout_s: Annotated[
        Seconds, meaning("how long connecting to an upstream may take; a route may have its own", ge=0.1, le=300)
    ] = 10
    idle_timeout_s: Annotated[
        Seconds,
        meaning(
            "how long an upstream may take to answer, and then send nothing; a route may have its own", ge=0.1, le=3600
        ),
    ] = 30
    document_timeout_s: Annotated[
        Seconds, meaning("how long the download of an index document may take in all", ge=0.1, le=3600)
    ] = 120
    max_connections_per_host: Annotated[
        int, meaning("most requests at a time to one upstream host, in each process", ge=1, le=1000)
    ] = 50
    store_delay_s: Annotated[
        Seconds,
        meaning(
            "how long fetched documents and files, which are served already, may wait to be stored together with more",
            ge=0,
            le=60,
        ),
    ] = 2
    facts_ahead: Annotated[
        int,
        meaning(
            "newest versions of a package of which is read what rules ask of files (such as the licence in a wheel), "
            "before its document is answered; other files are read when they are asked for",
            ge=0,
            le=100,
        ),
    ] = 5
    max_document_size: Annotated[
        Bytes, meaning("largest index document of an upstream, unpacked", ge=1024, le=2**40)
    ] = 256 * MIB
    source_archives: Annotated[
        Mapping[str, Address],
        meaning(
            "addresses of archives (tar or zip) of tags, by the host of the source as packages name it, with {owner}, "
            "{repo} and {tag}; for rules with differs: unexplained"
        ),
    ] = field(default_factory=dict)
    ca_file: Annotated[
        ExistingFile | None,
        meaning("certificates of private authorities for upstreams, PEM, beside those of the system"),
    ] = None


class Imports(Section, frozen=True):
    """Imports of packages from elsewhere. For addresses proxy.allow_private and proxy.ca_file apply."""

    folders: Annotated[
        tuple[Path, ...],
        meaning(
            "folders on the machine of the server from which the API lets admins of repositories import",
            title="a list of paths",
        ),
    ] = ()
    keys: Annotated[
        tuple[Path, ...],
        meaning(
            "files with the public keys (PEM) of servers whose air-gap bundles are taken in without a key of their own",
            title="a list of paths",
        ),
    ] = ()


class Twin(Section, frozen=True):
    """
    A static twin of a repository that the server keeps up to date: see pkgrepo export.

    Credentials for a bucket are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the
    instance.
    """

    repository: Annotated[
        str,
        meaning("the repository, as storage/name", pattern=r"[^/\s]+/[^/\s]+", title='a repository such as "main/npm"'),
    ]
    target: Annotated[BackupPlace, meaning("a new folder, or an empty place in a bucket as s3://bucket/prefix")]
    token_file: Annotated[
        ExistingFile | None,
        meaning(
            "file with an access token: the twin has what it may read, and the list of files is signed if it has the "
            "action admin in the repository; without one it has what anonymous readers get"
        ),
    ] = None
    base_url: Annotated[BaseUrl, meaning("the address at which the twin is served; npm needs it")] = ""
    every_s: Annotated[
        Seconds, meaning("the least time between two runs, while the repository changes", ge=1, le=86_400)
    ] = 10.0
    endpoint: Annotated[BaseUrl, meaning("address of the server of the bucket")] = ""
    region: Annotated[str, meaning("region of the bucket, as signatures name it")] = "us-east-1"
    path_style: Annotated[bool, meaning("false: the bucket is a part of the host name")] = True
    ca_file: Annotated[ExistingFile | None, meaning("certificates of private authorities for the bucket, PEM")] = None
    addresses: Annotated[
        bool, meaning("whether indexes are also objects at the addresses of their folders, as the bucket serves them")
    ] = True


class Webhooks(Section, frozen=True):
    """Requests to the receivers of events. Private authorities are those of proxy.ca_file."""

    allow_private: Annotated[
        tuple[Target, ...],
        meaning(
            "receivers outside of the public internet: hosts (also *.corp.example), addresses, networks; all other "
            "connections to private addresses are refused",
            title="a list of hosts, addresses and networks",
        ),
    ] = ()
    timeout_s: Annotated[Seconds, meaning("how long a receiver may take to answer", ge=0.1, le=60)] = 10


class Advisories(Section, frozen=True):
    """Known vulnerabilities, and known malware, of npm, Python, Maven, Ruby, Rust and Go packages."""

    source: Annotated[
        Place,
        meaning(
            "an export of the OSV database: a folder of JSON files, a zip of them, or the address of such a zip at a "
            "mirror, to which proxy.allow_private and the certificates of proxy.ca_file apply; empty means none"
        ),
    ] = ""
    refresh_s: Annotated[
        Seconds, meaning("how often it is looked whether the export has changed", ge=60, le=30 * 86_400)
    ] = 6 * 3600
    max_age_s: Annotated[
        Seconds,
        meaning(
            "age of an export, by the time of its youngest file or as its server says, from which on nothing found is "
            "not taken for free of vulnerabilities",
            ge=3600,
            le=3650 * 86_400,
        ),
    ] = 7 * 86_400
    block_malware: Annotated[
        bool,
        meaning("whether what a record with an id that begins with MAL- names is refused by all repositories at once"),
    ] = True


class Container(Section, frozen=True):
    """Container images."""

    ping: Annotated[
        Literal["auto", "challenge", "open"],
        meaning("what GET /v2/ answers without credentials: auto asks registry clients for them, but not curl"),
    ] = "auto"
    service: Annotated[
        str,
        meaning(
            "name of this server in challenges",
            pattern=r"[A-Za-z0-9._:-]{1,100}",
            title="1 to 100 letters, digits, dots, dashes or colons",
        ),
    ] = "pkgrepo"
    default_repository: Annotated[
        str,
        meaning(
            "repository, as storage/name, of images whose name begins with no storage and repository; auto: the "
            "container repository that is marked default, else the only one",
            pattern=r"(auto|[^/]+/[^/]+)?",
            title="storage/repository, auto or nothing",
        ),
    ] = "auto"
    trusted_keys: Annotated[
        tuple[Annotated[str, Meta(pattern=r"(?s)\s*-----BEGIN .*", title="a public key in PEM")], ...],
        meaning(
            "keys whose signatures count in repositories that require content trust and list none themselves",
            title="a list of public keys in PEM",
        ),
    ] = ()


class Metrics(Section, frozen=True):
    """Metrics for Prometheus."""

    enabled: Annotated[bool, meaning("answer /metrics")] = True


class Traces(Section, frozen=True):
    """Traces of requests in the form of OpenTelemetry. They need the extra ``traces``."""

    endpoint: Annotated[
        BaseUrl,
        meaning(
            "a collector for OTLP over HTTP, such as http://127.0.0.1:4318, which gets them at /v1/traces; empty means "
            "no traces"
        ),
    ] = ""
    authorization: Annotated[Secret | None, meaning("value of the Authorization field for the collector")] = None
    sample_percent: Annotated[
        int,
        meaning(
            "how many of the requests are recorded, in percent; for one with a traceparent field that field decides",
            ge=0,
            le=100,
        ),
    ] = 100
    propagate_to: Annotated[
        tuple[Annotated[str, Meta(pattern=HOST_PATTERN, title="a host")], ...],
        meaning(
            "hosts of upstreams (also *.corp.example) that get a traceparent field; all others get none",
            title="a list of hosts",
        ),
    ] = ()


class Compat(Section, frozen=True):
    """Compatibility with other servers."""

    open_install: Annotated[
        bool, meaning("allow the first caller to create the first admin through the API, without the setup code")
    ] = False


class Admin(Section, frozen=True):
    """The first admin, created if there is no user yet, and never changed afterwards."""

    user: Annotated[User, meaning("its name")] = "admin"
    password: Annotated[Secret | None, meaning("its password")] = None
    password_hash: Annotated[
        Annotated[Secret, Meta(title="a hash")] | None,
        meaning("its password as an argon2id hash, $argon2id$..., instead of the password"),
    ] = None


class BootstrapStorage(Section, frozen=True):
    """A storage, created if it does not exist."""

    name: Annotated[Name, meaning("its name")]
    type: Annotated[Literal["Local", "S3"], meaning("its kind: a folder, or a bucket")] = "Local"
    path: Annotated[Path | None, meaning("its folder; unset means <name> below data.storages")] = None
    settings: Annotated[
        Mapping[str, Any],
        meaning(
            "those of a bucket: endpoint, bucket, region, prefix, path_style, redirect_from, ca_file, as in the API; "
            "credentials are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the "
            "instance"
        ),
    ] = field(default_factory=dict)
    readable_layout: Annotated[
        bool,
        meaning(
            "false: no files under readable names, which saves a few directory entries for each version; if the "
            "database is lost, pkgrepo reindex cannot bring back what the storage holds"
        ),
    ] = True


class BootstrapRepository(Section, frozen=True):
    """A repository, created if it does not exist; an existing one is not changed."""

    name: Annotated[Name, meaning("its name")]
    format: Annotated[str, meaning("its format", pattern=r"[a-z]+", title="the name of a format, such as python")]
    storage: Annotated[Name, meaning("its storage")] = "main"
    visibility: Annotated[Literal["public", "private", "hidden"], meaning("who may see it without a grant")] = "public"
    description: Annotated[str, meaning("its description", pattern=r"(?s).*", title="a text")] = ""
    config: Annotated[Mapping[str, Any], meaning("its configuration, as in the API")] = field(
        default_factory=lambda: {"type": "Hosted"}
    )


class BootstrapTokenScope(Section, frozen=True):
    """Actions that a token may do in the repositories that match a pattern."""

    repository: Annotated[str, meaning("storage/name, with * and ? as wildcards")]
    actions: Annotated[
        tuple[Literal["read", "write", "overwrite", "delete", "edit", "admin"], ...],
        meaning("the allowed actions", title="a list of actions"),
    ] = ("read",)


class BootstrapToken(Section, frozen=True):
    """A token, created if it does not exist, identified by its hash."""

    name: Annotated[str, meaning("its name", pattern=r".{1,100}", title="1 to 100 characters")]
    user: Annotated[User, meaning("the user it belongs to")]
    hash: Annotated[Sha256 | None, meaning("sha256 of its text")] = None
    file: Annotated[ExistingFile | None, meaning("file that holds its text, instead of the hash")] = None
    scopes: Annotated[tuple[str, ...], meaning("server scopes, as in the API", title="a list of scopes")] = ()
    repositories: Annotated[
        tuple[BootstrapTokenScope, ...], meaning("its repositories; without any, all that its user may use")
    ] = ()
    packages: Annotated[tuple[str, ...], meaning("its packages", title="a list of patterns")] = ()
    expires_days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)] | None, meaning("days from the first start until it expires")
    ] = None


class Bootstrap(Section, frozen=True):
    """Objects that a start creates if they are missing."""

    admin: Admin = field(default_factory=Admin)
    storages: Annotated[tuple[BootstrapStorage, ...], meaning("storages")] = ()
    repositories: Annotated[tuple[BootstrapRepository, ...], meaning("repositories")] = ()
    tokens: Annotated[tuple[BootstrapToken, ...], meaning("tokens")] = ()
    starter: Annotated[
        tuple[str, ...],
        meaning(
            "formats of which the starter set is made: a hosted repository, a proxy of the address in upstreams, if "
            "there is one, and a virtual one of both; all stands for all formats",
            title="a list of formats",
        ),
    ] = ()
    upstreams: Annotated[
        Mapping[str, Address], meaning("addresses of public registries by format, for proxies of the starter set")
    ] = field(default_factory=dict)


class Config(Section, frozen=True):
    """
    The whole validated configuration.

    ``origins`` maps the dotted name of each key that was set to its origin; all other keys have their defaults.
    """

    server: Server = field(default_factory=Server)
    tls: Tls = field(default_factory=Tls)
    data: Data = field(default_factory=Data)
    database: Database = field(default_factory=Database)
    auth: Auth = field(default_factory=Auth)
    limits: Limits = field(default_factory=Limits)
    log: Log = field(default_factory=Log)
    audit: Audit = field(default_factory=Audit)
    downloads: Downloads = field(default_factory=Downloads)
    gc: Gc = field(default_factory=Gc)
    backup: Backup = field(default_factory=Backup)
    retention: Retention = field(default_factory=Retention)
    proxy: Proxy = field(default_factory=Proxy)
    imports: Imports = field(default_factory=Imports)
    twins: Annotated[Mapping[str, Twin], meaning("static twins of repositories, which the server keeps up to date")] = (
        field(default_factory=dict)
    )
    webhooks: Webhooks = field(default_factory=Webhooks)
    advisories: Advisories = field(default_factory=Advisories)
    container: Container = field(default_factory=Container)
    metrics: Metrics = field(default_factory=Metrics)
    traces: Traces = field(default_factory=Traces)
    compat: Compat = field(default_factory=Compat)
    hosts: Annotated[
        Mapping[str, str],
        HOSTS,
        meaning("host names, with their port if it matters, each of which stands for the repository storage/name"),
    ] = field(default_factory=dict)
    aliases: Annotated[
        Mapping[str, str],
        ALIASES,
        meaning('path prefixes such as "/repository/npm-all/", each of which stands for the repository storage/name'),
    ] = field(default_factory=dict)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    origins: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        """Whether the values are equal, whatever their origins."""
        names = [name for name in self.__struct_fields__ if name != "origins"]
        return isinstance(other, Config) and all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash((self.server, self.data))

    @property
    def database_path(self) -> Path | None:
        """The file of the embedded database; None: the database is on a server."""
        if not self.database.url.startswith(_SQLITE):
            return None
        return Path(self.database.url.removeprefix(_SQLITE).replace("{dir}", str(self.data.dir))).absolute()
