"""What people write in the configurations of proxy and virtual repositories; formats subclass these for own keys."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from pkgrepo.errors import Invalid
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.configuration import (
    Configurations,
    HostedConfig,
    PushRules,
    RepositoryConfig,
    Retention,
    check_retention,
)
from pkgrepo.repositories.policy.schema import ServingPolicy
from pkgrepo.repositories.publish_policy import HostedPolicy
from pkgrepo.untrusted.patterns import pattern
from pkgrepo.untrusted.text import END, ONE_LINE, seconds_of

from .route_schema import (
    MOST_TTL_S,
    Duration,
    Patterns,
    Replicate,
    RouteConfig,
    Routes,
    Seconds,
    Text,
    Upstream,
    named_routes,
)

MOST_MEMBERS = 64
DEFAULT = "Default"  # of ``cache_ttl``: the default of the format

LEAST_MIRROR_S = 60
Count = Annotated[int, Meta(ge=1)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
AgeDays = Annotated[int, Meta(ge=1, le=3650)]
Ttl = Annotated[
    str, Meta(pattern=pattern(rf"^({DEFAULT}|[0-9]{{1,8}}[smhd]?)" + END, f"a time such as 5m or 12h, or {DEFAULT}"))
]


class Cache(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """
    What is kept of upstreams.

    Without stale_if_gone tags of images and lists of tags are served for a week after the upstream has removed them,
    and nothing else is. Times are seconds, or texts such as 5m, 1h or 2d.
    """

    negative_ttl: Annotated[
        Seconds | Duration | None,
        meaning("How long it is remembered that an upstream does not have something, such as 30s or 5m."),
    ] = None
    stale_if_gone: Annotated[
        Seconds | Duration | None,
        meaning(
            "How long a document, a list, a tag or a file that may change is served after the upstream has removed it, "
            "such as 12h or 2d."
        ),
    ] = None
    max_bytes: Annotated[Count | None, meaning("Bytes that are kept; what was not used for longest goes first.")] = None
    unused_days: Annotated[Days | None, meaning("Days after which what nobody asked for is removed.")] = None


class ReleaseAge(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Versions are hidden until they were published this many days ago; names that match an exempt glob are not."""

    days: Annotated[AgeDays, meaning("Hide versions until they were published this many days ago.")]
    exempt: Annotated[Patterns, meaning("Patterns of names whose versions are never hidden.")] = []


class UpstreamPolicy(ServingPolicy, frozen=True, omit_defaults=True):
    """
    Rules for packages of upstreams.

    minimum_release_age may be a number of days. Unless pass_searches is set, upstreams get no searches if they are
    behind one address with a hosted repository that is private. For keep_removed a virtual repository does what each
    member says.
    """

    minimum_release_age: Annotated[ReleaseAge | AgeDays | None, meaning("How old versions of upstreams must be.")] = (
        None
    )
    reserved_names: Annotated[Patterns, meaning("Patterns of names that no upstream is ever asked for.")] = []
    pass_searches: Annotated[bool | None, meaning("Whether upstreams get what people search for.")] = None
    keep_removed: Annotated[
        bool, meaning("Go on serving cached files of versions that the upstream has removed, by their exact addresses.")
    ] = False

    def normalised(self) -> Self:
        """With the release age as an object."""
        if isinstance(self.minimum_release_age, int):
            return replace(self, minimum_release_age=ReleaseAge(days=self.minimum_release_age))
        return self


class VirtualPolicy(UpstreamPolicy, frozen=True, omit_defaults=True):
    """Rules for packages of upstreams behind a virtual repository, see L{UpstreamPolicy}."""

    refuse_upstream_names: Annotated[bool, meaning("The first publish of a name that an upstream has is refused.")] = (
        False
    )
    skip_inactive: Annotated[
        bool,
        meaning(
            "Others serve the names of a member that is switched off. Otherwise those are answered 503, and members "
            "after a proxy that is off serve only what they have served before."
        ),
    ] = False


class MergingPolicy(VirtualPolicy, frozen=True, omit_defaults=True):
    """
    The rules of formats whose versions can be joined, see L{VirtualPolicy}.

    Names that match a glob of merge_names have the versions of hosted members and of upstreams; of one version those of
    the hosted member are served. Other names that a hosted member has are not asked of an upstream.
    """

    merge_names: Annotated[
        Patterns, meaning("Patterns of names whose versions are those of hosted members and of upstreams together.")
    ] = []


class MirrorPattern(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """
    Packages that a proxy fetches by itself, as pkgrepo mirror does.

    A name without an asterisk is fetched whether or not anybody asked for it; a pattern is about the packages of which
    the proxy keeps something. Names are group:artifact of Java artifacts and subdir/name of conda packages.
    """

    packages: Annotated[
        Patterns, meaning("Names of packages, or patterns of those that are kept, such as @acme/*.", min_length=1)
    ]
    versions: Annotated[
        str,
        meaning(
            "newest and a number, all, or versions with commas between; of images tags with commas between.",
            min_length=1,
            max_length=2000,
            pattern=ONE_LINE,
        ),
    ] = "newest 1"
    only: Annotated[Patterns, meaning("Patterns of names of files, such as *-none-any.whl; all without any.")] = []
    every: Annotated[Seconds | Duration, meaning("How often, such as 12h or 1d; at least a minute.")] = "1d"


class MirrorConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a proxy fetches by itself, before anybody asks for it."""

    patterns: Annotated[list[MirrorPattern], meaning("What, and how often.", max_length=100)] = []

    def check(self) -> None:
        """:raises Invalid: a time is less than a minute, or a number of versions is none"""
        for index, each in enumerate(self.patterns):
            if not LEAST_MIRROR_S <= (seconds_of(each.every) or 0) <= MOST_TTL_S:
                raise Invalid("this is less than a minute, or more than a year", f"/mirror/patterns/{index}/every")
            words = each.versions.split()
            if words[0] == "newest" and (len(words) != 2 or not words[1].isdecimal() or not 1 <= int(words[1]) <= 1000):
                raise Invalid("write newest and a number from 1 to 1000", f"/mirror/patterns/{index}/versions")


class ProxyConfig(RepositoryConfig, frozen=True, tag=RepositoryType.PROXY.value):
    """
    The configuration of a proxy repository. ``type`` and ``proxy`` are the fixed part, the others are settings.

    ``config`` is another form of ``proxy``, which is accepted and not stored. cache_ttl tells for how long metadata is
    used before the upstream is asked again: Default, seconds, or a text such as 5m, 1h or 2d. While a route fails,
    those after it serve only what they have served before; all they have if routes_are_replicas, copies of each other.
    """

    fixed: ClassVar[tuple[str, ...]] = ("proxy",)

    proxy: Annotated[
        Routes | UnsetType,
        meaning(
            "The upstream routes of the repository; the one with the highest priority is tried first.",
            examples=[{"routes": [{"url": "https://registry.example/"}]}],
        ),
    ] = UNSET
    config: Annotated[
        Upstream | UnsetType,
        meaning("The upstream servers of the repository, in another form of proxy; it is stored as proxy."),
    ] = UNSET
    cache_ttl: Annotated[
        Seconds | Ttl | None, meaning("How long metadata of upstream servers is used before they are asked again.")
    ] = None
    cache: Annotated[Cache | None, meaning("What is kept of upstream servers, and for how long.")] = None
    policy: Annotated[UpstreamPolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None
    retention: Annotated[Retention | None, meaning("Which cached versions go by themselves, and when.")] = None
    mirror: Annotated[MirrorConfig | None, meaning("What is fetched by itself, before anybody asks for it.")] = None
    routes_are_replicas: Annotated[
        bool | None, meaning("The routes are copies of each other; while one fails, the next serves what it has.")
    ] = None
    replicate: Annotated[
        Replicate | None, meaning("Follow the events of a repository of another pkgrepo, the only route.")
    ] = None

    def normalised(self) -> Self:
        """With all upstreams in ``proxy``, and the release age as an object."""
        if (self.proxy is UNSET) == (self.config is UNSET):
            raise Invalid("a proxy repository has proxy.routes, or config.upstream_url, and not both", "/proxy")
        ttl = self.cache_ttl
        if self.config is not UNSET and self.config.revalidation_ttl_seconds is not UNSET:
            if ttl is not None:
                raise Invalid("cache_ttl is given, too", "/config/revalidation_ttl_seconds")
            ttl = self.config.revalidation_ttl_seconds
        cache = self.cache
        for value, pointer in (
            (ttl, "/cache_ttl"),
            (cache and cache.negative_ttl, "/cache/negative_ttl"),
            (cache and cache.stale_if_gone, "/cache/stale_if_gone"),
        ):
            if value != DEFAULT and (seconds_of(value) or 0) > MOST_TTL_S:
                raise Invalid("this is more than a year", pointer)
        if self.retention is not None:
            check_retention(self.retention, RepositoryType.PROXY)
        if self.mirror is not None:
            self.mirror.check()
        policy = self.policy.normalised() if self.policy is not None else None
        routes = Routes(self._routes())
        if self.replicate is not None:
            self.replicate.check(routes)
        return replace(self, proxy=routes, config=UNSET, cache_ttl=ttl, policy=policy)

    def _routes(self) -> list[RouteConfig | str]:
        if self.proxy is not UNSET:
            return named_routes(self.proxy.routes, "/proxy/routes")
        assert self.config is not UNSET
        self.config.check()
        if self.config.routes is not UNSET:
            return named_routes(self.config.routes, "/config/routes")
        assert self.config.upstream_url is not UNSET
        route = RouteConfig(url=self.config.upstream_url, auth=self.config.upstream_auth)
        return [route.named("/config", url="upstream_url", auth="upstream_auth")]


class ListProxyConfig(ProxyConfig, frozen=True, tag=RepositoryType.PROXY.value):
    """
    The configuration of a proxy whose upstream has one document over all packages.

    Its routes are addresses of one upstream: what is not at the first one is asked of the next, or with
    routes_are_replicas of the first one that answers. Several upstreams are the members of a virtual repository.
    """

    def normalised(self) -> Self:
        """The configuration as it is stored. :raises Invalid: a route is only for some packages"""
        found = super().normalised()
        assert found.proxy is not UNSET, "it is normalised"
        for index, route in enumerate(found.proxy.routes):
            if isinstance(route, RouteConfig) and route.packages is not UNSET:
                raise Invalid(
                    "each route has all packages; use reserved_names, or a proxy for each upstream",
                    f"/proxy/routes/{index}/packages",
                )
        return found


class VirtualConfig(RepositoryConfig, frozen=True, kw_only=True, tag=RepositoryType.VIRTUAL.value):
    """
    The configuration of a virtual repository: several repositories behind one address.

    ``members`` are paths (storage/name) in the order in which they are asked; stored are their ids. Packages that are
    published here go to the member ``publish_to``. ``resolution`` tells how members that are not hosted are joined: the
    first that has a package serves it, or the versions of all are merged.
    """

    fixed: ClassVar[tuple[str, ...]] = ("members", "publish_to", "resolution")

    members: Annotated[
        list[Text],
        meaning(
            "The repositories that a virtual one consists of, in the order in which they are asked.",
            min_length=1,
            max_length=MOST_MEMBERS,
            examples=[["main/packages"]],
        ),
    ]
    publish_to: Annotated[
        Text | None, meaning("The member to which packages go that are published to a virtual repository.")
    ] = None
    resolution: Annotated[
        Literal["first", "merge"], meaning("How the members of a virtual repository that are not hosted are joined.")
    ] = "first"
    policy: Annotated[VirtualPolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None

    def normalised(self) -> Self:
        """With the release age of ``policy`` as an object."""
        return replace(self, policy=self.policy.normalised()) if self.policy is not None else self


class MergingConfig(VirtualConfig, frozen=True, kw_only=True, tag=RepositoryType.VIRTUAL.value):
    """The configuration of a virtual repository of a format whose versions can be joined, see L{VirtualConfig}."""

    policy: Annotated[MergingPolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None


class OncePolicy(HostedPolicy, frozen=True):
    """The policy of formats whose files never change: what was deleted is not published again, unless this lets it."""

    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class OnceConfig(HostedConfig, frozen=True):
    """The configuration of a hosted repository of such a format. ``type`` is the fixed object, the rest settings."""

    push_rules: Annotated[PushRules | None, meaning("Rules for pushes.")] = None
    policy: Annotated[OncePolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None


def usual_configurations(what: str) -> Configurations:
    """The configurations of a format that has no settings of its own; ``what`` is its name in a sentence."""
    return Configurations(what, OnceConfig | ProxyConfig | MergingConfig)
