"""Checks that all nodes have the same key for stored credentials, which is in a file of each node's data folder."""

from __future__ import annotations

from twisted.logger import Logger

from pkgrepo.composition.core import KEY_FILE, Core
from pkgrepo.errors import Conflict
from pkgrepo.storage.catalog.server import settings

log = Logger()


async def check_key(core: Core) -> None:
    """
    Compare the key with that of the nodes that run. A node that runs alone decides which one counts from now on.

    :raises Conflict: it is another one
    """
    own = core.secrets.fingerprint
    before = await core.catalog.look(settings.get, settings.CREDENTIALS_KEY)
    if own == await core.catalog.write(settings.ensure_credentials_key, own, alone=core.alone):
        if before not in (None, own):
            log.warn("{key} is not the key of the last run; credentials sealed with that one are lost", key=KEY_FILE)
        return
    path = core.config.data.dir / KEY_FILE
    raise Conflict(f"{path} is not the key of the other nodes: copy that file from the data folder of one of them")
