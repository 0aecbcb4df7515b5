"""npm registries: the URLs of documents, tarballs and publishes of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from tests.bench.clients.load import LoadFailed, Target, get, post_all, send_json
from tests.bench.packages.tarballs import NodePackage, versions

from .pkgrepo import PkgrepoHosting
from .server import ROOT, Contestant, Unavailable

PROGRAMS = ROOT / ".cache" / "bench" / "node"
FILLERS = 8


class NodeRegistry(Contestant):
    """An npm registry."""

    fillers = FILLERS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._taken: Counter[str] = Counter()

    def package_url(self, name: str) -> str:
        """Return the URL of a package's document, to which versions are also published."""
        return f"{self.place('npm')}/{quote(name, safe='@')}"

    def tarball_url(self, package: NodePackage) -> str:
        """Return the URL of a version's tarball."""
        return f"{self.place('npm')}/{package.name}/-/{package.filename}"

    def publish_target(self, name: str) -> Target:
        """Return the target of a package's publish requests."""
        return Target(self.package_url(name), self.target("npm").headers)

    def further(self, name: str, count: int) -> list[NodePackage]:
        """Versions of a package that were not given out for this server before, to be published now."""
        start = self._taken[name]
        self._taken[name] += count
        return versions(name, count, start=start)

    def fill(self, name: str, count: int) -> None:
        """Make a package with this number of versions."""
        posts = [package.post(self.place("npm")) for package in self.further(name, count)]
        target = self.publish_target(name)
        post_all(target, posts[:1], 1)
        post_all(target, posts[1:], self.fillers)

    def count(self, name: str) -> int:
        """How many versions a package's document has. :raises LoadFailed: there is none"""
        reply = get(self.package_url(name), {"Accept": "application/json"})
        if reply.status != 200:
            raise LoadFailed(f"{self.package_url(name)}: {reply.status}")
        return len(json.loads(reply.body)["versions"])


class PkgrepoNpm(PkgrepoHosting, NodeRegistry):
    """A public repository of Node packages; publishing carries a token, as ``npm login`` leaves one."""

    name = "pkgrepo-npm"
    repository = "node"
    format = "npm"


class Verdaccio(NodeRegistry):
    """
    Verdaccio without uplinks: its own storage on the disk, its web pages, audit and log off.

    Its tokens are of the kind that it gives out unless it is told otherwise: encrypted, and the password in them is
    checked each time. One client fills it: of several versions at once it refuses some, because it locks the package.
    """

    name = "verdaccio"
    fillers = 1
    security = ""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._token = ""

    def command(self) -> Sequence[str]:
        program = PROGRAMS / "node_modules" / ".bin" / "verdaccio"
        if not program.exists():
            raise Unavailable("verdaccio is not installed")
        described = json.loads((PROGRAMS / "node_modules" / "verdaccio" / "package.json").read_text())
        self.version = described["version"]
        configuration = self.folder / "config.yaml"
        uplinks, proxy = self.uplinks()
        configuration.write_text(
            _VERDACCIO.format(folder=self.folder, security=self.security, uplinks=uplinks, proxy=proxy)
        )
        return [str(program), "-c", str(configuration), "-l", f"127.0.0.1:{self.port}"]

    def uplinks(self) -> tuple[str, str]:
        """Its uplinks in YAML, and what follows in the rule for packages; none."""
        return "{}", ""

    def prepare(self) -> None:
        user = {"name": "bench", "password": "a-bench-of-our-own"}
        answer = send_json("PUT", f"{self.base_url}/-/user/org.couchdb.user:bench", user, {})
        self._token = answer["token"]

    def target(self, kind: str) -> Target:
        return Target(self.base_url, {"Authorization": f"Bearer {self._token}"})


class VerdaccioJwt(Verdaccio):
    """Verdaccio with JSON Web Tokens, which it verifies by signature, without checking the password."""

    name = "verdaccio-jwt"
    security = "security: { api: { jwt: { sign: { expiresIn: 1d } } } }"


_VERDACCIO = """
storage: {folder}/storage
web: {{ enable: false }}
auth:
  htpasswd: {{ file: {folder}/htpasswd }}
{security}
uplinks: {uplinks}
packages:
  "**": {{ access: $all, publish: $authenticated, unpublish: $authenticated{proxy} }}
max_body_size: 300mb
middlewares: {{}}
log: {{ type: stdout, format: json, level: fatal }}
"""
