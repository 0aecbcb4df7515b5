"""An upstream client on the real reactor, and servers for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest_twisted
from attrs import evolve

from pkgrepo.composition.upstreams import upstream_settings
from pkgrepo.config import Config
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Credentials, Route
from tests.support.host_names import Names
from tests.support.inprocess_server import assert_reactor_rests, no_failures, reactor, watched
from tests.support.raw_server import RawConnection, RawServer
from tests.support.upstreams.server import ScriptedUpstream

SETTINGS = evolve(upstream_settings(Config().proxy, proxies={}), allow_private=("127.0.0.1", "localhost"))


def authorization_of(route: Route) -> str | None:
    return None if route.credentials is None else route.credentials.sealed


class Scene:
    """Servers and clients of one test."""

    def __init__(self) -> None:
        self.servers: list[ScriptedUpstream] = []
        self.raw_servers: list[RawServer] = []
        self.instances: list[Upstreams] = []
        self._previous: Any = None

    def adopt(self, server: ScriptedUpstream) -> ScriptedUpstream:
        self.servers.append(server.start())
        return server

    def serve(self, documents: Any = None, **options: Any) -> ScriptedUpstream:
        return self.adopt(ScriptedUpstream(documents, **options))

    def serve_raw(self, answer: Callable[[RawConnection, str], None]) -> RawServer:
        self.raw_servers.append(RawServer(answer))
        return self.raw_servers[-1]

    def upstreams(self, **settings: Any) -> Upstreams:
        self.instances.append(
            Upstreams(evolve(SETTINGS, **settings), reactor, authorize=authorization_of, jitter=lambda: 0.0)
        )
        return self.instances[-1]

    def upstream(self, url: str, *, route: Any = None, **settings: Any) -> Upstream:
        return self.upstreams(**settings).of(1, self.route(url, **(route or {})))

    def route(self, url: str, *, authorization: str | None = None, **values: Any) -> Route:
        """Return a route to ``url``. What is "sealed" in its credentials is the Authorization field."""
        credentials = None if authorization is None else Credentials(None, authorization)
        return Route("main", parse_url(url.rstrip("/")), credentials=credentials, **values)

    def names(self, **addresses: str) -> dict[str, str]:
        """Resolve names by the returned dict from now on; other names and addresses as usual."""
        self._previous = reactor.installNameResolver(Names(reactor.nameResolver, addresses))
        return addresses

    async def stop(self) -> None:
        if self._previous is not None:
            reactor.installNameResolver(self._previous)
        for each in self.instances:
            await each.close()
        for server in self.servers:
            server.stop()
        for raw_server in self.raw_servers:
            await raw_server.stop()


@pytest_twisted.async_yield_fixture
async def scene() -> Any:
    """Makes servers and clients; whatever they leave in the reactor, or log as a failure, fails the test."""
    before = watched()
    with no_failures():
        made = Scene()
        yield made
        await made.stop()
        await assert_reactor_rests(before)
