"""Gem servers: their addresses, and who may push; a proxy of one, and its upstream."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.clients.load import Post, Target, post_all
from tests.bench.packages.filler import filler
from tests.bench.packages.trees import Node
from tests.support.gems import EMPTY_DATA, make_gemspec, pack_gem

from .proxy import Direct, PkgrepoProxy
from .server import Filled, PkgrepoHosting

PUSHERS = 8


def gem_post(name: str, version: str = "1.0.0", *, needs: Sequence[str] = (), pad: int = 0) -> Post:
    """The push of a gem, which has C{pad} incompressible bytes."""
    spec = make_gemspec(name, version, dependencies={each: [(">=", "1.0")] for each in needs})
    data = pack_gem(spec, data=EMPTY_DATA + b"".join(filler(pad)))
    return Post({"Content-Type": "application/octet-stream"}, [data], len(data))


class PkgrepoGems(PkgrepoHosting):
    """A public repository; pushes come with a token, as C{gem} sends it."""

    name = "pkgrepo-gems"
    repository = "gems"
    format = "ruby"

    @property
    def gems_url(self) -> str:
        """What clients have as source, without a slash at its end."""
        return self.repository_url

    @property
    def target(self) -> Target:
        """Where gems are pushed."""
        return Target(f"{self.repository_url}/api/v1/gems", {"Authorization": self.token})

    def push(self, posts: Sequence[Post], clients: int = PUSHERS) -> list[float]:
        """Push gems; the milliseconds that each took."""
        return post_all(self.target, posts, clients)

    def publish_tree(self, nodes: Sequence[Node]) -> None:
        """Push all versions of a tree."""
        self.push(
            [
                gem_post(node.name, version, needs=node.needs, pad=node.padding if version == node.newest else 0)
                for node in nodes
                for version in node.versions
            ]
        )


class PkgrepoGems1000(Filled, PkgrepoGems):
    """A thousand versions."""

    name = "pkgrepo-gems-1000"
    releases = 1_000


class PkgrepoGems20000(Filled, PkgrepoGems):
    """Twenty thousand."""

    name = "pkgrepo-gems-20000"
    releases = 20_000


class PkgrepoGems200000(Filled, PkgrepoGems):
    """Two hundred thousand, of 20,000 gems."""

    name = "pkgrepo-gems-200000"
    releases = 200_000


class DirectGems(Direct):
    """A gem server."""

    name = "direct-gems"
    kind = "gems"

    @property
    def gems_url(self) -> str:
        """Its root."""
        return self.base_url


class PkgrepoGemsProxy(PkgrepoProxy):
    """Of gems."""

    name = "pkgrepo-gems-proxy"
    direct: type[Direct] = DirectGems
    format = "ruby"

    @property
    def gems_url(self) -> str:
        """The address of the repository."""
        return self.repository_url
