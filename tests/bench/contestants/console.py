"""The console: a server with so many packages that a page must not look at all of them."""

from __future__ import annotations

from collections.abc import Mapping

from .server import Contestant, Filled


class PkgrepoConsole(Filled):
    """A public repository with 100,000 packages, one of which has 5,000 versions."""

    name = "pkgrepo-console-100000"
    repository = "py"
    format = "python"
    releases = 100_000

    def fill(self, *arguments: str) -> None:
        """Both, the package with many versions at the end."""
        super().fill(*arguments)
        super().fill("5000", "versions")


CONTESTANTS: Mapping[str, type[Contestant]] = {PkgrepoConsole.name: PkgrepoConsole}
