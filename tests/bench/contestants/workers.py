"""This checkout with two workers: of every format, and one with a repository of each of four formats."""

from __future__ import annotations

from collections.abc import Mapping

from tests.bench.clients.load import Target, basic
from tests.bench.clients.registry import Registry

from .conda import PkgrepoChannel
from .container import ImageRegistry, PkgrepoImages, registry_client
from .maven import MavenServer, PkgrepoMaven
from .npm import NodeRegistry, PkgrepoNpm
from .python import PkgrepoPython, PythonIndex
from .rubygems import PkgrepoGems
from .server import Pkgrepo, variant


class TwoWorkers(Pkgrepo):
    """Two processes that serve, below a third one that starts them."""

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_SERVER__WORKERS": "2"}


for _base in (PkgrepoNpm, PkgrepoPython, PkgrepoMaven, PkgrepoGems, PkgrepoChannel, PkgrepoImages):
    variant(f"{_base.name}-2", TwoWorkers, _base)

FORMATS: Mapping[str, str] = {"node": "npm", "py": "python", "java": "maven", "images": "docker"}


class PkgrepoMixed(TwoWorkers, NodeRegistry, PythonIndex, MavenServer, ImageRegistry):
    """Public repositories, and a token that may write to all of them."""

    name = "pkgrepo-mixed"
    token = ""

    def prepare(self) -> None:
        for name, format_name in FORMATS.items():
            self.add_repository(name, format_name)
        self.token = self.make_token("main/*")

    @property
    def registry_url(self) -> str:
        return f"{self.base_url}/repositories/main/node"

    @property
    def credentials(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def upload_target(self) -> Target:
        return Target(f"{self.base_url}/repositories/main/py/legacy/", basic("__token__", self.token))

    def page_url(self, project: str) -> str:
        return f"{self.base_url}/repositories/main/py/simple/{project}/"

    @property
    def target(self) -> Target:
        return Target(f"{self.base_url}/repositories/main/java", basic("bench", self.token))

    def client(self, image: str) -> Registry:
        return registry_client(self, f"main/images/{image}")
