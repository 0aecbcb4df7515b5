"""What starts imports, put together over a core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.request import getproxies_environment

from pkgrepo.composition.core import Core
from pkgrepo.composition.upstreams import upstream_settings
from pkgrepo.config import Config
from pkgrepo.gateway.imported.engine import Tools
from pkgrepo.importing.importers import Importers
from pkgrepo.proxy.upstream.instances import Upstreams


def make_importers(core: Core, config: Config, folders: Sequence[Path] | None) -> Importers:
    """What starts imports; ``folders`` are those that it may read, None: all that this process can read."""
    settings = upstream_settings(config.proxy, getproxies_environment())
    return Importers(
        tools=Tools(
            catalog=core.catalog,
            content=core.content,
            pools=core.pools,
            clock=core.clock,
            max_upload=config.server.max_upload,
            serves=folders is not None,
        ),
        jobs=core.jobs,
        formats=core.formats,
        upstreams=lambda authorization: Upstreams(settings, core.reactor, authorize=lambda _: authorization),
        folders=folders,
        keys=config.imports.keys,
        reactor=core.reactor,
    )
