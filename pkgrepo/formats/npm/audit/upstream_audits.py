"""
What upstreams are told of an audit, and what is taken from their answers.

They are told neither names of packages that are our own nor that of the project. npm, pnpm and yarn send more than an
upstream needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Any, Final

import msgspec

from pkgrepo.formats.npm.limits import AUDIT_VALUES
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.uncached import UncachedQuestion
from pkgrepo.untrusted.json_errors import ERRORS
from pkgrepo.untrusted.json_limits import check_value_count
from pkgrepo.untrusted.strict_json import decode_as

LIMITS: Final = ReadLimits(max_bytes=16 * 1024 * 1024, total_s=30.0)  # clients wait 60 s and longer
BULK: Final = "-/npm/v1/security/advisories/bulk"
QUICK: Final = "-/npm/v1/security/audits/quick"

# What is left of a package in a tree, beside its dependencies.
_KEPT: Final = ("version", "integrity", "dev", "optional", "bundled")

Tree = Mapping[str, Any]


def bulk_question(asked: Mapping[str, list[str]], private: Set[str]) -> UncachedQuestion:
    """The question about the versions of each package that is not private."""
    told = {name: versions for name, versions in asked.items() if name not in private}
    return UncachedQuestion("audit", BULK, LIMITS, body=msgspec.json.encode(told))


def read_bulk_answer(body: bytes, asked: Collection[str], private: Set[str]) -> dict[str, msgspec.Raw]:
    """The advisories by package, of those that were asked about; none from an answer that cannot be read."""
    found = _read(body)
    return {name: each for name, each in found.items() if name in asked and name not in private}


def read_whole_tree(body: bytes) -> Tree:
    """The document of a quick request. :raises Invalid: it is malformed or too large"""
    check_value_count(body, AUDIT_VALUES, "the body")
    return decode_as(body, dict[str, Any])


def names_in(tree: Tree) -> set[str]:
    """The names of all packages in a tree."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for name, each in {**_object(node, "dependencies")}.items():
            found.add(name)
            if isinstance(each, dict):
                waiting.append(each)
        found.update(_object(node, "requires"))
    return found


def quick_question(tree: Tree, private: Set[str]) -> UncachedQuestion:
    """The question about a tree without the private packages and what only they depend on."""
    told = {"name": "project", "version": "0.0.0", "install": [], "remove": [], "metadata": {}, **_told(tree, private)}
    return UncachedQuestion("audit", QUICK, LIMITS, body=msgspec.json.encode(told))


def read_quick_answer(body: bytes) -> dict[str, msgspec.Raw] | None:
    """The answer about a tree; None if it cannot be read."""
    found = _read(body)
    return found if {"advisories", "metadata"} <= found.keys() else None


def _told(node: Tree, private: Set[str]) -> dict[str, Any]:
    dependencies = {
        name: {**{key: each[key] for key in _KEPT if key in each}, **_told(each, private)}
        for name, each in _object(node, "dependencies").items()
        if name not in private and isinstance(each, dict)
    }
    requires = {name: each for name, each in _object(node, "requires").items() if name not in private}
    return {"requires": requires, "dependencies": dependencies}


def _object(node: Tree, key: str) -> Mapping[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _read(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        body.decode()
        found: dict[str, msgspec.Raw] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except ERRORS:
        return {}
    return found
