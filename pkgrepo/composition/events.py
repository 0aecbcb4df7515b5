"""What tells other programs of events: the sender of webhooks, and the feed."""

from __future__ import annotations

from typing import Any
from urllib.request import getproxies_environment

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.config import Config
from pkgrepo.management.api.services import Events
from pkgrepo.storage.catalog.server import settings
from pkgrepo.webhooks.feed import EventFeed
from pkgrepo.webhooks.poster import Poster, Settings
from pkgrepo.webhooks.sender import WebhookSender

from .core import Core


async def make_events(core: Core, config: Config, authorizer: Authorizer, reactor: Any) -> Events:
    """
    Put them together over a core that was started.

    :raises Invalid: a proxy in the environment, or ``proxy.ca_file``, cannot be used
    """
    source = config.server.public_url.rstrip("/") or f"urn:uuid:{await core.catalog.look(settings.server_uid)}"
    poster = Poster(
        Settings(
            allow_private=config.webhooks.allow_private,
            timeout_s=config.webhooks.timeout_s,
            ca_files=[] if config.proxy.ca_file is None else [config.proxy.ca_file],
            proxies=getproxies_environment(),
        ),
        core.secrets,
        core.clock,
        reactor,
    )
    sender = WebhookSender(
        catalog=core.catalog,
        registry=core.registry,
        authorizer=authorizer,
        poster=poster,
        clock=core.clock,
        source=source,
        reactor=reactor,
    )
    return Events(
        source=source,
        poster=poster,
        sender=sender,
        feed=EventFeed(core.catalog, core.registry, authorizer, source, reactor),
    )
