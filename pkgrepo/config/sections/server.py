"""How the server listens, what it logs and counts, and how much of it one client may use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import force_setattr

from pkgrepo.config.keys import AUTO, Section
from pkgrepo.config.kinds import BaseUrl, Bytes, Endpoint, ExistingFile, Network, Seconds, Secret
from pkgrepo.model.structs import meaning

from .texts import GIB, HOST_PATTERN, KIB, MIB, MOST_WORKERS


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
