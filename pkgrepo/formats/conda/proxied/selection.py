"""What a repository shows of the records of an upstream channel."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import cached_property
from typing import Final

from attrs import define, frozen

from pkgrepo.proxy.configuration import Rules
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.leaves import Leaf
from pkgrepo.proxy.resolving.release_age import AgeRule, find_age_rule

from .normaliser import name_in

STEP_MS: Final = 300_000  # of time after which files are looked at again: large channels have one in every few seconds


@frozen(eq=False)
class Hidden:
    """
    The files that a rule hides since they are too young.

    At ``opens_ms`` (None: never) the next of them is shown, which may be ``STEP_MS`` after it is old enough.
    """

    files: Set[str] = frozenset()
    opens_ms: int | None = None


@define(eq=False, slots=False)
class Selection:
    """
    What is taken of an upstream: no package of a reserved name, or of a name that is ``taken`` by other members.

    Of the others no file that is ``hidden``, and none in ``seen``, where those are added that are taken, unless it is
    None.
    """

    leaf: Leaf
    taken: Set[str]
    hidden: Hidden = Hidden()
    seen: set[str] | None = None

    def takes_package(self, name: str) -> bool:
        """Whether the package is taken."""
        return name not in self.taken and not any(each.reserved_by(name) for each in self._reserving)

    def takes_file(self, file: str) -> bool:
        """Whether the file of such a package is taken, which is seen from now on."""
        if file in self.hidden.files:
            return False
        if self.seen is not None:
            if file in self.seen:
                return False
            self.seen.add(file)
        return True

    @cached_property
    def _reserving(self) -> list[Rules]:
        return [rules for _, rules in self.leaf.rules if rules.reserved_names]


def has_age_rules(leaf: Leaf) -> bool:
    """Whether a rule hides files of an upstream that are too young."""
    return any(rules.minimum_release_age is not None for _, rules in leaf.rules)


def find_hidden(leaf: Leaf, now_ms: int) -> Callable[[PartsFile], Hidden]:
    """A function that finds, in the records of an upstream, the files that are too young now. Blocks."""

    def find(parts: PartsFile) -> Hidden:
        files: set[str] = set()
        opens: set[int] = set()
        name, age = "", None
        for entry in parts.entries(()):
            if (its := name_in(entry.sort)) != name:
                name, age = its, find_age_rule(leaf, its)
            if age is not None and age.hides(entry.published_ms, now_ms):
                files.add(entry.key)
                opens |= _opening(age, entry.published_ms)
        return Hidden(frozenset(files), max(min(opens), now_ms + STEP_MS) if opens else None)

    return find


def _opening(age: AgeRule, published_ms: int | None) -> set[int]:
    opens_ms = age.opening_ms(published_ms)
    return set() if opens_ms is None else {opens_ms}
