"""The state of a package in a repository of any type: what its documents are made of, and for how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.publish.splicing import Spliced


@frozen(eq=False)
class PackageState:
    """
    A package as a repository shows it now.

    ``key`` is that of the document, ``package`` that of the package; they differ where a package has several documents.

    ``stamp`` differs whenever the documents would. ``serial`` is a number that grows with them, for documents that name
    one; ``modified_s`` is the time of the last change (Unix seconds) if it is known. At ``expires_s`` (Unix seconds; 0
    for never) the resolver is asked again. ``fresh`` is a query that tells whether the state is still the present one.
    What is not ``cacheable`` is not in the catalog yet, or not complete. With ``stale`` an upstream failed when it was
    asked again, so that something newer may be missing. ``load`` gives the parts of a document in one form, with the
    state that they are of, which may be newer.
    """

    repository: Repository
    key: str
    package: str
    stamp: Hashable
    serial: int
    modified_s: int | None
    expires_s: int
    fresh: Callable[[Reader], bool]
    load: Callable[[str], Awaitable[tuple[Spliced, PackageState]]]
    cacheable: bool = True
    stale: bool = False

    def expired(self, now_ms: int) -> bool:
        """Whether the resolver must be asked again."""
        return bool(self.expires_s) and now_ms >= self.expires_s * 1000
