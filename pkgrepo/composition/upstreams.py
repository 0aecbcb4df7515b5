"""The settings of upstream connections."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.config.settings import Proxy
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.upstream.settings import UpstreamSettings


def upstream_settings(proxy: Proxy, proxies: Mapping[str, str]) -> UpstreamSettings:
    """The settings ``proxy.*``; ``proxies`` are those of the environment, by scheme, and exceptions under "no"."""
    return UpstreamSettings(
        connect_timeout_s=proxy.connect_timeout_s,
        idle_timeout_s=proxy.idle_timeout_s,
        documents=ReadLimits(proxy.max_document_size, proxy.document_timeout_s),
        max_connections_per_host=proxy.max_connections_per_host,
        allow_private=proxy.allow_private,
        ca_file=proxy.ca_file,
        proxies=proxies,
    )
