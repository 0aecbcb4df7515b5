"""Promises of content: what a client is told to exist is kept until the client can push a manifest with it."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.blobs.blobs import TOUCH_MS
from pkgrepo.storage.catalog.images.promises import is_fresh


async def renew_promise(
    services: Services,
    repository: Repository,
    command: Callable[..., bool],
    package_id: int,
    digest: str,
    touched_ms: int,
    client: str | None,
) -> bool:
    """
    Renew the grace period of a blob or manifest, and promise it to the client, if that was not done recently.

    ``command`` is L{promise_blob} or L{promise_manifest}. ``client`` is None if the caller may not push. False if the
    content is gone.
    """
    catalog, now_ms = services.catalog, services.clock.now_ms()
    promised = client is None or await catalog.look(is_fresh, package_id, digest, client, now_ms)
    if promised and touched_ms >= now_ms - TOUCH_MS:
        return True
    return await catalog.write(command, repository, package_id, digest, client, now_ms)
