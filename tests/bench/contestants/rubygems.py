"""Gem servers: their addresses, and who may push."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.clients.load import Post, Target, post_all
from tests.bench.packages.filler import filler
from tests.bench.packages.trees import Node
from tests.support.gems import EMPTY_DATA, make_gemspec, pack_gem

from .server import Filled, PkgrepoHosting, variant

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


LITTLE, MIDDLE, BIG = (
    variant(f"pkgrepo-gems-{count}", Filled, PkgrepoGems, releases=count).name for count in (1_000, 20_000, 200_000)
)  # versions, ten of each gem
