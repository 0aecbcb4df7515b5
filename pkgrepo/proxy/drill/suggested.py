"""
Rules to begin with, for what comes from upstreams: those of them that mean something in a format.

What they do in the incidents of the table is in the book, on a page that a test makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.archives.inside import Difference
from pkgrepo.proxy.format import Proxied
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import CACHED
from pkgrepo.repositories.policy.schema import PolicyRule, RuleMatch

COMPARED_DAYS: Final = 90  # for which a version is compared with the one before; event-stream took 78 to be found
# What is rare in updates that do no harm; new dependencies and programs are not.
COMPARED: Final[Sequence[Difference]] = ("install_script", "native_build", "pth", "git_dependency", "publisher", "size")


def suggested_rules(
    formats: Sequence[tuple[StoredFormat, Proxied | None]], exempt: Sequence[str] = ()
) -> list[PolicyRule]:
    """
    The rules for repositories of some formats; ``exempt`` are patterns of names that are served from the first minute.

    That of the age is only for formats of which incidents are known: elsewhere, as for images, what an upstream does
    not date is as old as it is known here, and would be held without cause. One for several formats waits for as long
    as that which needs most.
    """
    drilled = [None if each is None else each.drilled for _, each in formats]
    days = [each.age_days for each in drilled if each is not None]
    differs = frozenset[Difference]().union(*(each.differs for each, _ in formats))
    words = [each for each in COMPARED if each in differs]
    rules = []
    if days and len(days) == len(formats):
        rules.append(
            PolicyRule(
                name="young",
                match=RuleMatch(age_days=max(days), source=CACHED),
                exempt=list(exempt),
                reason="most versions that do harm are found within days",
                missing="block",
            )
        )
    if any(each.attests is not None for each, _ in formats):
        rules.append(
            PolicyRule(
                name="trust fell",
                match=RuleMatch(trust="fell", source=CACHED),
                action="quarantine",
                exempt=list(exempt),
                reason="it is known less well who published it than of versions before",
                missing="quarantine",
            )
        )
    if words and days:
        rules.append(
            PolicyRule(
                name="differs",
                match=RuleMatch(differs=words, age_days=COMPARED_DAYS, source=CACHED),
                action="quarantine",
                exempt=list(exempt),
                reason="look at what is new in it",
                missing="quarantine",
            )
        )
    return rules
