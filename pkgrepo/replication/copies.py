"""What a repository keeps of the one that it follows: versions of packages, or tags and manifests of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pkgrepo.model import Repository

from .source import RemoteVersion


class Copies(Protocol):
    """
    Brings what a proxy keeps of a package to the state of its upstream.

    :raises NotFound: of all methods: the upstream has something else by now; :raises UpstreamFailed: it cannot be had
    :raises RuleRefused: a rule of the repository refuses all of it
    :raises StorageFull, StorageFailed: it cannot be stored
    """

    async def kept(self, repository: Repository, package: str) -> Sequence[str]:
        """The versions of which anything is kept; of an image the tags and the digests of manifests."""

    async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
        """
        Bring a version to the state of the upstream.

        Files that are kept and are other ones there, or gone, are evicted; what the repository wants is fetched, in the
        way in which clients get it. Yanks, deprecations and tags are taken over.
        """

    async def drop(self, repository: Repository, package: str, version: str) -> None:
        """Evict a version that the upstream does not have any more; nothing happens if none is kept."""

    async def renew(self, repository: Repository, package: str) -> None:
        """Ask again for the documents of a package that are kept."""
