"""Maven repositories: their addresses, and who may write."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.bench.clients.load import post_all
from tests.bench.packages.modules import Module

from .pkgrepo import PkgrepoHosting
from .server import Contestant, Nginx

FILLERS = 8


class MavenServer(Contestant):
    """A server of files in the Maven layout."""

    @property
    def root(self) -> str:
        """The path of the repository in its URL, without a slash at its end."""
        return urlsplit(self.place("maven")).path

    def deploy(self, modules: Sequence[Module], clients: int = FILLERS) -> list[float]:
        """Deploy modules from several clients, each of them whole; the milliseconds that each request took."""
        shares = [modules[number::clients] for number in range(min(clients, len(modules)))]

        def deploy(share: Sequence[Module]) -> list[float]:
            return post_all(self.target("maven"), [post for module in share for post in module.deploy(self.root)], 1)

        with ThreadPoolExecutor(len(shares)) as pool:
            return [took for times in pool.map(deploy, shares) for took in times]


class PkgrepoMaven(PkgrepoHosting, MavenServer):
    """A public repository; writers send a token, as a build machine does."""

    name = "pkgrepo-maven"
    repository = "java"
    format = "maven"


class PkgrepoPrivateMaven(PkgrepoMaven):
    """A private repository, read without credentials: every answer is a refusal."""

    name = "pkgrepo-maven-401"
    visibility = "private"


class NginxDav(Nginx, MavenServer):
    """The floor: nginx takes files by PUT from everybody, computes no checksum, and waits for no disk."""

    name = "nginx-dav"
    directives = "dav_methods PUT DELETE; create_full_put_path on; client_max_body_size 0;"
