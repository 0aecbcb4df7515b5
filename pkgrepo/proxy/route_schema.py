"""What people write of the upstreams of a proxy repository: its routes, and what it follows of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from pkgrepo.errors import Invalid
from pkgrepo.model.structs import meaning
from pkgrepo.outbound.urls import UserInfoError, parse_url
from pkgrepo.untrusted.patterns import pattern
from pkgrepo.untrusted.text import END, ONE_LINE, quoted, seconds_of

MOST_ROUTES = 32
MOST_HOSTS = 32
MOST_PATTERNS = 256
MOST_TTL_S = 366 * 86400
MOST_TIMEOUT_S = 3600

Text = Annotated[str, Meta(min_length=1, max_length=4096, pattern=ONE_LINE)]
Token = Annotated[
    str, Meta(max_length=4096, pattern=pattern(r"^[!-~]+" + END, "ASCII characters without spaces"))
]  # RFC 6750 2.1 allows fewer characters
Pattern = Annotated[str, Meta(min_length=1, max_length=256)]
Patterns = Annotated[list[Pattern], Meta(max_length=MOST_PATTERNS)]
Seconds = Annotated[int, Meta(ge=0, le=MOST_TTL_S)]
Timeout = Annotated[int, Meta(ge=1, le=MOST_TIMEOUT_S)]
Duration = Annotated[str, Meta(pattern=pattern(r"^[0-9]{1,8}[smhd]?" + END, "a time such as 30s, 5m or 12h"))]
Hosts = Annotated[list[Text], Meta(max_length=MOST_HOSTS)]
HostUrls = Annotated[dict[str, str], Meta(max_length=MOST_HOSTS)]


class RouteAuth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Credentials for an upstream: username and password, or a token (Bearer)."""

    username: Annotated[Text | UnsetType, meaning("For Basic authentication at the upstream.")] = UNSET
    password: Annotated[Text | UnsetType, meaning("It is shown as ***, which means the stored one.")] = UNSET
    token: Annotated[
        Token | UnsetType,
        meaning("Sent as a bearer token, instead of username and password; shown as ***, which means the stored one."),
    ] = UNSET

    def __repr__(self) -> str:
        return "RouteAuth(...)"

    def check(self, pointer: str) -> None:
        """:raises Invalid: it is neither username with password nor a token"""
        has_user, has_password = self.username is not UNSET, self.password is not UNSET
        if has_user != has_password or has_user == (self.token is not UNSET):
            raise Invalid("give username and password, or a token", pointer)
        if has_user and ":" in str(self.username):
            raise Invalid("a username has no colon (RFC 7617)", f"{pointer}/username")


class RouteConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    One upstream.

    Only system managers may name a ca_file. hosts has URLs for hosts that the upstream names, in redirects and as its
    token service. packages are globs, for example com.example.* of the groups of Java artifacts. token_hosts get the
    credentials if a registry of container images names them as its token service; a host may have a port. Times are
    seconds, or texts such as 5s or 2m.
    """

    url: Annotated[str, meaning("Where the upstream is, such as https://registry.example/.")]
    name: Annotated[
        str, meaning("How readers see it in errors; without one it is the host.", max_length=300, pattern=ONE_LINE)
    ] = ""
    priority: Annotated[
        int, meaning("The route with the highest number is asked first.", ge=-1_000_000, le=1_000_000)
    ] = 0
    auth: Annotated[
        RouteAuth | UnsetType,
        meaning("The credentials of the route, which are sent to its host only, and to its token service."),
    ] = UNSET
    ca_file: Annotated[
        Text | UnsetType,
        meaning("The absolute path of a PEM file on the server with the certificates that the upstream is checked by."),
    ] = UNSET
    hosts: Annotated[
        HostUrls | UnsetType, meaning("Addresses under which hosts that the upstream names are reached.")
    ] = UNSET
    packages: Annotated[Patterns | UnsetType, meaning("Patterns of names; the upstream is asked only for these.")] = (
        UNSET
    )
    token_hosts: Annotated[
        Hosts | UnsetType,
        meaning("Hosts of token services on other sites, which may get the credentials of the route."),
    ] = UNSET
    connect_timeout: Annotated[
        Timeout | Duration | UnsetType,
        meaning("Longest time until a connection is made, such as 5s; else that of the server."),
    ] = UNSET
    idle_timeout: Annotated[
        Timeout | Duration | UnsetType,
        meaning("Longest time without an answer or a part of one, such as 30s; else that of the server."),
    ] = UNSET

    def named(self, pointer: str, *, url: str = "url", auth: str = "auth") -> Self:
        """
        Check the route, and give it a name; ``url`` and ``auth`` are the names of these fields in errors.

        :raises Invalid: no message contains the URL, since there may be a password in it
        """
        try:
            parse_url(self.url)
        except UserInfoError as error:
            sentence = f"this is not the URL of an upstream: {error}; give them as {auth}"
            raise Invalid(sentence, f"{pointer}/{url}") from None
        except ValueError as error:
            raise Invalid(f"this is not the URL of an upstream: {error}", f"{pointer}/{url}") from None
        if {*"?#"} & {*self.url}:
            raise Invalid("the URL of an upstream has no query and no fragment", f"{pointer}/{url}")
        if self.auth is not UNSET:
            self.auth.check(f"{pointer}/{auth}")
        if self.ca_file is not UNSET and not self.ca_file.startswith("/"):
            raise Invalid("the path of a file on the server begins with a slash", f"{pointer}/ca_file")
        _check_hosts({} if self.hosts is UNSET else self.hosts, f"{pointer}/hosts")
        for index, host in enumerate([] if self.token_hosts is UNSET else self.token_hosts):
            if {*"/?#@"} & {*host}:
                raise Invalid("this is no host, which may have a port", f"{pointer}/token_hosts/{index}")
            _check_hosts({host: self.url}, f"{pointer}/token_hosts/{index}")
        for timeout, key in ((self.connect_timeout, "connect_timeout"), (self.idle_timeout, "idle_timeout")):
            if timeout is not UNSET and not 1 <= (seconds_of(timeout) or 0) <= MOST_TIMEOUT_S:
                raise Invalid("this is less than a second, or more than an hour", f"{pointer}/{key}")
        return replace(self, name=self.name or default_name(self.url))


RouteList = Annotated[list[RouteConfig | str], Meta(min_length=1, max_length=MOST_ROUTES)]


class Routes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The upstream routes. A text instead of a route is its URL."""

    routes: Annotated[RouteList, meaning("The upstreams.")]


_HOSTED_AT = re.compile(r"(.*?)/(?:repositories|v2)/([^/]+/[^/]+)(?:/v2)?")  # addresses of repositories of pkgrepo


class Upstream(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Another form of the upstreams: one ``upstream_url`` with its credentials, or ``routes``."""

    upstream_url: Annotated[str | UnsetType, meaning("Where the only upstream is; stored as a route.")] = UNSET
    upstream_auth: Annotated[
        RouteAuth | UnsetType, meaning("The credentials of the upstream; stored as those of its route.")
    ] = UNSET
    revalidation_ttl_seconds: Annotated[
        Seconds | UnsetType,
        meaning("Seconds for which metadata are used before they are asked for again; see cache_ttl."),
    ] = UNSET
    routes: Annotated[RouteList | UnsetType, meaning("The upstreams.")] = UNSET

    def check(self) -> None:
        """:raises Invalid: it has both forms or none"""
        if (self.upstream_url is UNSET) == (self.routes is UNSET):
            raise Invalid("give upstream_url or routes", "/config")
        if self.upstream_auth is not UNSET and self.upstream_url is UNSET:
            raise Invalid("upstream_auth belongs to upstream_url; a route has auth", "/config/upstream_auth")


class Replicate(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Follow the events of the hosted repository of another pkgrepo, which is the only route."""

    repository: Annotated[
        Text | UnsetType,
        meaning("The repository there, as storage/name; without it that in the address of the route."),
    ] = UNSET
    url: Annotated[
        Text | UnsetType,
        meaning("The address of the server there, on the host of the route; without it the beginning of that."),
    ] = UNSET
    files: Annotated[
        Patterns,
        meaning(
            'What is fetched as soon as it is published, as patterns of package/file or image:tag: "*", "acme-*", '
            '"*.whl". Without any, documents are renewed at once, and files are fetched when clients want them.'
        ),
    ] = []

    def check(self, routes: Routes) -> None:
        """:raises Invalid: there are several routes, or it is not known which repository is followed, or where"""
        route = routes.routes[0]
        assert isinstance(route, RouteConfig), "a checked route is in its one form"
        if len(routes.routes) > 1:
            raise Invalid("a repository that follows another one has one route", "/replicate")
        server_of(self, route)


def server_of(replicate: Replicate, route: RouteConfig) -> tuple[str, str]:
    """
    The address of the server that is followed, without a slash at its end, and the repository there.

    :raises Invalid: it is on another host than the route, whose credentials are sent there; or one is not known
    """
    found = _HOSTED_AT.fullmatch(route.url.rstrip("/"))
    base = (found[1] if found else "") if replicate.url is UNSET else replicate.url.rstrip("/")
    name = (found[2] if found else "") if replicate.repository is UNSET else replicate.repository
    try:
        same = bool(base) and parse_url(base).origin == parse_url(route.url).origin and not {*"?#"} & {*base}
    except ValueError:
        same = False
    if not same:
        raise Invalid("give the address of the server, which is on the host of the route", "/replicate/url")
    if name.count("/") != 1 or not all(name.split("/")):
        raise Invalid("give the repository there, as storage/name", "/replicate/repository")
    return base, name


def default_name(url: str) -> str:
    """The name of a route with this URL that was given none: its host."""
    return parse_url(url).host


def _check_hosts(hosts: Mapping[str, str], pointer: str) -> None:
    """:raises Invalid: a key is no host, or a value no URL that paths can follow"""
    for host, url in hosts.items():
        try:
            parse_url(f"http://{host}")
            parse_url(url)
            if {*"?#"} & {*url}:
                raise ValueError("it has a query or a fragment")
        except ValueError as error:
            raise Invalid(f"these are hosts, and URLs at which they are: {error}", pointer) from None


def named_routes(routes: list[RouteConfig | str], pointer: str) -> list[RouteConfig | str]:
    """The routes with unique names. :raises Invalid: two were given the same name"""
    every = [RouteConfig(url=each) if isinstance(each, str) else each for each in routes]
    named = [each.named(f"{pointer}/{index}") for index, each in enumerate(every)]
    taken = {each.name for each in every if each.name}
    unique: list[RouteConfig | str] = []
    for index, (given, route) in enumerate(zip(every, named, strict=True)):
        if given.name:
            if given.name in {each.name for each in every[:index]}:
                raise Invalid(f"another route has the name {quoted(given.name)}", f"{pointer}/{index}/name")
            unique.append(route)
            continue
        numbered = (f"{route.name}-{number}" for number in range(2, MOST_ROUTES + 2))
        name = next(each for each in (route.name, *numbered) if each not in taken)
        taken.add(name)
        unique.append(replace(route, name=name))
    return unique
