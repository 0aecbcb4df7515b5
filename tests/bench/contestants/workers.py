"""This checkout with two workers, of every format."""

from __future__ import annotations

from collections.abc import Mapping

from .conda import PkgrepoChannel
from .container import PkgrepoImages
from .maven import PkgrepoMaven
from .npm import PkgrepoNpm
from .python import PkgrepoPython
from .rubygems import PkgrepoGems
from .server import Contestant, Pkgrepo


class TwoWorkers(Pkgrepo):
    """Two processes that serve, below a third one that starts them."""

    def environment(self) -> Mapping[str, str]:
        """As with one."""
        return {**super().environment(), "PKGREPO_SERVER__WORKERS": "2"}


class TwoWorkersNpm(TwoWorkers, PkgrepoNpm):
    """Of npm packages."""

    name = f"{PkgrepoNpm.name}-2"


class TwoWorkersPython(TwoWorkers, PkgrepoPython):
    """Of Python packages."""

    name = f"{PkgrepoPython.name}-2"


class TwoWorkersMaven(TwoWorkers, PkgrepoMaven):
    """Of Maven artifacts."""

    name = f"{PkgrepoMaven.name}-2"


class TwoWorkersGems(TwoWorkers, PkgrepoGems):
    """Of gems."""

    name = f"{PkgrepoGems.name}-2"


class TwoWorkersConda(TwoWorkers, PkgrepoChannel):
    """Of conda packages."""

    name = f"{PkgrepoChannel.name}-2"


class TwoWorkersImages(TwoWorkers, PkgrepoImages):
    """Of images."""

    name = f"{PkgrepoImages.name}-2"


CONTESTANTS: Mapping[str, type[Contestant]] = {
    each.name: each
    for each in (
        TwoWorkersNpm,
        TwoWorkersPython,
        TwoWorkersMaven,
        TwoWorkersGems,
        TwoWorkersConda,
        TwoWorkersImages,
    )
}
