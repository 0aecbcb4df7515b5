"""
Nora, a registry of many formats, built from its crate: hosting, and in front of an upstream.

It runs without authentication, rate limits and logs, which is its fastest configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.clients.load import Target

from .container import OpenRegistry
from .maven import MavenServer
from .npm import NodeRegistry
from .proxy import UPSTREAMS, Proxy
from .python import PythonIndex
from .server import LOOPBACK, Contestant, built, built_version, variant


class NoraServer(Contestant):
    """Its process; everything it stores is in files below the folder."""

    places = {"npm": "/npm", "maven": "/maven2", "cargo": "/cargo", "raw": "/raw"}

    def command(self) -> Sequence[str]:
        program = built("rust", "nora")
        self.version = built_version("rust", "nora")
        return [program, "serve"]

    def environment(self) -> Mapping[str, str]:
        return {
            "NORA_HOST": LOOPBACK,
            "NORA_PORT": str(self.port),
            "NORA_PUBLIC_URL": self.base_url,
            "NORA_STORAGE_MODE": "local",
            "NORA_STORAGE_PATH": str(self.folder / "storage"),
            "NORA_REGISTRIES_ENABLE": "cargo,docker,maven,npm,pypi,raw",
            "NORA_AUTH_ENABLED": "false",
            "NORA_RATE_LIMIT_ENABLED": "false",
            "NORA_AUDIT_LOG": "off",
            "NORA_BODY_LIMIT_MB": "4096",
            "NORA_NPM_PROXY": "",
            "NORA_PYPI_PROXY": "",
            "NORA_DOCKER_PROXIES": "",
            "NORA_MAVEN_PROXIES": "",
            "NORA_CARGO_PROXY": "",
            "RUST_LOG": "error",
        }


class Nora(NoraServer, OpenRegistry, NodeRegistry, PythonIndex, MavenServer):
    """Hosting packages of six formats; Go modules it takes of upstreams alone."""

    name = "nora"
    fillers = 1  # of several versions of one npm package at once it loses some

    def target(self, kind: str) -> Target:
        return Target(f"{self.base_url}/simple/") if kind == "python" else super().target(kind)


class NoraProxy(Proxy, NoraServer):
    """Nora with one upstream, whose address ``variable`` takes with ``url_end`` appended."""

    variable = ""
    url_end = ""

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), self.variable: f"{self.upstream.base_url}{self.url_end}"}


for _name, _kind, _variable, _url_end in (
    ("npm", "npm", "NORA_NPM_PROXY", ""),
    ("python", "python", "NORA_PYPI_PROXY", "/simple/"),
    ("maven", "maven", "NORA_MAVEN_PROXIES", ""),
    ("maven-silent", "maven-silent", "NORA_MAVEN_PROXIES", ""),
    ("image", "images", "NORA_DOCKER_PROXIES", ""),
    ("line", "images-line", "NORA_DOCKER_PROXIES", ""),
):
    variant(f"nora-{_name}-proxy", NoraProxy, direct=UPSTREAMS[_kind], variable=_variable, url_end=_url_end)
