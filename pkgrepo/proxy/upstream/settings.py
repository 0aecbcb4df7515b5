"""Limits and timeouts of upstream connections, and what the operator decides about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from pkgrepo.model import ReadLimits


@frozen(kw_only=True)
class UpstreamSettings:
    """
    The settings ``proxy.*``, whose defaults are in ``pkgrepo.config``.

    ``connect_timeout_s`` is for name resolution, TCP and the tunnel through a proxy. After a request was sent, the head
    of its answer must be complete in ``idle_timeout_s``, and the body may pause as long. A route may have others of
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
