"""
All settings: name, type, default, unit and meaning.

A class is a section, a field is a key. The output of ``pkgrepo init`` and ``pkgrepo check-config --explain`` is
generated from this file. A key has the name of its field without the suffix ``_s`` (seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from .keys import REQUIRED, section, setting
from .kinds import (
    Secret,
    base_url,
    boolean,
    choice,
    duration,
    endpoint,
    existing_file,
    integer,
    network,
    path,
    secret,
    several,
    size,
    table,
    target,
    text,
)
from .tables import tables

NAME = text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "1 to 64 letters, digits, dots, dashes or underscores")
USER = text(r"[A-Za-z0-9][A-Za-z0-9._-]{2,31}", "3 to 32 letters, digits, dots, dashes or underscores")
MOST_WORKERS = 256
SHA256 = text(r"[0-9a-f]{64}", "64 lower-case hex digits")


_SQLITE = "sqlite:///"
_POSTGRESQL = r"postgres(ql)?://(?![^@?]*:[^?]*@)(?!.*[?&](ssl)?password=).+"


@frozen
class Server:
    """Addresses, limits and timeouts of client connections."""

    listen: tuple[str, ...] = setting(
        several(endpoint(), "a list of Twisted server endpoints"),
        ["tcp:8081:interface=127.0.0.1"],
        "addresses to listen at, as Twisted server endpoints; systemd:domain=INET:index=0 takes a socket from systemd",
    )
    workers: int | None = setting(
        integer(1, MOST_WORKERS, automatic=True),
        "auto",
        "processes that serve; auto is one on each processor. A server inside another daemon is always one",
    )
    public_url: str = setting(
        base_url(), "", "the address clients use, for absolute links; empty means the address each request came to"
    )
    trusted_proxies: tuple[str, ...] = setting(
        several(network(), 'a list of networks, or "unix"'),
        [],
        "reverse proxies whose Forwarded and X-Forwarded-* fields are trusted: networks, or unix for a Unix socket",
    )
    max_upload: int = setting(size(1), "10GiB", "largest upload")
    shutdown_grace_s: float = setting(duration(0, 3600), "60s", "how long a stop waits for transfers to end")
    idle_timeout_s: float = setting(duration(1, 3600), "75s", "how long a connection may be idle between requests")
    header_deadline_s: float = setting(duration(1, 3600), "20s", "how long the head of a request may take to arrive")
    header_bytes: int = setting(size(1024, 2**20), "32KiB", "largest head of a request")
    header_count: int = setting(integer(10, 10_000), 200, "most header fields of a request")
    min_body_rate: int = setting(size(0, 2**30), "100B", "least average rate of an upload, in bytes a second")
    write_stall_s: float = setting(duration(1, 86400), "2m", "how long a client may read nothing of a response")


@frozen
class Tls:
    """With ``cert`` and ``key``, every address of ``server.listen`` speaks TLS."""

    cert: Path | None = setting(existing_file(), None, "certificate chain, PEM")
    key: Path | None = setting(existing_file(), None, "private key, PEM")
    reload: str = setting(choice("auto", "never"), "auto", "auto: new connections use the current content of the files")


@frozen
class Data:
    """The data folder and how safely it is written."""

    dir: Path = setting(path(), "data", "folder of the database and of the storages")
    storages: Path | None = setting(
        path(), None, "folder of storages without a path of their own, which several nodes share; unset means below dir"
    )
    fsync: Literal["always", "never"] = setting(
        choice("always", "never"), "always", "never: acknowledged uploads may be lost when the machine loses power"
    )
    low_water: int | None = setting(
        size(0, automatic=True),
        "auto",
        "uploads are refused when the disk has less room; auto is 1 GiB or 2 % of the disk, whichever is less",
    )


@frozen
class Database:
    """The catalog."""

    url: str = setting(
        text(
            rf"{_SQLITE}.+|{_POSTGRESQL}",
            '"sqlite:///" with a path, in which {dir} is the value of data.dir, or a "postgresql://" address without '
            "password, which is database.password",
        ),
        f"{_SQLITE}{{dir}}/pkgrepo.db",
        "the database: the embedded one in a file, or PostgreSQL for several nodes",
    )
    password: Secret | None = setting(secret(), None, "the password for PostgreSQL")
    replica_url: str | None = setting(
        text(_POSTGRESQL, 'a "postgresql://" address without password, which is database.password'),
        None,
        "a streaming replica of the PostgreSQL database, which answers queries while it has the newest commit",
    )


@frozen
class Auth:
    """Anonymous access, passwords and tokens."""

    anonymous: bool = setting(boolean(), True, "false: reading needs credentials everywhere")
    password_min: int = setting(integer(8, 128), 12, "shortest password that people may choose, in characters")
    token_max_days: int = setting(integer(1, 36_500), 365, "longest life of a new token, in days")
    login_hours: int = setting(integer(1, 168), 12, "time after which an unused login in a browser ends, in hours")


@frozen
class Limits:
    """Limits per client."""

    login_failures: int = setting(
        integer(1, 1000), 5, "wrong logins a minute, per address and per account, before logins are delayed"
    )


@frozen
class Log:
    """Logging. Lines go to standard output unless twistd's own options say otherwise."""

    format: Literal["text", "json"] = setting(choice("text", "json"), "text", "form of the lines")
    level: str = setting(choice("debug", "info", "warn", "error"), "info", "lowest level that is logged")
    access: bool = setting(boolean(), True, "one line for each request")
    user_agent: bool = setting(boolean(), False, "whether that line ends with the client's User-Agent")
    audit_file: Path | None = setting(path(), None, "file that audit events are appended to as JSON lines")


@frozen
class Audit:
    """The audit log, in the database."""

    retention_days: int = setting(integer(1, 36_500), 400, "days for which its rows are kept")


@frozen
class Gc:
    """Garbage collection: removes stored bytes that no package needs any more."""

    daily: bool = setting(boolean(), True, "collect once a day on each storage what was not used for 24 hours")


@frozen
class Proxy:
    """Connections of proxy repositories to their upstreams. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are heeded, too."""

    allow_private: tuple[str, ...] = setting(
        several(target(), "a list of hosts, addresses and networks"),
        [],
        "upstreams outside of the public internet: hosts (also *.corp.example), addresses, networks; all other "
        "connections to private addresses are refused",
    )
    connect_timeout_s: float = setting(
        duration(0.1, 300), "10s", "how long connecting to an upstream may take; a route may have its own"
    )
    idle_timeout_s: float = setting(
        duration(0.1, 3600),
        "30s",
        "how long an upstream may take to answer, and then send nothing; a route may have its own",
    )
    document_timeout_s: float = setting(
        duration(0.1, 3600), "2m", "how long the download of an index document may take in all"
    )
    max_connections_per_host: int = setting(
        integer(1, 1000), 50, "most requests at a time to one upstream host, in each process"
    )
    store_delay_s: float = setting(
        duration(0, 60),
        "2s",
        "how long fetched documents and files, which are served already, may wait to be stored together with more",
    )
    max_document_size: int = setting(size(1024, 2**40), "256MiB", "largest index document of an upstream, unpacked")
    ca_file: Path | None = setting(
        existing_file(), None, "certificates of private authorities for upstreams, PEM, beside those of the system"
    )


@frozen
class Npm:
    """npm packages."""

    advisories: Path | None = setting(
        path(), None, "known vulnerabilities for npm audit: a folder or zip of OSV records"
    )


@frozen
class Container:
    """Container images."""

    ping: Literal["auto", "challenge", "open"] = setting(
        choice("auto", "challenge", "open"),
        "auto",
        "what GET /v2/ answers without credentials: auto asks registry clients for them, but not curl",
    )
    service: str = setting(
        text(r"[A-Za-z0-9._:-]{1,100}", "1 to 100 letters, digits, dots, dashes or colons"),
        "pkgrepo",
        "name of this server in challenges",
    )
    default_repository: str = setting(
        text(r"(auto|[^/]+/[^/]+)?", "storage/repository, auto or nothing"),
        "auto",
        "repository, as storage/name, of images whose name begins with no storage and repository; auto: the container "
        "repository that is marked default, else the only one",
    )
    trusted_keys: tuple[str, ...] = setting(
        several(text(r"(?s)\s*-----BEGIN .*", "a public key in PEM"), "a list of public keys in PEM"),
        [],
        "keys whose signatures count in repositories that require content trust and list none themselves",
    )
    hosts: tuple[str, ...] = setting(
        several(text(r"[^=\s]+=[^/\s]+/[^/\s]+", "host=storage/repository"), "a list of host=storage/repository"),
        [],
        "host names (with their port, if any) that stand for one repository each, as host=storage/name",
    )


@frozen
class Metrics:
    """Metrics for Prometheus."""

    enabled: bool = setting(boolean(), True, "answer /metrics")


@frozen
class Compat:
    """Compatibility with other servers."""

    open_install: bool = setting(
        boolean(), False, "allow the first caller to create the first admin through the API, without the setup code"
    )


@frozen
class Admin:
    """The first admin, created if there is no user yet, and never changed afterwards."""

    user: str = setting(USER, "admin", "its name")
    password: Secret | None = setting(secret(), None, "its password")
    password_hash: Secret | None = setting(
        secret("a hash"), None, "its password as an argon2id hash, $argon2id$..., instead of the password"
    )


@frozen
class BootstrapStorage:
    """A storage, created if it does not exist."""

    name: str = setting(NAME, REQUIRED, "its name")
    type: str = setting(choice("Local"), "Local", "its kind")
    path: Path | None = setting(path(), None, "its folder; unset means <name> below data.storages")
    readable_layout: bool = setting(
        boolean(),
        True,
        "false: no files under readable names, which saves a few directory entries for each version; if the database "
        "is lost, pkgrepo reindex cannot bring back what the storage holds",
    )


@frozen
class BootstrapRepository:
    """A repository, created if it does not exist; an existing one is not changed."""

    name: str = setting(NAME, REQUIRED, "its name")
    format: str = setting(text(r"[a-z]+", "the name of a format, such as python"), REQUIRED, "its format")
    storage: str = setting(NAME, "main", "its storage")
    visibility: str = setting(choice("public", "private", "hidden"), "public", "who may see it without a grant")
    description: str = setting(text(r"(?s).*", "a text"), "", "its description")
    config: Mapping[str, Any] = setting(table(), {"type": "Hosted"}, "its configuration, as in the API")


@frozen
class BootstrapTokenScope:
    """Actions that a token may do in the repositories that match a pattern."""

    repository: str = setting(text(), REQUIRED, "storage/name, with * and ? as wildcards")
    actions: tuple[str, ...] = setting(
        several(choice("read", "write", "overwrite", "delete", "edit", "admin"), "a list of actions"),
        ["read"],
        "the allowed actions",
    )


@frozen
class BootstrapToken:
    """A token, created if it does not exist, identified by its hash."""

    name: str = setting(text(r".{1,100}", "1 to 100 characters"), REQUIRED, "its name")
    user: str = setting(USER, REQUIRED, "the user it belongs to")
    hash: str | None = setting(SHA256, None, "sha256 of its text")
    file: Path | None = setting(existing_file(), None, "file that holds its text, instead of the hash")
    scopes: tuple[str, ...] = setting(several(text(), "a list of scopes"), [], "server scopes, as in the API")
    repositories: tuple[BootstrapTokenScope, ...] = setting(
        tables(BootstrapTokenScope), [], "its repositories; without any, all that its user may use"
    )
    packages: tuple[str, ...] = setting(several(text(), "a list of patterns"), [], "its packages")
    expires_days: int | None = setting(integer(1, 36_500), None, "days from the first start until it expires")


@frozen
class Bootstrap:
    """Objects that a start creates if they are missing."""

    admin: Admin = section(Admin)
    storages: tuple[BootstrapStorage, ...] = setting(tables(BootstrapStorage), [], "storages")
    repositories: tuple[BootstrapRepository, ...] = setting(tables(BootstrapRepository), [], "repositories")
    tokens: tuple[BootstrapToken, ...] = setting(tables(BootstrapToken), [], "tokens")


@frozen
class Config:
    """
    The whole validated configuration.

    ``origins`` maps the dotted name of each key that was set to its origin; all other keys have their defaults.
    """

    server: Server = section(Server)
    tls: Tls = section(Tls)
    data: Data = section(Data)
    database: Database = section(Database)
    auth: Auth = section(Auth)
    limits: Limits = section(Limits)
    log: Log = section(Log)
    audit: Audit = section(Audit)
    gc: Gc = section(Gc)
    proxy: Proxy = section(Proxy)
    npm: Npm = section(Npm)
    container: Container = section(Container)
    metrics: Metrics = section(Metrics)
    compat: Compat = section(Compat)
    bootstrap: Bootstrap = section(Bootstrap)
    origins: Mapping[str, str] = field(factory=dict, repr=False, eq=False)

    @property
    def database_path(self) -> Path | None:
        """The file of the embedded database; None: the database is on a server."""
        if not self.database.url.startswith(_SQLITE):
            return None
        return Path(self.database.url.removeprefix(_SQLITE).replace("{dir}", str(self.data.dir))).absolute()
