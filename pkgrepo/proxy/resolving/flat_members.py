"""The hosted and proxy repositories behind a repository: itself, or the members of a virtual one and of those in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import evolve, frozen

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import Rules, rules_of, virtual_config_of
from pkgrepo.repositories.format import Companion
from pkgrepo.repositories.policy.effective import companion_rules, is_companion, origin_of, rule_set
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import Order
from pkgrepo.repositories.registry import Registry


@frozen(eq=False)
class FlatMember:
    """
    A hosted or proxy repository as it is reached from another one.

    ``repository`` is not active if it is switched off, or virtual repositories on each way to it are. ``around`` are
    all virtual repositories on all ways, the outermost first. ``policy`` are the rules about what is served of it.
    """

    repository: Repository
    around: Sequence[Repository] = ()
    policy: RuleSet | None = None

    @property
    def rules(self) -> list[tuple[Repository, Rules]]:
        """The rules about its packages, those of every virtual repository on a way included, and whose they are."""
        return [(each, rules_of(each)) for each in (*self.around, self.repository)]

    def reserved_by(self, key: str) -> tuple[Repository, str] | None:
        """The repository whose rule reserves a package (a key), and the glob; None if none of those on the way does."""
        return next(((owner, by) for owner, rules in self.rules if (by := rules.reserved_by(key)) is not None), None)

    def merges(self, key: str) -> bool:
        """Whether the repository from which it is reached joins the versions of a package with those of upstreams."""
        return bool(self.around) and rules_of(self.around[0]).merges(key)


class FlatMembers:
    """
    The flat members of all repositories, found once for each state of the configuration.

    ``orders`` are by format, ``companions`` those of formats whose repositories may be companions. ``serial`` is that
    of the configuration which they were last asked about.
    """

    def __init__(
        self,
        registry: Registry,
        orders: Mapping[str, Order],
        companions: Mapping[str, Companion] = MappingProxyType({}),
    ) -> None:
        self._companions = companions
        self._registry = registry
        self._orders = orders
        self.serial = -1
        self._known: dict[int, tuple[Repository, Mapping[int, FlatMember]]] = {}

    def of(self, repository: Repository) -> Mapping[int, FlatMember]:
        """
        Those of a repository by id, in order; one that is not virtual is the only one of its own.

        The members of a view are the present repositories, with a rule that hides what came later.
        """
        serial = self._registry.serial
        if serial != self.serial:
            self.serial = serial
            self._known = {}
        found, view = self._of(repository.live), repository.view
        if view is None:
            return found
        return {
            key: evolve(flat, policy=(flat.policy or RuleSet((), self._order(flat.repository))).at(view))
            for key, flat in found.items()
        }

    def members(self, virtual: Repository) -> list[Repository]:
        """The members of a virtual repository, in order."""
        found = (self._registry.find_uid(uid) for uid in virtual_config_of(virtual).members)
        return [each for each in found if each is not None]

    def _of(self, repository: Repository) -> Mapping[int, FlatMember]:
        known = self._known.get(repository.id)
        if known is None or known[0] is not repository:
            known = self._known[repository.id] = repository, self._find(repository)
        return known[1]

    def _find(self, repository: Repository) -> Mapping[int, FlatMember]:
        if repository.type is not RepositoryType.VIRTUAL:
            return {repository.id: self._with_policy(FlatMember(repository))}
        found: dict[int, FlatMember] = {}
        for member in self.members(repository):
            for flat in self._of(member).values():
                active = flat.repository.active and member.active
                before = found.get(flat.repository.id)
                around = {each.id: each for each in (*(before.around if before else ()), *flat.around)}
                if before is not None and before.repository.active:
                    active = True
                found[flat.repository.id] = FlatMember(
                    _switched(flat.repository, active=active), tuple(around.values())
                )
        return {key: self._with_policy(evolve(flat, around=(repository, *flat.around))) for key, flat in found.items()}

    def _with_policy(self, flat: FlatMember) -> FlatMember:
        policy, repository, order = self._registry.policy, flat.repository, self._order(flat.repository)
        companion = self._companions.get(repository.format) if is_companion(repository) else None
        if companion is None:
            return evolve(flat, policy=rule_set(policy, repository, flat.around, order))
        beyond = self._order(origin_of(repository))
        found = companion_rules(policy, repository, flat.around, order, beyond, companion.origins)
        return evolve(flat, policy=found)

    def _order(self, repository: Repository) -> Order:
        return self._orders.get(repository.format, Order())


def _switched(repository: Repository, *, active: bool) -> Repository:
    return repository if repository.active is active else evolve(repository, active=active)
