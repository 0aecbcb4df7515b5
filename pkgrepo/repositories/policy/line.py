"""
The versions of a package in their order, so that a file can be compared with one of a version before: pure.

The versions before one are tried in this order; of each the file is taken whose name is most like that of the other:

1. stable versions of the same major version, the newest first
2. all other stable versions that are lower
3. prereleases that are lower; those of a prerelease are stable for that
4. higher versions, the lowest first: the tag ``latest`` may name any version

Each was published earlier. If there is none of these, those that are kept and not listed any more are tried in the same
order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from math import inf
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

    It is ``whole`` unless there may be further versions. ``find`` finds one of the files. The files in ``removed`` are
    kept, and not listed any more.
    """

    def __init__(
        self,
        peers: Iterable[Peer],
        kinds: VersionKinds,
        *,
        removed: Iterable[Peer] = (),
        whole: bool = True,
        find: Find | None = None,
    ) -> None:
        self._kinds = kinds
        self._steps = [_steps(each, kinds) for each in (peers, removed)]
        self.whole = whole
        self.find = find

    def before(self, version: str, path: str, published_ms: int | None = None) -> Iterator[Peer]:
        """
        The files to compare with one of a version, the best first: one of each version before it.

        They were published earlier; of two of the same time, or of unknown ones, the lower version is earlier. So no
        file is, over others, before itself.

        :raises Invalid: the version cannot be ordered
        """
        sort = self._kinds.sort(version)
        time = self._time(published_ms), sort
        major, prerelease = _major(version), self._kinds.prerelease(version)
        for steps in self._steps:
            count = bisect_left(steps, sort, key=lambda each: each.sort)
            lower = (
                steps[place]
                for same, early in ((True, False), (False, False), (True, True), (False, True))
                for place in range(count - 1, -1, -1)
                if (steps[place].major == major) == same and (steps[place].prerelease and not prerelease) == early
            )
            for step in chain(lower, islice(steps, count, None)):
                earlier = [each for each in step.peers if (self._time(each.facts.published_ms), step.sort) < time]
                if earlier and step.version != version:
                    yield _most_alike(earlier, version, path)

    def has_before(self, version: str, path: str, published_ms: int | None) -> bool:
        """
        Whether there may be a file before one of a version.

        :raises Invalid: the version cannot be ordered
        """
        return not self.whole or next(self.before(version, path, published_ms), None) is not None

    def _time(self, published_ms: int | None) -> float:
        """When something was published (ms); what is not known, or not certain, is the latest."""
        return inf if published_ms is None or self._kinds.self_dated else published_ms


def _steps(peers: Iterable[Peer], kinds: VersionKinds) -> list[_Step]:
    """The versions of files that can be ordered, in their order."""
    by_version: dict[str, list[Peer]] = {}
    for each in peers:
        by_version.setdefault(each.version, []).append(each)
    steps = []
    for version, found in by_version.items():
        with suppress(Invalid):
            steps.append(_Step(kinds.sort(version), version, _major(version), kinds.prerelease(version), found))
    return sorted(steps, key=lambda each: each.sort)


def _major(version: str) -> str:
    found = _MAJOR.match(version)
    return "" if found is None else found[1].lstrip("0")


def _most_alike(peers: Sequence[Peer], version: str, path: str) -> Peer:
    wanted, parts = _neutral(path, version)

    def likeness(peer: Peer) -> tuple[bool, bool, int, str]:
        name, its = _neutral(peer.path, peer.version)
        alike = name.rpartition(".")[2] == wanted.rpartition(".")[2]
        return name == wanted, alike, 2 * len(its & parts) - len(its), peer.path

    return peers[0] if len(peers) == 1 else max(peers, key=likeness)


def _neutral(path: str, version: str) -> tuple[str, set[str]]:
    """The name of a file without its version, and the parts of that."""
    name = path.rpartition("/")[2].replace(version, "*")
    return name, {*_PARTS.split(name)}
