"""
Matches the installed versions of an audit with the known advisories.

npm 7 and later, yarn 4 and bun send a "bulk" request with names and versions. Older npm, pnpm up to 10 and yarn 1 send
a "quick" request with the whole dependency tree, and expect the paths to each affected package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.limits import AUDIT, AuditLimits
from pkgrepo.formats.npm.names import is_readable
from pkgrepo.model.advisories import Advisory, distinct
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

SEVERITIES: Final = ("info", "low", "moderate", "high", "critical")  # that clients know
UNSAID: Final = "moderate"  # what they are told for a severity that nothing says
UNFIXED: Final = "<0.0.0"  # the range of fixed versions when there are none, in npm's syntax

Index = Mapping[str, Sequence[Advisory]]  # advisories by package


def read_bulk(body: bytes, limits: AuditLimits = AUDIT) -> Mapping[str, list[str]]:
    """
    The versions of each package in a bulk request.

    :raises Invalid: the body is malformed or too large
    """
    check_value_count(body, limits.values, "the body")
    return decode_as(body, dict[str, list[str]])


def bulk_response(
    asked: Mapping[str, list[str]], index: Index, limits: AuditLimits = AUDIT
) -> dict[str, list[dict[str, Any]]]:
    """
    The advisories by package; packages without any are left out.

    :raises Invalid: a limit of work is exceeded
    """
    work = _WorkLimit(limits)
    response: dict[str, list[dict[str, Any]]] = {}
    for name, versions in asked.items():
        entries = [_bulk_entry(each) for each in work.affecting(index.get(name, ()), list(dict.fromkeys(versions)))]
        if entries:
            response[name] = entries
    return response


def affecting(found: Sequence[Advisory], versions: Sequence[str]) -> Sequence[Advisory]:
    """The advisories that affect any of these versions of their package; texts that are no versions are ignored."""
    sorts = [version.sort for version in map(semver.find_version, versions) if version is not None]
    return distinct(each for each in found if each.affects_any(sorts))


def number_of(id: str) -> int:
    """The number of an advisory with this id, for clients that need one."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:6], "big")


def patched_versions(advisory: Advisory) -> str:
    """The fixed versions as a range in npm's syntax; ``UNFIXED`` when there is no fix."""
    fixed = advisory.fixed_versions
    return UNFIXED if not fixed or advisory.has_open_end else f">={max(fixed, key=_order)}"


class _WorkLimit:
    """Counts the work of one audit against its limits."""

    def __init__(self, limits: AuditLimits) -> None:
        self._limits = limits
        self._compared = 0
        self._answered: set[str] = set()

    def affecting(self, advisories: Sequence[Advisory], versions: Sequence[str]) -> Sequence[Advisory]:
        """The advisories that affect one of the versions. :raises Invalid: a limit is exceeded"""
        self._compared += len(advisories) * len(versions)
        if self._compared > self._limits.compared:
            raise Invalid(f"an audit may have {self._limits.compared} versions held against advisories at most")
        found = affecting(advisories, versions) if advisories else ()
        self._answered.update(each.id for each in found)
        if len(self._answered) > self._limits.advisories:
            raise Invalid(f"an audit may be told {self._limits.advisories} advisories at most; ask in parts")
        return found


class Node(msgspec.Struct, frozen=True):
    """A package in the dependency tree of a quick request; the root is the project, which ``requires`` some of them."""

    version: str = ""
    requires: Any = None
    dev: bool = False
    optional: bool = False
    bundled: bool = False
    dependencies: dict[str, Node] = {}


def read_tree(body: bytes, limits: AuditLimits = AUDIT) -> Node:
    """
    The dependency tree in a quick request.

    :raises Invalid: the body is malformed or too large
    """
    check_value_count(body, limits.values, "the body")
    return decode_as(body, Node)


@frozen
class _Place:
    """The place of a package in the tree; ``length`` is that of its path in characters."""

    name: str
    above: _Place | None = None
    length: int = 0

    @classmethod
    def of(cls, name: str, above: _Place | None) -> _Place:
        """The place of a package below another one, or at the top when ``above`` is None."""
        return cls(name, above, len(name) if above is None else above.length + 1 + len(name))

    def path(self) -> str:
        """The path from the top, as clients write it: names with ``>`` between them."""
        names: list[str] = []
        place: _Place | None = self
        while place is not None:
            names.append(place.name)
            place = place.above
        return ">".join(reversed(names))


@define
class _Finding:
    """The places of one affected version."""

    paths: list[str] = Factory(list)
    dev: bool = True
    optional: bool = True
    bundled: bool = True


def versions_in(tree: Node) -> dict[str, list[str]]:
    """
    The versions of each package in a tree, as a bulk request has them.

    Workspaces, aliases and packages that come from elsewhere have no name or version that a registry knows. From a tree
    without dependencies come the names of what the project requires, without versions.

    :raises Invalid: a limit of work is exceeded
    """
    found: dict[str, dict[str, None]] = {}
    for place, node in _walk(tree, AUDIT.nodes):
        if is_readable(place.name) and semver.find_version(node.version) is not None:
            found.setdefault(place.name, {})[node.version] = None
    if not tree.dependencies and isinstance(tree.requires, dict):
        found.update((name, {}) for name in tree.requires if is_readable(name))
    return {name: list(versions) for name, versions in found.items()}


def quick_response(tree: Node, index: Index, limits: AuditLimits = AUDIT) -> dict[str, Any]:
    """
    The advisories on a tree with the paths to the affected packages, and counts of the tree's packages.

    :raises Invalid: a limit of work is exceeded
    """
    work, room = _WorkLimit(limits), limits.paths_size
    found: dict[int, tuple[Advisory, dict[str, _Finding]]] = {}
    counts = {"dependencies": 0, "devDependencies": 0, "optionalDependencies": 0}
    severities = dict.fromkeys(SEVERITIES, 0)
    for place, node in _walk(tree, limits.nodes):
        kind = "devDependencies" if node.dev else "optionalDependencies" if node.optional else "dependencies"
        counts[kind] += 1
        for advisory in work.affecting(index.get(place.name, ()), [node.version]):
            severities[_severity(advisory)] += 1
            _, findings = found.setdefault(_number(advisory), (advisory, {}))
            room -= _add(findings.setdefault(node.version, _Finding()), place, node, limits.paths, room)
    return {
        "actions": [_action(*each) for each in found.values()],
        "advisories": {str(number): _quick_entry(*each) for number, each in found.items()},
        "muted": [],
        "metadata": {"vulnerabilities": severities, **counts, "totalDependencies": sum(counts.values())},
    }


def _action(advisory: Advisory, findings: Mapping[str, _Finding]) -> dict[str, Any]:
    """What yarn 1 and npm 6 list: a line for each path to an affected package."""
    resolves = [
        {"id": _number(advisory), "path": path, "dev": each.dev, "optional": each.optional, "bundled": each.bundled}
        for each in findings.values()
        for path in each.paths
    ]
    return {"action": "review", "module": advisory.package, "resolves": resolves}


def _walk(root: Node, most: int) -> Iterator[tuple[_Place, Node]]:
    """Each package with its place; parents come before children."""
    waiting: list[tuple[_Place | None, Node]] = [(None, root)]
    known = 0
    while waiting:
        place, node = waiting.pop()
        if place is not None:
            yield place, node
        known += len(node.dependencies)
        if known > most:
            raise Invalid(f"the tree has more than {most} packages")
        waiting += [(_Place.of(name, place), each) for name, each in node.dependencies.items()]


def _add(finding: _Finding, place: _Place, node: Node, most: int, room: int) -> int:
    """Add a place to a finding, with its path if there are few and there is room. Returns the characters of that."""
    finding.dev &= node.dev
    finding.optional &= node.optional
    finding.bundled &= node.bundled
    if len(finding.paths) >= most or place.length > room:
        return 0
    finding.paths.append(place.path())
    return place.length


def _bulk_entry(advisory: Advisory) -> dict[str, Any]:
    return {
        "id": _number(advisory),
        "url": advisory.url,
        "title": advisory.title,
        "severity": _severity(advisory),
        "vulnerable_versions": advisory.affected,
        "cwe": list(advisory.cwe),
        "cvss": {"score": advisory.score, "vectorString": advisory.vector or None},
    }


def _quick_entry(advisory: Advisory, findings: Mapping[str, _Finding]) -> dict[str, Any]:
    patched = patched_versions(advisory)
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
        "recommendation": "None" if patched == UNFIXED else f"Upgrade to version {patched[2:]} or later",
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


def _severity(advisory: Advisory) -> str:
    return advisory.severity if advisory.severity in SEVERITIES else UNSAID


def _number(advisory: Advisory) -> int:
    return advisory.number or number_of(advisory.id)
