"""
Rules to begin with, for what comes from upstreams: those of them that mean something in a format.

What they do in the incidents of the table is in the book, on a page that a test makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pkgrepo.archives.inside import Difference
from pkgrepo.proxy.format import Proxied
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import CACHED
from pkgrepo.repositories.policy.schema import PolicyRule, RuleMatch

COMPARED_DAYS: Final = 14  # with 30 a package that is released each day has more before it than a request reads
# What none, or one in a hundred, of the harmless updates of the sample had (see the book, "What differs"); new
# dependencies of any age many had.
COMPARED: Final[Sequence[Difference]] = (
    "install_script",
    "native_build",
    "pth",
    "executable",
    "young_dependency",
    "git_dependency",
    "size",
    "obfuscated",
)


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
    compared = RuleMatch(age_days=COMPARED_DAYS, source=CACHED)
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
                match=msgspec.structs.replace(compared, differs=words),
                action="quarantine",
                exempt=list(exempt),
                reason="look at what is new in it",
                missing="quarantine",
            )
        )
    if "publisher" in differs and days:
        rules.append(
            PolicyRule(
                name="another publisher",
                match=msgspec.structs.replace(compared, differs=["publisher"]),
                action="quarantine",
                exempt=list(exempt),
                reason="ask whether the project has a new maintainer",
                missing="allow",  # mirrors leave out who published a version: with them all would wait
            )
        )
    return rules
