"""
What packages need: the dependencies that versions declare, and for each package those of its highest live version.

The table says which packages of the server need one of some name. A row has the name as it is written, and its
``spelling``, which many names share: the caller compares the names by the rule of the format. It is written soon after
a package has changed, together with the text about it (see L{pkgrepo.storage.catalog.descriptions}).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.facts import Described
from pkgrepo.storage.catalog.rows import batches, every, number, placeholders

# Fields with dependencies by name, and what they are for.
_KINDS: Final = {"dependencies": "runtime", "peerDependencies": "peer", "optionalDependencies": "optional"}
_NAME: Final = re.compile(r"@?[\w./-]*\w(?::[\w.-]*\w)?")  # at the start; Maven has group:artifact:version
_LIMITED: Final = re.compile(r"\(([a-z, ]+)\)$")  # the scope in Maven, and whether it is optional
_SEPARATORS: Final = re.compile("[-_.]+")
MOST: Final = 500  # of a version
LONGEST: Final = 200  # characters of a name, and of what is wanted, in the table


@frozen
class Dependency:
    """
    A package that a version needs: its name, the dependency as it is written, and why it is needed.

    ``kind`` is runtime, peer, optional, test or provided. The name is empty if it cannot be told from the text.
    """

    name: str
    text: str
    kind: str


@frozen
class Dependent:
    """A package that needs another one. ``latest`` is the version of which that is known, its highest live one."""

    repository_id: int
    key: str
    package: str
    latest: str
    needed: Dependency


DEPENDENT_ORDER: Final[Order[Dependent]] = both_ways(
    {
        "name": [
            ("p.key", str, lambda each: each.key),
            ("p.repository_id", int, lambda each: each.repository_id),
            ("d.name", str, lambda each: each.needed.name),
            ("d.kind", str, lambda each: each.needed.kind),
        ]
    }
)["name"]


def read_dependencies(meta: Mapping[str, Any]) -> list[Dependency]:
    """The dependencies in the metadata of a version, at most ``MOST``."""
    found: list[Dependency] = []
    for key, kind in _KINDS.items():
        by_name = meta.get(key)
        if isinstance(by_name, dict):
            found += [Dependency(str(name), f"{name} {wanted}", kind) for name, wanted in by_name.items()]
    if not found:
        needed = meta.get("requires_dist")
        for each in needed if isinstance(needed, Sequence) and not isinstance(needed, str) else ():
            text = str(each)
            name = _NAME.match(text)
            found.append(Dependency(name[0] if name else "", text, _kind(text)))
    return found[:MOST]


def _kind(text: str) -> str:
    limits = _LIMITED.search(text)
    words = limits[1].split(", ") if limits else ()
    if "extra ==" in text or "optional" in words:
        return "optional"
    return next((each for each in ("test", "provided") if each in words), "runtime")


def spelling_of(name: str) -> str:
    """What all names have in common that any format takes for the same."""
    return _SEPARATORS.sub("-", name.lower())[:LONGEST]


_known_spelling: Final = lru_cache(4096)(spelling_of)  # of names of LONGEST characters at most


# Rows of the table: what is wanted, by the name and the kind.
Needs = Mapping[tuple[str, str], str]


def needs_of(meta: Mapping[str, Any]) -> Needs:
    """What the metadata of a version need, as it is stored."""
    return dict(_rows(meta))


def put_dependencies(tx: Transaction, package_id: int, rows: Needs) -> None:
    """Bring the rows of a package up to date with the needs of its highest live version, empty without one."""
    stored = _stored(tx, package_id)
    if rows == stored:
        return
    if stored:
        tx.send("DELETE FROM dependency WHERE package_id = ?", (package_id,))
    for some in batches(list(rows.items())):
        values: list[Value] = []
        for (name, kind), wanted in some:
            values += (package_id, name, kind, _known_spelling(name), wanted)
        tx.send(
            f"""
            INSERT INTO dependency (package_id, name, kind, spelling, wanted)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?)")}
            """,
            values,
        )


def _stored(r: Reader, package_id: int) -> dict[tuple[str, str], str]:
    found = r.all("SELECT name, kind, wanted FROM dependency WHERE package_id = ?", (package_id,))
    return {(name, kind): wanted for name, kind, wanted in found}


def _rows(meta: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for each in read_dependencies(meta):
        if each.name:
            # PostgreSQL has no text with NUL, and what cannot be stored would keep all later events from being followed
            name, text = (part[:LONGEST].replace("\0", "") for part in (each.name, each.text))
            yield (name, each.kind), text


def list_dependents(
    r: Reader,
    _: Described,
    spelling: str,
    repository_ids: Sequence[int],
    *,
    after: Sequence[Value] = (),
    limit: int,
    order: str,
) -> list[Dependent]:
    """
    A page of the packages of some repositories that need one of this spelling, in the ``DEPENDENT_ORDER``.

    Packages that are made from others are left out.
    """
    assert order == DEPENDENT_ORDER.name
    if not repository_ids:
        return []
    beyond = f"AND {DEPENDENT_ORDER.beyond}" if after else ""
    return every(
        r,
        _dependent,
        f"""
        SELECT p.repository_id, p.key, p.name,
               COALESCE((SELECT v.text FROM version v WHERE v.package_id = p.id AND v.state = 'live'
                         ORDER BY v.sort DESC, v.key DESC LIMIT 1), ''), d.name, d.wanted, d.kind
        FROM dependency d CROSS JOIN package p
        WHERE d.spelling = ? AND p.id = d.package_id AND p.derived = 0
            AND p.repository_id IN ({placeholders(len(repository_ids))}) {beyond}
        ORDER BY {DEPENDENT_ORDER.by} LIMIT ?
        """,
        (spelling, *repository_ids, *after, limit),
    )


def count_dependents(r: Reader, _: Described, spelling: str, repository_ids: Sequence[int]) -> int:
    """The number of packages that ``list_dependents`` returns over all pages."""
    if not repository_ids:
        return 0
    return number(
        r,
        f"""
        SELECT COUNT(*) FROM dependency d CROSS JOIN package p
        WHERE d.spelling = ? AND p.id = d.package_id AND p.derived = 0
            AND p.repository_id IN ({placeholders(len(repository_ids))})
        """,
        (spelling, *repository_ids),
    )


def _dependent(row: Sequence[Any]) -> Dependent:
    repository_id, key, package, latest, name, wanted, kind = row
    return Dependent(repository_id, key, package, latest, Dependency(name, wanted, kind))
