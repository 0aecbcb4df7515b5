"""What is judged: what documents of upstreams list, and what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from attrs import define, evolve, frozen

from pkgrepo.model import File, Version

from .conditions import Facts
from .facts import digests_of


class ListedFile(Protocol):
    """A file in a document of an upstream."""

    @property
    def path(self) -> str:
        """Its public path in the repository."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Digests (hex) by algorithm."""


class Listed(Protocol):
    """A version, or a file, in a document of an upstream."""

    @property
    def version(self) -> str:
        """The text of the version."""

    @property
    def published_ms(self) -> int | None:
        """When it was published, or first seen."""

    @property
    def first_seen(self) -> bool:
        """Whether it was first seen then, and nothing says when it was published."""

    @property
    def files(self) -> Sequence[ListedFile]:
        """Its files."""

    @property
    def fragments(self) -> Mapping[str, bytes]:
        """What is shown of it, by kind."""


@frozen
class Declares:
    """
    The kinds of fragments that have the metadata of a version, and how these are read of those that an entry has.

    ``read`` raises ``Invalid`` if they cannot be read.
    """

    kinds: tuple[str, ...]
    read: Callable[[Mapping[str, bytes]], Mapping[str, Any]]


@define(eq=False, slots=False)
class Stored:
    """
    What is known of a version that is stored: of each of its files, and of those ``beside`` them, which go with them.

    ``whole`` makes what is known of all of it, by which it is judged if it has no files.
    """

    version: Version
    files: Sequence[tuple[File, Facts]]
    beside: Sequence[File]
    whole: Callable[[], Facts]

    @cached_property
    def facts(self) -> Facts:
        """What is known of the whole version."""
        return self.whole()

    def by_digest(self) -> dict[str, Facts]:
        """What is known of each file, by its sha256."""
        by_path = {file.path: facts for file, facts in self.files}
        found = {file.sha256: facts for file, facts in self.files}
        for each in self.beside:
            facts = by_path.get(each.path.removesuffix(each.role or ""))
            if facts is not None:
                found[each.sha256] = evolve(facts, digests=facts.digests | digests_of(each.digests, each.sha256))
        return found


def main_files(entry: Listed) -> Sequence[ListedFile]:
    """The files of an entry without those that are beside others."""
    return [each for each in entry.files if not each.path.endswith((".metadata", ".asc", ".provenance"))]
