"""Questions to upstreams, and their answers as this process holds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from attrs import frozen

from pkgrepo.storage.catalog.packages.upstream_documents import UpstreamDocument


@frozen
class DocumentRequest:
    """
    One question to upstreams.

    ``key`` names it in the repository, ``package_key`` is the package that it is about, ``name`` is the package's name
    for error messages. ``urls`` gives the URLs to ask, in order, for the URL of a route; the next one is asked if one
    does not exist. ``normaliser`` is the ``module:function`` that makes parts of the answer, which is asked for as
    ``accept``.
    """

    key: str
    package_key: str
    name: str
    urls: Callable[[str], Sequence[str]]
    accept: str
    normaliser: str


class UnstoredParts:
    """A parts file that is staged and not stored yet, by a descriptor that ``close`` closes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def duplicate(self) -> int | None:
        """A new descriptor, which the caller closes; None after ``close``."""
        return None if self._descriptor is None else os.dup(self._descriptor)

    def close(self) -> None:
        """Close the descriptor: the parts are stored, or given up."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@frozen
class Held:
    """
    An answer as it is served: its row, and its parts while they are not stored.

    ``stale`` says that an upstream failed when it was asked again. What is not ``stored`` is not cached by its row.
    """

    document: UpstreamDocument
    unstored: UnstoredParts | None = None
    stored: bool = True
    stale: bool = False
