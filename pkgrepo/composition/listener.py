"""What the ports of a server listen with: the HTTP site, behind TLS if there is a certificate."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import Resource

from pkgrepo import __version__
from pkgrepo.auth.tokens.text import hide_tokens
from pkgrepo.config import Config
from pkgrepo.gateway.callers.tokens import take_token
from pkgrepo.http.access_log import AccessLogWriter
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.proxies import TrustedProxies
from pkgrepo.http.site import Site, make_site
from pkgrepo.http.tls import ServerCertificate, tls_factory
from pkgrepo.management.metrics.durations import RequestMetrics
from pkgrepo.repositories.registry import Registry

DAY_S: Final = 86_400


class Listener:
    """
    The site, its certificate and its access log.

    Ports are bound before the server is ready, so ``site`` has an empty resource at first.
    """

    def __init__(
        self, config: Config, reactor: Any, *, registry: Registry, in_thread: Callable[..., Deferred[Any]]
    ) -> None:
        self._reactor = reactor
        self._reload = config.tls.reload == "auto"
        self._access_log = _access_log(config, reactor)
        self._certificate = _certificate(config)
        self.metrics = RequestMetrics(registry, self._access_log)
        server, public_url = config.server, config.server.public_url
        self.site: Site = make_site(
            Resource(),
            reactor=reactor,
            limits=_limits(config),
            trusted_proxies=TrustedProxies(server.trusted_proxies, server.forwarded_header, public_url=public_url),
            access_log=self.metrics,
            server_header=f"pkgrepo/{__version__}",
            in_thread=in_thread,
            take_credentials=take_token,
            hsts_s=server.hsts_days * DAY_S if public_url.startswith("https://") else 0,
        )
        self.factory: IProtocolFactory = (
            self.site if self._certificate is None else tls_factory(self._certificate, self.site, reactor)
        )

    def certificate_expiry(self) -> datetime | None:
        """When the certificate expires (aware UTC); None without TLS."""
        return None if self._certificate is None else self._certificate.expires_at

    def watch_certificate(self) -> None:
        """Reload the certificate when its files change, if the configuration says so."""
        if self._certificate is not None and self._reload:
            self._certificate.watch(self._reactor)

    def reload_certificate(self) -> None:
        """Use the current content of the certificate's files for new connections."""
        if self._certificate is not None:
            self._certificate.reload_and_log()

    async def drain(self, grace_s: float) -> None:
        """Let transfers end for up to ``grace_s`` seconds, then close all connections."""
        await self.site.drain(grace_s)
        if self._certificate is not None:
            self._certificate.unwatch()

    def close(self) -> None:
        """Write the last lines of the access log."""
        if self._access_log is not None:
            self._access_log.flush()


def _limits(config: Config) -> HttpLimits:
    server = config.server
    return HttpLimits(
        header_bytes=server.header_bytes,
        header_count=server.header_count,
        header_deadline_s=server.header_deadline_s,
        idle_timeout_s=server.idle_timeout_s,
        min_body_rate=server.min_body_rate,
        write_stall_s=server.write_stall_s,
    )


def _access_log(config: Config, reactor: Any) -> AccessLogWriter | None:
    if not config.log.access:
        return None
    style: Literal["text", "json"] = "json" if config.log.format == "json" else "text"
    return AccessLogWriter(
        sys.stdout.buffer, reactor=reactor, style=style, redact=hide_tokens, agents=config.log.user_agent
    )


def _certificate(config: Config) -> ServerCertificate | None:
    if config.tls.cert is None or config.tls.key is None:
        return None
    return ServerCertificate(str(config.tls.cert), str(config.tls.key))
