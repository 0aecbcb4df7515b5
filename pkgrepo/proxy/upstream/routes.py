"""The routes of proxy repositories, the settings of connections to them, and the check for proxy loops."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import field, frozen

from pkgrepo.concurrency.proxy_loop import is_proxy_loop
from pkgrepo.errors import UpstreamLoop
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import Target, join_path, parse_url


@frozen
class Credentials:
    """
    What a route sends in the Authorization field: Basic with ``username``, Bearer if that is None.

    ``sealed`` is the password or token as it is stored: it is opened where it is sent, so that it is in no other value.
    """

    username: str | None
    sealed: str = field(repr=False)


@frozen
class Route:
    """
    One upstream of a repository.

    ``target`` is its root, whose path ends without a slash unless it is the root of the host. ``name`` is unique in the
    repository, and is what messages say. A route with a higher ``priority`` is asked earlier. ``ca_file`` has
    certificates that are trusted beside the system's.

    ``hosts`` are pairs of a host that the upstream names, in redirects and as its token service, and the URL at which
    it is reached from here; a port belongs to the host if it matters. It is only asked for packages whose key matches
    one of the ``packages`` (globs of ``fnmatch`` without capitals); for all if there are none. ``token_hosts`` are
    hosts beside its own that may get the credentials if it names them as its token service. The timeouts are those of
    the server where they are None. ``owner`` is what has the credentials, and ``setting`` what gives it them.
    """

    name: str
    target: Target
    priority: int = 0
    credentials: Credentials | None = None
    ca_file: Path | None = None
    hosts: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    token_hosts: tuple[str, ...] = ()
    connect_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    owner: str = "route"
    setting: str = "auth of the route"

    def about_credentials(self, *, given: bool) -> str:
        """What a 401 means."""
        if given:
            return f"it refuses the credentials of the {self.owner} ({self.setting})"
        return f"it wants credentials, and the {self.owner} has none ({self.setting})"

    def serves(self, key: str) -> bool:
        """Whether it is asked for a package (a key), or with an empty key for what belongs to none."""
        return not key or not self.packages or any(fnmatchcase(key.casefold(), each) for each in self.packages)

    def locate(self, named: Target) -> Target:
        """Where a URL is that the upstream names; the same unless ``hosts`` has its host."""
        for host, url in self.hosts:
            if host in (named.host, f"{named.host}:{named.port}"):
                return join_path(parse_url(url), named.text.split("/", 3)[3])
        return named

    @property
    def url(self) -> str:
        """The root as text, without a slash at its end."""
        return self.target.text.rstrip("/")


@frozen(kw_only=True)
class UpstreamSettings:
    """
    The settings ``proxy.*``, whose defaults are in ``pkgrepo.config``.

    ``connect_timeout_s`` is for name resolution, TCP and the tunnel through a proxy. After a request was sent, the head
    of its response must be complete in ``idle_timeout_s``, and the body may pause as long. A route may have others of
    both. ``proxies`` are URLs by scheme, and
    hosts without proxy under "no", as in the environment; they may contain passwords.
    """

    connect_timeout_s: float
    idle_timeout_s: float
    documents: ReadLimits
    max_connections_per_host: int
    allow_private: tuple[str, ...] = ()
    ca_file: Path | None = None
    proxies: Mapping[str, str] = field(factory=dict, repr=False)


def refuse_proxy_loop(repository_id: int, route: str) -> None:
    """
    Check that the present request has not passed this repository before.

    It is called before an upstream is asked, and before waiting for another request's question to it.

    :raises UpstreamLoop: with ``route``
    """
    if is_proxy_loop(repository_id):
        raise UpstreamLoop(route)
