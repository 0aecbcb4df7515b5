"""This checkout with a repository of each of four formats, and two workers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.bench.clients.load import Target, basic, send_json
from tests.bench.clients.registry import Registry

from .container import ImageRegistry, registry_client
from .maven import MavenServer
from .npm import NodeRegistry
from .python import PythonIndex
from .workers import TwoWorkers

FORMATS: Mapping[str, str] = {"node": "npm", "py": "python", "java": "maven", "images": "docker"}


class PkgrepoMixed(TwoWorkers, NodeRegistry, PythonIndex, MavenServer, ImageRegistry):
    """Public repositories, and a token that may write to all of them."""

    name = "pkgrepo-mixed"
    token = ""

    def prepare(self) -> None:
        """Make them."""
        admin = basic(self.user, self.password)
        for name, format_name in FORMATS.items():
            repository = {
                "name": name,
                "storage": "main",
                "format": format_name,
                "visibility": "public",
                "config": {"type": "Hosted"},
            }
            send_json("POST", f"{self.base_url}/api/repository", repository, admin)
        reach = [{"repository": "main/*", "actions": ["read", "write"]}]
        token = {"name": "bench", "repositories": reach}
        self.token = send_json("POST", f"{self.base_url}/api/user/token", token, admin)["token"]

    @property
    def registry_url(self) -> str:
        """That of npm packages."""
        return f"{self.base_url}/repositories/main/node"

    @property
    def credentials(self) -> Mapping[str, str]:
        """The token, as npm sends it."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def upload_target(self) -> Target:
        """That of wheels."""
        return Target(f"{self.base_url}/repositories/main/py/legacy/", basic("__token__", self.token))

    def page_url(self, project: str) -> str:
        """Of Python packages."""
        return f"{self.base_url}/repositories/main/py/simple/{project}/"

    @property
    def target(self) -> Target:
        """That of Java artifacts."""
        return Target(f"{self.base_url}/repositories/main/java", basic("bench", self.token))

    def client(self, image: str) -> Registry:
        """With a token as docker gets it for a push."""
        return registry_client(self, f"main/images/{image}")
