"""What a rehearsal has found: sums by rules, and the versions that these would have refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, Final

from attrs import Factory, define, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.conditions import DAY_MS
from pkgrepo.repositories.policy.rules import SERVED, Verdict
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.logged_requests import (
    Requests,
    clients_of_items,
)

BATCH: Final = 50  # packages that are read together
MOST_ROWS: Final = 200  # of each list
MOST_KEPT: Final = 50_000  # versions that are told apart; all are counted
MOST_USERS: Final = 20  # of one row
COUNTED: Final = (
    "requests",
    "versions",
    "missing_requests",
    "missing_versions",
    "passed_requests",
    "passed_versions",
)


@define
class Refused:
    """The fetches of a version that a rule would have refused; ``items`` are those of the log."""

    rule: PolicyRule
    repository: str
    package: str
    version: str
    file: str
    missing: str
    requests: int = 0
    first_ms: int = 0
    last_ms: int = 0
    items: set[int] = Factory(set)

    def add(self, each: Requests) -> None:
        """Count the fetches of a day."""
        self.first_ms = min(self.first_ms, each.first_ms) if self.requests else each.first_ms
        self.last_ms = max(self.last_ms, each.last_ms)
        self.requests += each.count
        self.items.add(each.item_id)


@frozen
class Judgement:
    """
    What is decided, and what each rule says of itself.

    ``met`` are the names of the rules that match, ``by_missing`` of those for which data that are not known decided, so
    that they match, and ``passed`` of those that do not match since data are not known.
    """

    verdict: Verdict = SERVED
    met: Set[str] = frozenset()
    by_missing: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()


@frozen
class Stored:
    """A version that is stored and would be refused; ``opens_ms`` is when that ends by itself."""

    rule: PolicyRule
    repository: str
    package: str
    version: str
    file: str
    missing: str
    opens_ms: int | None


@define
class Found:
    """What was found so far: sums by the names of rules and what is counted, and the versions."""

    sums: Counter[tuple[str, str]] = Factory(Counter)
    refused: dict[tuple[str, int, str, str, str], Refused] = Factory(dict)
    stored: list[Stored] = Factory(list)
    refused_requests: int = 0
    refused_stored: int = 0
    packages: int = 0
    checked_requests: int = 0
    left_out: int = 0

    def add_requests(self, each: Requests, judgement: Judgement, file: str = "") -> None:
        """Count the fetches of an item on a day; ``file`` is its name, if other files of the version are served."""
        self.checked_requests += each.count
        self._count("requests", [judgement], each.count)
        verdict = judgement.verdict
        if verdict.by is None:
            return
        self.refused_requests += each.count
        rule = verdict.by.rule
        key = rule.name, each.repository_id, each.package_key, each.version_key, file
        if key not in self.refused:
            if len(self.refused) >= MOST_KEPT:
                self.left_out += 1
                return
            self.refused[key] = Refused(rule, each.repository, each.package, each.version, file, verdict.missing)
        self.refused[key].add(each)

    def add_version(
        self, repository: Repository, package: str, version: str, judgements: Mapping[str, Judgement]
    ) -> None:
        """Count a version that is stored; the judgements are those of its files, by their names."""
        self._count("versions", judgements.values(), 1)
        refused = {file: each.verdict for file, each in judgements.items() if not each.verdict.served}
        if not refused:
            return
        self.refused_stored += 1
        if len(refused) == len(judgements):
            refused = {"": next(iter(refused.values()))}
        for file, verdict in refused.items():
            if len(self.stored) < MOST_ROWS and verdict.by is not None:
                rule, missing = verdict.by.rule, verdict.missing
                self.stored.append(Stored(rule, repository.path, package, version, file, missing, verdict.opens_ms))

    def _count(self, what: str, judgements: Collection[Judgement], count: int) -> None:
        for kind, names in (
            ("", {name for each in judgements for name in each.met}),
            ("missing_", {name for each in judgements for name in each.by_missing}),
            ("passed_", {name for each in judgements for name in each.passed}),
        ):
            for name in names:
                self.sums[name, f"{kind}{what}"] += count


def refused_rows(r: Reader, refused: Iterable[Refused]) -> list[dict[str, Any]]:
    """The rows of some versions, with who has fetched them."""
    rows = []
    for each in refused:
        days = each.first_ms // DAY_MS, each.last_ms // DAY_MS
        users = clients_of_items(r, sorted(each.items)[:BATCH], *days, MOST_USERS + 1)
        rows.append(
            {
                "rule": each.rule.name,
                "action": each.rule.action,
                "repository": each.repository,
                "package": each.package,
                "version": each.version,
                "file": each.file,
                "requests": each.requests,
                "users": users[:MOST_USERS],
                "more_users": len(users) > MOST_USERS,
                "first_at": _text(each.first_ms),
                "last_at": _text(each.last_ms),
                "missing": each.missing,
            }
        )
    return rows


def result_of(
    found: Found, rows: list[dict[str, Any]], versions: int, rules: Sequence[PolicyRule], days: int
) -> Mapping[str, Any]:
    """The result of the job: ``rows`` are those of the versions that were fetched most."""
    return {
        "refused": rows,
        "refused_requests": found.refused_requests,
        "refused_versions": versions,
        "stored": [
            {
                "rule": each.rule.name,
                "action": each.rule.action,
                "repository": each.repository,
                "package": each.package,
                "version": each.version,
                "file": each.file,
                "missing": each.missing,
                "opens_at": None if each.opens_ms is None else _text(each.opens_ms),
            }
            for each in found.stored
        ],
        "refused_stored": found.refused_stored,
        "rules": [
            {
                "rule": each.name,
                "action": each.action,
                "missing": each.missing,
                **{what: found.sums[each.name, what] for what in COUNTED},
            }
            for each in rules
        ],
        "days": days,
        "packages": found.packages,
        "requests": found.checked_requests,
        "truncated": found.left_out > 0,
    }


def _text(ms: int) -> str:
    return from_ms(ms).isoformat().replace("+00:00", "Z")
