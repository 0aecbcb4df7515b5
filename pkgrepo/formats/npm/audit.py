"""
Audits: what clients say they have installed, held against the known vulnerabilities.

npm 7 and later, yarn 4 and bun ask in bulk, with names and versions. Older npm and pnpm send the whole tree and want to
be told the paths ("quick").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from attrs import Factory, define, frozen

from . import semver
from .advisories import SEVERITIES, Advisory, matching
from .advisory_export import AdvisoryBook
from .strict_json import decode_as

BODY_SIZE: Final = 32 * 1024 * 1024  # bytes of a request, uncompressed
MOST_NODES: Final = 250_000  # of a tree; a large workspace has 10,000
MOST_PATHS: Final = 50  # told of one version; more help nobody


def read_bulk(body: bytes) -> Mapping[str, list[str]]:
    """
    The versions of each package that a client asks about.

    :raises Invalid: the body is not that
    """
    return decode_as(body, dict[str, list[str]])


def bulk_answer(asked: Mapping[str, list[str]], book: AdvisoryBook) -> dict[str, list[dict[str, Any]]]:
    """The advisories on what was asked about, by package; a package without any is left out."""
    answer = {name: [_bulk_entry(each) for each in matching(book.of(name), asked[name])] for name in asked}
    return {name: entries for name, entries in answer.items() if entries}


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

    :raises Invalid: the body is not that
    """
    return Tree(decode_as(body, _Node))


@define
class _Finding:
    """Where one version with a vulnerability is."""

    paths: list[str] = Factory(list)
    dev: bool = True
    optional: bool = True
    bundled: bool = True


def quick_answer(tree: Tree, book: AdvisoryBook) -> dict[str, Any]:
    """The advisories on a tree, with the paths that lead to each; counts of what is in it."""
    found: dict[int, tuple[Advisory, dict[str, _Finding]]] = {}
    counts = {"dependencies": 0, "devDependencies": 0, "optionalDependencies": 0}
    severities = dict.fromkeys(SEVERITIES, 0)
    for name, path, node in _walk(tree.root):
        kind = "devDependencies" if node.dev else "optionalDependencies" if node.optional else "dependencies"
        counts[kind] += 1
        for advisory in matching(book.of(name), [node.version]):
            severities[advisory.severity] += 1
            _, findings = found.setdefault(advisory.number, (advisory, {}))
            _add(findings.setdefault(node.version, _Finding()), path, node)
    return {
        "actions": [],
        "advisories": {str(number): _quick_entry(*each) for number, each in found.items()},
        "muted": [],
        "metadata": {"vulnerabilities": severities, **counts, "totalDependencies": sum(counts.values())},
    }


def _walk(root: _Node) -> Iterator[tuple[str, str, _Node]]:
    """Each package with its path, parents before children."""
    waiting = [(name, name, node) for name, node in root.dependencies.items()]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        name, path, node = waiting.pop()
        yield name, path, node
        waiting += [(child, f"{path}>{child}", each) for child, each in node.dependencies.items()]


def _add(finding: _Finding, path: str, node: _Node) -> None:
    if len(finding.paths) < MOST_PATHS:
        finding.paths.append(path)
    finding.dev &= node.dev
    finding.optional &= node.optional
    finding.bundled &= node.bundled


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
