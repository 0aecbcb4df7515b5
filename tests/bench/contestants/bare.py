"""The floor of a publish beside the registries; see L{tests.bench.floor}."""

from __future__ import annotations

from collections.abc import Sequence

from .maven import MavenServer
from .npm import NodeRegistry
from .server import ROOT


class Bare(MavenServer, NodeRegistry):
    """A bare Twisted program, with what the project is installed with."""

    name = "bare-twisted"

    def command(self) -> Sequence[str]:
        python = ROOT / ".venv" / "bin" / "python"
        return [str(python), "-m", "tests.bench.floor", str(self.port), str(self.folder)]

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT)}
