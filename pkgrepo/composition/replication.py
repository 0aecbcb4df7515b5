"""What follows the events of other servers, put together over the parts of proxies."""

from __future__ import annotations

from functools import cache, partial
from typing import Any
from urllib.request import getproxies_environment

from attrs import evolve

from pkgrepo.composition.core import Core
from pkgrepo.composition.upstreams import ProxyParts, upstream_settings
from pkgrepo.config import Config
from pkgrepo.gateway.services import Services
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.resolving.package_files import keep_file
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.replication.copies import Copies
from pkgrepo.replication.files import FileCopies
from pkgrepo.replication.service import Parts, Replication
from pkgrepo.repositories.format import ByFormat

MOST_WAITING = 200  # requests that wait for events of one server; they are apart from those of clients


def make_replication(
    core: Core, config: Config, services: Services, proxies: ProxyParts, reactor: Any
) -> tuple[Replication, Upstreams]:
    """The service, and its clients, which are closed when it has stopped."""
    settings = upstream_settings(config.proxy, getproxies_environment())
    upstreams = Upstreams(
        evolve(settings, max_connections_per_host=max(MOST_WAITING, settings.max_connections_per_host)),
        reactor,
        authorize=lambda route: authorization_of(route, core.secrets),
        on_traffic=proxies.counters.add_traffic,
    )
    files = FileCopies(
        catalog=core.catalog,
        content=core.content,
        resolver=proxies.resolver,
        formats=core.formats,
        proxied=ByFormat(core.formats, lambda each: each.proxied),
        fetch=partial(keep_file, proxies.package_files, proxies.fetching),
    )

    @cache
    def copies(name: str) -> Copies:
        own = core.formats[name].copies
        return files if own is None else own(services)

    parts = Parts(
        catalog=core.catalog,
        registry=core.registry,
        clock=core.clock,
        formats=core.formats,
        copies=copies,
        upstreams=upstreams,
        settle=proxies.settle,
        mark_old=proxies.mark_old,
        idle_timeout_s=config.proxy.idle_timeout_s,
        reactor=reactor,
    )
    return Replication(parts), upstreams
