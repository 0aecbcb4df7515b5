"""
The versions of a package in their order, so that a file can be compared with one of a version before: pure.

The versions before one are tried in this order; of each the file is taken whose name is most like that of the other:

1. stable versions of the same major version, the newest first
2. all other stable versions that are lower
3. prereleases that are lower; those of a prerelease are stable for that
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.attestations import Claim
from pkgrepo.repositories.format import VersionKinds

from .conditions import Facts

_MAJOR: Final = re.compile(r"[vV]?(?:\d+!)?(\d+)")
_PARTS: Final = re.compile(r"[-_.]")

Find = Callable[[str], Awaitable[Any]]  # a file by its path, as it can be read; None if there is none


@frozen(eq=False)
class Peer:
    """
    A file of a version: what is known of it without its bytes, and its names in L{FileFacts}.

    ``claim`` is what is claimed of who published it, if rules ask for that.
    """

    path: str
    facts: Facts
    names: Sequence[str]
    claim: Claim | None = None

    @property
    def version(self) -> str:
        """The text of its version."""
        return self.facts.versions[0]


@frozen
class _Step:
    sort: bytes
    version: str
    major: str
    prerelease: bool
    peers: Sequence[Peer]


class Line:
    """
    The files of all versions of a package; those whose versions cannot be ordered are left out.

    It is ``whole`` unless there may be further versions. ``find`` finds one of the files.
    """

    def __init__(self, peers: Iterable[Peer], kinds: VersionKinds, *, whole: bool = True, find: Find | None = None):
        by_version: dict[str, list[Peer]] = {}
        for each in peers:
            by_version.setdefault(each.version, []).append(each)
        self._kinds = kinds
        self._steps: list[_Step] = []
        for version, found in by_version.items():
            with suppress(Invalid):
                sort = kinds.sort(version)
                self._steps.append(_Step(sort, version, _major(version), kinds.prerelease(version), found))
        self._steps.sort(key=lambda each: each.sort)
        self.whole = whole
        self.find = find

    def before(self, version: str, path: str) -> Iterator[Peer]:
        """
        The files to compare with one of a version, the best first: one of each version before it.

        :raises Invalid: the version cannot be ordered
        """
        count = bisect_left(self._steps, self._kinds.sort(version), key=lambda each: each.sort)
        major, prerelease = _major(version), self._kinds.prerelease(version)
        for same, early in ((True, False), (False, False), (True, True), (False, True)):
            for step in reversed(self._steps[:count]):
                if (step.major == major) == same and (step.prerelease and not prerelease) == early:
                    yield _most_alike(step, version, path)


def _major(version: str) -> str:
    found = _MAJOR.match(version)
    return "" if found is None else found[1].lstrip("0")


def _most_alike(step: _Step, version: str, path: str) -> Peer:
    wanted, parts = _neutral(path, version)

    def likeness(peer: Peer) -> tuple[bool, bool, int, str]:
        name, its = _neutral(peer.path, step.version)
        alike = name.rpartition(".")[2] == wanted.rpartition(".")[2]
        return name == wanted, alike, 2 * len(its & parts) - len(its), peer.path

    return step.peers[0] if len(step.peers) == 1 else max(step.peers, key=likeness)


def _neutral(path: str, version: str) -> tuple[str, set[str]]:
    """The name of a file without its version, and the parts of that."""
    name = path.rpartition("/")[2].replace(version, "*")
    return name, {*_PARTS.split(name)}
