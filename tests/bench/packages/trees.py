"""Dependency trees of synthetic packages: what an install through a proxy needs."""

from __future__ import annotations

from attrs import frozen

CHILDREN = 3


@frozen
class Node:
    """
    A package of a tree.

    ``versions`` are its versions, oldest first; only the newest one is installed. ``padding`` is the size in bytes of
    an incompressible file in that version, ``needs`` are names of other packages.
    """

    name: str
    versions: tuple[str, ...]
    padding: int
    needs: tuple[str, ...]

    @property
    def newest(self) -> str:
        """The version that is installed."""
        return self.versions[-1]


def tree(prefix: str, count: int) -> list[Node]:
    """
    Return so many packages, of which the first needs all others; each needs three others at most.

    Every fifth package has 40 versions, as those that are old or released often have, the others 4.
    """
    nodes = []
    for number in range(count):
        children = range(CHILDREN * number + 1, min(CHILDREN * number + 1 + CHILDREN, count))
        versions = 40 if number % 5 == 0 else 4
        nodes.append(
            Node(
                name=f"{prefix}-{number}",
                versions=tuple(f"1.{minor}.0" for minor in range(versions)),
                padding=2000 * (1 + number * number % 37),
                needs=tuple(f"{prefix}-{child}" for child in children),
            )
        )
    return nodes


NODE_TREE = tree("bench-node", 300)
PYTHON_TREE = tree("bench-wheel", 60)
GEM_TREE = tree("bench-gem", 60)
JAVA_TREE = tree("bench-artifact", 250)  # in the version 1.39.0 or 1.3.0; each with a POM and a jar
