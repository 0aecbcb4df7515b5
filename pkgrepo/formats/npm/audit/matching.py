"""
Audits: what clients say they have installed, held against the known vulnerabilities.

npm 7 and later, yarn 4 and bun ask in bulk, with names and versions. Older npm and pnpm send the whole tree and want to
be told the paths ("quick").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.limits import AUDIT_VALUES, MOST_ADVISORIES, MOST_COMPARED, MOST_NODES, MOST_PATHS, PATHS_SIZE
from pkgrepo.untrusted.json_limits import check_values
from pkgrepo.untrusted.strict_json import decode_as

from .advisories import SEVERITIES, Advisory, matching
from .export import AdvisoryIndex


def read_bulk(body: bytes) -> Mapping[str, list[str]]:
    """
    The versions of each package that a client asks about.

    :raises Invalid: the body is not that, or too much of it
    """
    check_values(body, AUDIT_VALUES, "the body")
    return decode_as(body, dict[str, list[str]])


def bulk_answer(asked: Mapping[str, list[str]], book: AdvisoryIndex) -> dict[str, list[dict[str, Any]]]:
    """
    The advisories on what was asked about, by package; a package without any is left out.

    :raises Invalid: answering would take too much work
    """
    work = _Work()
    answer: dict[str, list[dict[str, Any]]] = {}
    for name, versions in asked.items():
        entries = [_bulk_entry(each) for each in work.hits(book.of(name), list(dict.fromkeys(versions)))]
        if entries:
            answer[name] = entries
    return answer


class _Work:
    """What one audit has cost so far."""

    def __init__(self) -> None:
        self._compared = 0
        self._told: set[str] = set()

    def hits(self, advisories: Sequence[Advisory], versions: Sequence[str]) -> list[Advisory]:
        """The advisories that affect one of the versions. :raises Invalid: a budget is used up"""
        self._compared += len(advisories) * len(versions)
        if self._compared > MOST_COMPARED:
            raise Invalid(f"an audit may have {MOST_COMPARED} versions held against advisories at most")
        found = matching(advisories, versions) if advisories else []
        self._told.update(each.id for each in found)
        if len(self._told) > MOST_ADVISORIES:
            raise Invalid(f"an audit may be told {MOST_ADVISORIES} advisories at most; ask in parts")
        return found


class _Node(msgspec.Struct, frozen=True):
    version: str = ""
    dev: bool = False
    optional: bool = False
    bundled: bool = False
    dependencies: dict[str, _Node] = {}


@frozen
class Tree:
    """What a client has installed, one package below another."""

    root: _Node


def read_tree(body: bytes) -> Tree:
    """
    The tree that a client asks about.

    :raises Invalid: the body is not that, or too much of it
    """
    check_values(body, AUDIT_VALUES, "the body")
    return Tree(decode_as(body, _Node))


@frozen
class _Place:
    """Where a package is in a tree: its name, what it is below, and how long the names on the way are together."""

    name: str
    above: _Place | None = None
    length: int = 0

    @classmethod
    def of(cls, name: str, above: _Place | None) -> _Place:
        """The place of a package below another, or at the top."""
        return cls(name, above, len(name) if above is None else above.length + 1 + len(name))

    def path(self) -> str:
        """The names on the way, as clients write them."""
        names: list[str] = []
        place: _Place | None = self
        while place is not None:
            names.append(place.name)
            place = place.above
        return ">".join(reversed(names))


@define
class _Finding:
    """Where one version with a vulnerability is."""

    paths: list[str] = Factory(list)
    dev: bool = True
    optional: bool = True
    bundled: bool = True


def quick_answer(tree: Tree, book: AdvisoryIndex) -> dict[str, Any]:
    """
    The advisories on a tree, with the paths that lead to each; counts of what is in it.

    :raises Invalid: answering would take too much work
    """
    work, room = _Work(), PATHS_SIZE
    found: dict[int, tuple[Advisory, dict[str, _Finding]]] = {}
    counts = {"dependencies": 0, "devDependencies": 0, "optionalDependencies": 0}
    severities = dict.fromkeys(SEVERITIES, 0)
    for place, node in _walk(tree.root):
        kind = "devDependencies" if node.dev else "optionalDependencies" if node.optional else "dependencies"
        counts[kind] += 1
        for advisory in work.hits(book.of(place.name), [node.version]):
            severities[advisory.severity] += 1
            _, findings = found.setdefault(advisory.number, (advisory, {}))
            room -= _add(findings.setdefault(node.version, _Finding()), place, node, room)
    return {
        "actions": [],
        "advisories": {str(number): _quick_entry(*each) for number, each in found.items()},
        "muted": [],
        "metadata": {"vulnerabilities": severities, **counts, "totalDependencies": sum(counts.values())},
    }


def _walk(root: _Node) -> Iterator[tuple[_Place, _Node]]:
    """Each package with its place, parents before children."""
    waiting: list[tuple[_Place | None, _Node]] = [(None, root)]
    known = 0
    while waiting:
        place, node = waiting.pop()
        if place is not None:
            yield place, node
        known += len(node.dependencies)
        if known > MOST_NODES:
            raise Invalid(f"the tree has more than {MOST_NODES} packages")
        waiting += [(_Place.of(name, place), each) for name, each in node.dependencies.items()]


def _add(finding: _Finding, place: _Place, node: _Node, room: int) -> int:
    """Tell of one more place, with its path while there is room for it; how much of that it took."""
    finding.dev &= node.dev
    finding.optional &= node.optional
    finding.bundled &= node.bundled
    if len(finding.paths) >= MOST_PATHS or place.length > room:
        return 0
    finding.paths.append(place.path())
    return place.length


def _bulk_entry(advisory: Advisory) -> dict[str, Any]:
    return {
        "id": advisory.number,
        "url": advisory.url,
        "title": advisory.title,
        "severity": advisory.severity,
        "vulnerable_versions": advisory.vulnerable_versions,
        "cwe": list(advisory.cwe),
        "cvss": {"score": advisory.score, "vectorString": advisory.vector or None},
    }


def _quick_entry(advisory: Advisory, findings: Mapping[str, _Finding]) -> dict[str, Any]:
    patched = advisory.patched_versions
    return {
        **_bulk_entry(advisory),
        "module_name": advisory.package,
        "findings": [
            {
                "version": version,
                "paths": finding.paths,
                "dev": finding.dev,
                "optional": finding.optional,
                "bundled": finding.bundled,
            }
            for version, finding in sorted(findings.items(), key=lambda each: _order(each[0]))
        ],
        "patched_versions": patched,
        "recommendation": "None" if patched == "<0.0.0" else f"Upgrade to version {patched[2:]} or later",
        "overview": advisory.overview,
        "references": advisory.url,
        "access": "public",
        "cves": [each for each in advisory.aliases if each.startswith("CVE-")],
        "github_advisory_id": next(
            (each for each in (advisory.id, *advisory.aliases) if each.startswith("GHSA-")), None
        ),
        "created": advisory.published,
        "updated": advisory.modified,
        "deleted": None,
        "found_by": None,
        "reported_by": None,
    }


def _order(version: str) -> bytes:
    found = semver.find_version(version)
    return b"" if found is None else found.sort
