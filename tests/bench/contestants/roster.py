"""Every contestant by its name."""

from __future__ import annotations

from collections.abc import Mapping

from . import conda, console, container, maven, nodes, nora, npm, proxy, python, rubygems, scale, workers
from .server import Contestant

CONTESTANTS: Mapping[str, type[Contestant]] = {
    **python.CONTESTANTS,
    **npm.CONTESTANTS,
    **container.CONTESTANTS,
    **maven.CONTESTANTS,
    **nora.CONTESTANTS,
    **proxy.CONTESTANTS,
    **rubygems.CONTESTANTS,
    **conda.CONTESTANTS,
    **console.CONTESTANTS,
    **workers.CONTESTANTS,
    **nodes.CONTESTANTS,
    **scale.CONTESTANTS,
}
