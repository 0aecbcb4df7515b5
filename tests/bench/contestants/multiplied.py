"""This checkout on PostgreSQL, with catalogs of up to ten million files, each of a project of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from tests.bench.packages.filler import BASE

from .nodes import Database, OnDatabase, short_folder
from .python import PkgrepoPython
from .server import Filled

SIZES: Final = (10_000_000, 1_000_000, 10_000)  # files


class Multiplied(Filled, OnDatabase, PkgrepoPython):
    """One with C{releases} files, of which the first ten thousand are published and the others are copies."""

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


def multiplied_name(size: int) -> str:
    """What a contestant of this size is called."""
    return f"pkgrepo-python-postgresql-{size}-files"


def _multiplied(size: int) -> type[Multiplied]:
    names = {"name": multiplied_name(size), "releases": size, "__doc__": f"With {size:,} files."}
    return cast("type[Multiplied]", type(f"Multiplied{size}", (Multiplied,), names))


MULTIPLIED: Final[Mapping[str, type[Multiplied]]] = {multiplied_name(size): _multiplied(size) for size in SIZES}
