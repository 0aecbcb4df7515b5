"""This checkout with catalogs of several sizes, of every format whose packages can be filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from .conda import PkgrepoChannel
from .maven import PkgrepoMaven
from .multiplied import MULTIPLIED
from .npm import PkgrepoNpm
from .python import PkgrepoPython
from .rubygems import PkgrepoGems
from .server import Contestant, Filled, PkgrepoHosting

SIZES: Final = (1_000_000, 100_000, 10_000, 1_000)  # releases
BASES: Final[Mapping[str, type[PkgrepoHosting]]] = {
    "python": PkgrepoPython,
    "npm": PkgrepoNpm,
    "maven": PkgrepoMaven,
    "gems": PkgrepoGems,
    "conda": PkgrepoChannel,
}


def scaled_name(kind: str, size: int) -> str:
    """What a contestant of this size is called."""
    return f"pkgrepo-{kind}-{size}-releases"


def _scaled(kind: str, size: int) -> type[Filled]:
    names = {"name": scaled_name(kind, size), "releases": size, "__doc__": f"Of {kind}, with {size:,} releases."}
    return cast("type[Filled]", type(f"Scaled{kind.title()}{size}", (Filled, BASES[kind]), names))


SCALED: Mapping[str, type[Filled]] = {
    **{scaled_name(kind, size): _scaled(kind, size) for kind in BASES for size in SIZES},
    **MULTIPLIED,
}
CONTESTANTS: Mapping[str, type[Contestant]] = SCALED
