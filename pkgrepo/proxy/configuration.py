"""The stored configuration of a proxy or virtual repository, as values for the code that serves packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from attrs import frozen
from msgspec import UNSET

from pkgrepo.errors import Invalid, existing
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.routes import Credentials, Route
from pkgrepo.untrusted.text import seconds_of

from .route_schema import Replicate, RouteConfig, Routes, server_of
from .schema import DEFAULT, Cache

DEFAULT_TTL_S = 300
DEFAULT_NEGATIVE_TTL_S = 60
_SEPARATORS = re.compile(r"[-_.]+")  # PEP 503
MOST_KEPT = 4096  # configurations in memory; a few KiB each

T = TypeVar("T")


@frozen
class Rules:
    """
    Which packages of upstreams are served.

    Globs are those of ``fnmatch``, in which ``*`` also matches slashes. Case does not matter, and for reserved names
    neither does which of dashes, underscores and dots are written: ``acme-*`` also protects ``Acme_tool``, which is the
    same name for Python and easily mistaken for it elsewhere. ``pass_searches``: whether upstreams get the texts of
    searches; None if that is not set. ``refuse_upstream_names``: whether a name that an upstream has is not published.
    ``keep_removed``: whether files that a proxy keeps are served when its upstream does not list them any more.
    ``merge_names``: those of hosted packages beside whose versions the upstreams' are served.
    ``skip_inactive``: whether others serve the names of members that are switched off.
    """

    reserved_names: tuple[str, ...] = ()
    pass_searches: bool | None = None
    refuse_upstream_names: bool = False
    keep_removed: bool = False
    merge_names: tuple[str, ...] = ()
    skip_inactive: bool = False

    def merges(self, name: str) -> bool:
        """Whether a package (its key) has the versions of hosted members and of upstreams."""
        return _matching(_SEPARATORS.sub("-", name), self.merge_names) is not None

    def reserved_by(self, name: str) -> str | None:
        """The glob that keeps a package name (its key) from being asked of an upstream, or None."""
        return _matching(_SEPARATORS.sub("-", name), self.reserved_names)


@frozen
class Followed:
    """
    The repository of another pkgrepo whose events a proxy follows.

    ``server`` is the address of the server, without a slash at its end, on the host of the only route; ``repository``
    is its path there. ``files`` are globs of ``fnmatch`` without capitals: of ``package/file`` and ``image:tag``, of
    what is fetched as soon as it is published.
    """

    server: str
    repository: str
    files: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Whether a file (``package/file``) or an image (``image:tag``, ``image@digest``) is fetched at once."""
        return _matching(name, self.files) is not None


@frozen
class ProxyConfig:
    """
    The configuration of a proxy repository.

    ``routes``: the one that is asked first comes first. ``ttl_s``: for how long metadata is used before the upstream is
    asked again. ``negative_ttl_s``: how long it is remembered that an upstream does not have something.
    ``stale_if_gone_s``: how long something is served after the upstream has removed it; None: as its kind says.
    ``max_bytes``, ``unused_days``: limits of the cache, None for none. With ``replicas`` the routes are copies of each
    other: while one fails, the next ones are asked also for what they have not served before. ``routes_digest`` tells
    routes from others, also those with other credentials or for other packages.
    """

    routes: tuple[Route, ...]
    ttl_s: int = DEFAULT_TTL_S
    negative_ttl_s: int = DEFAULT_NEGATIVE_TTL_S
    stale_if_gone_s: int | None = None
    max_bytes: int | None = None
    unused_days: int | None = None
    rules: Rules = Rules()
    replicas: bool = False
    follows: Followed | None = None
    routes_digest: str = ""


@frozen
class VirtualConfig:
    """
    The configuration of a virtual repository.

    ``members``, ``publish_to`` and ``publish_snapshots_to`` (None: no other member) are public ids
    (``Repository.uid``). With ``merges`` the versions of all members that are not hosted are joined; otherwise the
    first of them that has a package serves it.
    """

    members: tuple[str, ...]
    publish_to: str | None = None
    publish_snapshots_to: str | None = None
    merges: bool = False
    rules: Rules = Rules()


class _Kept(Generic[T]):
    """The values that were made of configurations, while these stay the same objects (see L{Registry})."""

    def __init__(self, make: Callable[[Repository], T]) -> None:
        self._make = make
        self._kept: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], T]] = {}

    def __call__(self, repository: Repository) -> T:
        kept = self._kept.get(repository.uid)
        if kept is not None and kept[0] is repository.config and kept[1] is repository.settings:
            return kept[2]
        made = self._make(repository)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[repository.uid] = (repository.config, repository.settings, made)
        return made


def proxy_config_of(repository: Repository) -> ProxyConfig:
    """The configuration of a repository of type Proxy; a look-up in memory."""
    return _proxy_configs(repository)


def virtual_config_of(repository: Repository) -> VirtualConfig:
    """The configuration of a repository of type Virtual; a look-up in memory."""
    return _virtual_configs(repository)


def routes_of(repository: Repository, key: str) -> list[Route]:
    """The routes of a proxy that are asked for a package (a key; empty for what belongs to none), in order."""
    return [each for each in proxy_config_of(repository).routes if each.serves(key)]


def find_route(repository: Repository, name: str) -> Route:
    """The route of a proxy with this name. :raises NotFound: there is none now"""
    found = next((route for route in proxy_config_of(repository).routes if route.name == name), None)
    return existing(found, "route", name)


def is_from(repository: Repository, route: str, address: str) -> bool:
    """
    Whether something that is kept came from a route that the proxy has now.

    ``address`` is the URL of the route then, since at another one there is another upstream; empty if it is not known.
    """
    return not address or any((each.name, each.url) == (route, address) for each in proxy_config_of(repository).routes)


def rules_of(repository: Repository) -> Rules:
    """Which packages of upstreams a proxy or virtual repository serves."""
    if repository.type is RepositoryType.VIRTUAL:
        return virtual_config_of(repository).rules
    return proxy_config_of(repository).rules


def _make_proxy(repository: Repository) -> ProxyConfig:
    given = msgspec.convert(repository.config["proxy"], Routes).routes
    cache = msgspec.convert(repository.settings.get("cache") or {}, Cache)
    ttl = repository.settings.get("cache_ttl")
    return ProxyConfig(
        routes=tuple(sorted(map(_route, given), key=lambda route: -route.priority)),
        ttl_s=DEFAULT_TTL_S if ttl in (None, DEFAULT) else _seconds(ttl, DEFAULT_TTL_S),
        negative_ttl_s=_seconds(cache.negative_ttl, DEFAULT_NEGATIVE_TTL_S),
        stale_if_gone_s=None if cache.stale_if_gone is None else _seconds(cache.stale_if_gone, 0),
        max_bytes=cache.max_bytes,
        unused_days=cache.unused_days,
        rules=_rules(repository),
        replicas=bool(repository.settings.get("routes_are_replicas")),
        follows=_followed(repository, given[0]),
        routes_digest=sha256(msgspec.json.encode(repository.config["proxy"])).hexdigest()[:16],
    )


def _followed(repository: Repository, route: RouteConfig | str) -> Followed | None:
    given = repository.settings.get("replicate")
    if given is None:
        return None
    assert isinstance(route, RouteConfig), "a stored route is in its one form"
    replicate = msgspec.convert(given, Replicate)
    try:
        return Followed(*server_of(replicate, route), _globs(replicate.files))
    except Invalid:  # the route was changed since; its editors see that nothing is followed
        return None


def _make_virtual(repository: Repository) -> VirtualConfig:
    config = repository.config
    return VirtualConfig(
        members=tuple(config["members"]),
        publish_to=config["publish_to"],
        publish_snapshots_to=config.get("publish_snapshots_to"),
        merges=config["resolution"] == "merge",
        rules=_rules(repository),
    )


def _route(given: RouteConfig | str) -> Route:
    assert isinstance(given, RouteConfig), "a stored route is in its one form"
    credentials = None
    if given.auth is not UNSET:
        username = None if given.auth.username is UNSET else given.auth.username
        secret = given.auth.token if given.auth.password is UNSET else given.auth.password
        credentials = Credentials(username, str(secret))
    return Route(
        name=given.name,
        target=parse_url(given.url.rstrip("/")),
        priority=given.priority,
        credentials=credentials,
        ca_file=None if given.ca_file is UNSET else Path(given.ca_file),
        hosts=() if given.hosts is UNSET else tuple(given.hosts.items()),
        packages=() if given.packages is UNSET else _globs(given.packages),
        connect_timeout_s=seconds_of(given.connect_timeout),
        idle_timeout_s=seconds_of(given.idle_timeout),
        token_hosts=() if given.token_hosts is UNSET else tuple(each.lower() for each in given.token_hosts),
    )


def _rules(repository: Repository) -> Rules:
    policy = repository.policy
    return Rules(
        reserved_names=_globs(_SEPARATORS.sub("-", each) for each in policy.get("reserved_names", ())),
        pass_searches=policy.get("pass_searches"),
        refuse_upstream_names=bool(policy.get("refuse_upstream_names", False)),
        keep_removed=policy.get("keep_removed", False),
        merge_names=_globs(_SEPARATORS.sub("-", each) for each in policy.get("merge_names", ())),
        skip_inactive=bool(policy.get("skip_inactive", False)),
    )


def _globs(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(each.casefold() for each in given)


def _matching(name: str, globs: tuple[str, ...]) -> str | None:
    folded = name.casefold()
    return next((glob for glob in globs if fnmatchcase(folded, glob)), None)


def _seconds(value: int | str | None, default: int) -> int:
    found = seconds_of(value)
    return default if found is None else int(found)


_proxy_configs = _Kept(_make_proxy)
_virtual_configs = _Kept(_make_virtual)
