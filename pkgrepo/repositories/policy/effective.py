"""Which rules hold for a repository: its own, those of the virtual ones around it, those of the server, and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.storage.catalog.server.policy import Block, StoredPolicy

from .conditions import CACHED, SERVER, Placed
from .rules import RuleSet, Ruling
from .schema import Order, PolicyRule, RuleMatch, ServingPolicy

SHORT = "minimum_release_age"  # the setting that stands for a rule about the age of what comes from upstreams
_BLOCKS = "block"
MOST_MADE: Final = 10_000  # rules of blocks in memory
_made: Final[dict[tuple[str, str], Placed]] = {}


def rule_set(
    policy: StoredPolicy, repository: Repository, around: Sequence[Repository], order: Order
) -> RuleSet | None:
    """
    The rules for what is served of a repository that is reached through those ``around`` it; None without any.

    A companion has the rules of its parent, and what is staged has those of the repository that it is for.
    """
    owners: dict[str, Repository] = {}
    for each in (*around, repository):
        owners |= {owner.path: owner for owner in (each.authority, each)}
    placed = [each for owner in owners.values() for each in own_rules(owner)]
    placed += [Placed(each, SERVER) for each in server_rules(policy)]
    paths = {pattern: _path_of(pattern, owners) for pattern in {each.repository for each in policy.blocks}}
    placed += [placed_block(each, path) for each in policy.blocks if (path := paths[each.repository]) is not None]
    rulings = {key: Ruling(approved=ok, reason=why) for key, (ok, why) in policy.rulings.get(repository.id, {}).items()}
    return RuleSet(placed, order, rulings, policy.exported_ms) if placed or rulings else None


def server_rules(policy: StoredPolicy) -> list[PolicyRule]:
    """The rules for all repositories."""
    return [msgspec.convert(each, PolicyRule) for each in policy.rules]


def own_rules(repository: Repository) -> list[Placed]:
    """The rules in the configuration of a repository, with the one that the short form stands for."""
    stored = repository.policy.get("rules")
    found = [Placed(each, repository.path) for each in msgspec.convert({"rules": stored or []}, ServingPolicy).rules]
    age: Mapping[str, Any] | None = repository.policy.get(SHORT)
    if age is not None and repository.type is not RepositoryType.HOSTED:
        match = RuleMatch(age_days=age["days"], source=CACHED)
        rule = PolicyRule(name=SHORT, match=match, exempt=list(age.get("exempt", ())))
        found.append(Placed(rule, repository.path, short=True))
    return found


def placed_block(block: Block, owner: str) -> Placed:
    """The rule that a block stands for; it never changes."""
    made = _made.get((block.uid, owner))
    if made is None:
        if len(_made) >= MOST_MADE:
            _made.clear()
        made = _made[block.uid, owner] = _make_placed(block, owner)
    return made


def _make_placed(block: Block, owner: str) -> Placed:
    match = RuleMatch(packages=[block.package] if block.package else [], versions=block.versions)
    match = msgspec.structs.replace(match, digests=list(block.digests))
    name = f"{_BLOCKS} {block.uid[:8]}"
    rule = PolicyRule(name=name, match=match, action="block", reason=block.reason, until=block.ends_at)
    return Placed(rule, owner, block=block.uid, wide=any(each in block.repository for each in "*?["))


def takes_repository(pattern: str, path: str) -> bool:
    """Whether a block with this pattern of repositories holds for the one at a path."""
    return fnmatchcase(path.casefold(), pattern.casefold())


def _path_of(pattern: str, owners: Mapping[str, Repository]) -> str | None:
    """The innermost of the repositories for which blocks with a pattern hold, or None."""
    return next((path for path in reversed(list(owners)) if takes_repository(pattern, path)), None)
