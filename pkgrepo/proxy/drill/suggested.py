"""
Rules to begin with, for what comes from upstreams: those of them that mean something in a format.

What they do in the incidents of the table is in the book, on a page that a test makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.proxy.format import Proxied
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import CACHED
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import PolicyRule, RuleMatch, needs_of

AGE_DAYS: Final = 3  # within which most versions that did harm were removed


def suggested_rules(
    formats: Sequence[tuple[StoredFormat, Proxied | None]], exempt: Sequence[str] = ()
) -> list[PolicyRule]:
    """
    The rules for repositories of some formats; ``exempt`` are patterns of names that are served from the first minute.

    One for several formats waits for as long as that which needs most.
    """
    drilled = [each.drilled for _, each in formats if each is not None and each.drilled is not None]
    tells = frozenset[str]().union(*(order_of(each).tells for each, _ in formats))
    rules = [
        PolicyRule(
            name="young",
            match=RuleMatch(age_days=max((each.age_days for each in drilled), default=AGE_DAYS), source=CACHED),
            exempt=list(exempt),
            reason="most versions that do harm are found within days",
            missing="block",
        ),
        PolicyRule(
            name="trust fell",
            match=RuleMatch(trust="fell", source=CACHED),
            action="quarantine",
            reason="it is known less well who published it than of versions before",
            missing="quarantine",
        ),
        PolicyRule(
            name="starts with Python",
            match=RuleMatch(contents=["pth"], source=CACHED),
            action="quarantine",
            reason="it runs whenever Python starts",
            missing="quarantine",
        ),
    ]
    return [each for each in rules if needs_of(each.match) <= tells]
