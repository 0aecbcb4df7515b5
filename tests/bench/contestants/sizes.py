"""This checkout with catalogs of several sizes, and with two workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.bench.clients.load import Target
from tests.bench.clients.registry import Registry
from tests.bench.packages.filler import BASE

from .container import ImageRegistry, PkgrepoImages, registry_client
from .maven import MavenServer, PkgrepoMaven
from .nodes import Database, OnDatabase, short_folder
from .npm import NodeRegistry, PkgrepoNpm
from .pkgrepo import SINGLES, Filled, Pkgrepo, PkgrepoChannel, PkgrepoGems, PkgrepoHosting, target
from .python import PkgrepoPython, PythonIndex
from .server import variant

FILES: Final = (10_000_000, 1_000_000, 10_000)  # each of a project of its own, on PostgreSQL
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


class Multiplied(Filled, OnDatabase, PkgrepoPython):
    """One with ``releases`` files, of which the first ten thousand are published and the others are copies."""

    first = BASE

    def fill(self, *_: str) -> None:
        """Publish the base and multiply it, see L{tests.bench.multiply}; needs 3 KB of disk for a file, in the folder
        of temporary files."""
        database = Database(short_folder(self.folder))
        try:
            path = f"{self.storage}/{self.repository}"
            self.run_module("fill", database.url, path, str(BASE), self.format, str(BASE))
            if self.releases > BASE:
                self.run_module("multiply", database.url, path, str(self.releases // BASE))
        finally:
            database.stop()


MULTIPLIED: Final[Sequence[type[Multiplied]]] = [
    variant(f"pkgrepo-python-postgresql-{size}-files", Multiplied, releases=size) for size in FILES
]
SCALED: Final[Sequence[type[Filled]]] = [
    *(variant(scaled_name(kind, size), Filled, BASES[kind], releases=size) for kind in BASES for size in SIZES),
    *MULTIPLIED,
]


class PkgrepoConsole(Filled):
    """A public repository with 100,000 packages, one of which has 5,000 versions."""

    name = "pkgrepo-console-100000"
    repository = "py"
    format = "python"
    releases = 100_000

    def fill(self, *arguments: str) -> None:
        super().fill(*arguments)
        super().fill("5000", "versions")


class TwoWorkers(Pkgrepo):
    """Two processes that serve, below a third one that starts them."""

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_SERVER__WORKERS": "2"}


for _base in (PkgrepoNpm, PkgrepoPython, PkgrepoMaven, PkgrepoGems, PkgrepoChannel, PkgrepoImages, *SINGLES.values()):
    variant(f"{_base.name}-2", TwoWorkers, _base)


class PkgrepoMixed(TwoWorkers, NodeRegistry, PythonIndex, MavenServer, ImageRegistry):
    """A public repository of each format, which has its name, and a token that may write to all of them."""

    name = "pkgrepo-mixed"
    token = ""

    def prepare(self) -> None:
        for each in ("npm", "python", "maven", "docker"):
            self.add_repository(each, each)
        self.token = self.make_token("main/*")

    def place(self, kind: str) -> str:
        return self.repository_url(kind)

    def target(self, kind: str) -> Target:
        return target(kind, self.place(kind), self.token)

    def client(self, image: str) -> Registry:
        return registry_client(self, f"main/docker/{image}")
