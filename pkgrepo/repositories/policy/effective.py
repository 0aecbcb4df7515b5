"""Which rules hold for a repository: its own, those of the virtual ones around it, those of the server, and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.model import DatedView, Repository, RepositoryType
from pkgrepo.repositories.version_ranges import WILD
from pkgrepo.storage.catalog.server.freezes import Freeze
from pkgrepo.storage.catalog.server.policy import Block, StoredPolicy

from .conditions import CACHED, SERVER, CompiledRule, Placed
from .rules import PackageRules, RuleSet, Ruling
from .schema import MALWARE, Order, PolicyRule, RuleMatch, ServingPolicy

SHORT = "minimum_release_age"  # the setting that stands for a rule about the age of what comes from upstreams
_BLOCKS = "block"
_FREEZES = "freeze"
KNOWN_MALWARE: Final = "known malware"  # the rule that the server has of its own
_MALWARE_RULE: Final = PolicyRule(name=KNOWN_MALWARE, match=RuleMatch(advisories=MALWARE), missing="allow")
MOST_MADE: Final = 10_000  # rules of blocks in memory
_made: Final[dict[tuple[str, str], Placed]] = {}


def rule_set(
    policy: StoredPolicy, repository: Repository, around: Sequence[Repository], order: Order
) -> RuleSet | None:
    """
    The rules for what is served of a repository that is reached through those ``around`` it; None without any.

    A companion has the rules of its parent, and what is staged has those of the repository that it is for. About what
    is derived from the parent, the parent's own set decides: see L{companion_rules}.
    """
    owners: dict[str, Repository] = {}
    for each in (*around, repository):
        owners |= {owner.path: owner for owner in (each.authority, each)}
    placed = [each for owner in owners.values() if not is_companion(owner) for each in own_rules(owner)]
    placed += [*_general(policy, owners), *malware_rule(policy, order)]
    return _set_of(policy, repository, placed, order)


def companion_rules(
    policy: StoredPolicy,
    repository: Repository,
    around: Sequence[Repository],
    order: Order,
    parent_order: Order,
    origins: Callable[[str], Sequence[str]],
) -> RuleSet | None:
    """
    The rules of a companion, with those of its parent for what is derived from that; None if there are none at all.

    ``origins`` is that of the L{Companion}, ``parent_order`` the order of the parent's format.
    """
    parent = origin_of(repository)
    own = rule_set(policy, repository, around, order)
    origin = rule_set(policy, parent, [origin_of(each) for each in around], parent_order)
    if own is None and origin is None:
        return None
    named = _set_of(policy, repository, _general(policy, {each.path: each for each in (*around, repository)}), order)
    empty = RuleSet((), order)
    return CompanionRules(own or empty, origin or RuleSet((), parent_order), named or empty, origins)


class CompanionRules(RuleSet):
    """
    The rules of a companion: ``own`` for what was published there, and those for what is derived from its parent.

    Of these ``origin`` are the parent's, which decide about what something is made of, in the parent's names. ``named``
    are those for all repositories, and for the companion alone, of which those that are about a name of the companion
    hold, too.
    """

    def __init__(self, own: RuleSet, origin: RuleSet, named: RuleSet, origins: Callable[[str], Sequence[str]]) -> None:
        self._own = own
        self._origins = origins
        self.origin = origin
        self.named_here = named

    def at(self, view: DatedView) -> RuleSet:
        """See the base class."""
        return CompanionRules(self._own.at(view), self.origin.at(view), self.named_here, self._origins)

    @property
    def reads_metadata(self) -> bool:
        """See the base class."""
        return self._own.reads_metadata or self.origin.reads_metadata

    @property
    def reads_bytes(self) -> bool:
        """See the base class."""
        return self._own.reads_bytes or self.origin.reads_bytes

    def of(self, package: str) -> PackageRules | None:
        """Those about a package, which tell by their ``needs`` and ``stamp`` also of those of the parent."""
        own = self._own.of(package)
        beyond = [rules for key in self._origins(package) if (rules := self.origin.of(key)) is not None]
        if not beyond:
            return own
        if own is None:
            own = PackageRules(package, (), {}, frozenset(), "")
        needs = own.needs.union(*(each.needs for each in beyond))
        return evolve(own, needs=needs, stamp=":".join((own.stamp, *(each.stamp for each in beyond))), beyond=beyond)

    def about_copy(self, package: str, origin: str) -> PackageRules | None:
        """
        The rules by name about a package of the companion, for what is made of the package ``origin`` of the parent.

        Rules that name that one, too, were asked of the parent.
        """
        found = self.named_here.of(package)
        if found is None:
            return None
        rules = [each for each in found.rules if each.placed.rule.match.packages and not self._names(each, origin)]
        return evolve(found, rules=rules)

    def _names(self, rule: CompiledRule, package: str) -> bool:
        """Whether a rule names a package of the parent, if only to exempt it."""
        everyone = msgspec.structs.replace(rule.placed.rule, exempt=[])
        return CompiledRule(evolve(rule.placed, rule=everyone), self.origin.order).takes_package(package)


def is_companion(repository: Repository) -> bool:
    """Whether a repository is a companion of another one, whose configuration is made of that one's."""
    return repository.is_companion


def origin_of(repository: Repository) -> Repository:
    """The repository of whose packages those of a companion are made, which may be one of a stage."""
    return repository.parent if repository.is_companion and repository.parent is not None else repository.live


def _general(policy: StoredPolicy, owners: Mapping[str, Repository]) -> list[Placed]:
    """The rules for all repositories, and the blocks that hold for one of some."""
    placed = [Placed(each, SERVER) for each in server_rules(policy)]
    placed += [placed_freeze(each, path) for each in policy.freezes if (path := _frozen_path(each, owners)) is not None]
    paths = {pattern: _path_of(pattern, owners) for pattern in {each.repository for each in policy.blocks}}
    return placed + [placed_block(each, path) for each in policy.blocks if (path := paths[each.repository]) is not None]


def _set_of(policy: StoredPolicy, repository: Repository, placed: Sequence[Placed], order: Order) -> RuleSet | None:
    rulings = {key: Ruling(approved=ok, reason=why) for key, (ok, why) in policy.rulings.get(repository.id, {}).items()}
    return RuleSet(placed, order, rulings, policy.advisories) if placed or rulings else None


def malware_rule(policy: StoredPolicy, order: Order | None = None) -> list[Placed]:
    """
    The rule that the server has of its own, if it looks for malware: what a record says to be malware is refused.

    A rule for all repositories with its name stands in its place. There is none for a format of which the database has
    no records; without an order that does not matter. What is not known lets pass: it adds to other rules, and without
    data the server would serve nothing.
    """
    named = any(each["name"].casefold() == KNOWN_MALWARE for each in policy.rules)
    if policy.malware is None or named or (order is not None and not order.ecosystem):
        return []
    return [Placed(_MALWARE_RULE, SERVER, malware=policy.malware)]


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
    return Placed(rule, owner, block=block.uid, wide=is_wide([block.repository]))


def placed_freeze(freeze: Freeze, owner: str) -> Placed:
    """The rule that a freeze stands for."""
    match = RuleMatch(published_after=freeze.at)
    name = f"{_FREEZES} {freeze.uid[:8]}"
    rule = PolicyRule(name=name, match=match, exempt=list(freeze.exempt), reason=freeze.reason, missing="block")
    return Placed(rule, owner, frozen=True, wide=is_wide(freeze.repositories))


def is_wide(patterns: Iterable[str]) -> bool:
    """Whether something with these patterns of repositories may hold for several, so that system managers remove it."""
    found = [*patterns]
    return len(found) > 1 or any(WILD & {*each} for each in found)


def _frozen_path(freeze: Freeze, owners: Mapping[str, Repository]) -> str | None:
    """The innermost repository that a freeze holds for; None for none, as for those where something is published."""
    taken = (
        path
        for path, each in reversed(list(owners.items()))
        if each.type is not RepositoryType.HOSTED and any(takes_repository(one, path) for one in freeze.repositories)
    )
    return next(taken, None)


def takes_repository(pattern: str, path: str) -> bool:
    """Whether a block with this pattern of repositories holds for the one at a path."""
    return fnmatchcase(path.casefold(), pattern.casefold())


def _path_of(pattern: str, owners: Mapping[str, Repository]) -> str | None:
    """The innermost of the repositories for which blocks with a pattern hold, or None."""
    return next((path for path in reversed(list(owners)) if takes_repository(pattern, path)), None)
