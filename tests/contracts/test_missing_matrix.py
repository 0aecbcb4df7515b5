"""Every condition of a rule, in every format, with every word for what is not known: nothing is let through unasked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, get_args

import msgspec
import pytest
from attrs import evolve

from pkgrepo.archives.inside import DIFFERENCES, WORDS
from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.errors import Invalid
from pkgrepo.repositories.policy.conditions import CALLED, DAY_MS, Facts, Placed
from pkgrepo.repositories.policy.differences import NO_LINE, UNKNOWN
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.rules import RuleSet, Verdict
from pkgrepo.repositories.policy.schema import MISSABLE, Datum, PolicyRule, check_rules, needs_of, stamped
from tests.support.added_formats import ADDED

FORMATS = {name: each for name, each in make_formats(read_config(environ={})).items() if name not in ADDED}
CONDITIONS: Mapping[Datum, list[dict[str, Any]]] = {
    "age": [{"age_days": 7}, {"published_after": "1970-01-02T00:00:00Z"}],
    "licences": [{"licences": ["GPL-*"]}],
    "advisories": [{"advisories": "critical"}, {"advisories": "CVE-2024-1"}],
    "install_scripts": [{"install_scripts": True}, {"install_scripts": False}],
    "contents": [{"contents": [each]} for each in WORDS],
    "licences_inside": [{"licences_inside": ["GPL-*"]}],
    "trust": [{"trust": "fell"}, {"trust": "none"}],
    "labels": [{"labels": {"stage": "evil"}}],
    "differs": [{"differs": [each]} for each in DIFFERENCES],
}
SIDES = ("block", "quarantine", "allow")
ACTIONS = ("block", "quarantine", "warn")
NOW = 100 * DAY_MS
NOTHING_KNOWN = Facts(package="demo", versions=("1.0.0",), compare=lambda *_: UNKNOWN)


def rule_of(match: Mapping[str, Any], **more: Any) -> PolicyRule:
    return msgspec.convert({"name": "r", "match": match, **more}, PolicyRule)


def tells(format: str, match: Mapping[str, Any]) -> bool:
    """Whether a format can tell what a condition asks for."""
    order = order_of(FORMATS[format])
    words = {*match.get("differs", ()), *match.get("contents", ())}
    said = order.differs if "differs" in match else order.contents
    return needs_of(rule_of(match).match) <= order.tells and (not words or bool(words & said))


CELLS = [
    pytest.param(name, datum, match, id=f"{name}-{'-'.join(f'{key}-{value}' for key, value in match.items())}")
    for name in FORMATS
    for datum, matches in CONDITIONS.items()
    for match in matches
]


def decide(format: str, rule: PolicyRule, facts: Facts) -> Verdict:
    return RuleSet([Placed(rule, "main/x")], order_of(FORMATS[format])).decide(facts, NOW)


def test_there_is_a_condition_for_everything_that_may_not_be_known() -> None:
    assert CONDITIONS.keys() == MISSABLE == {*get_args(Datum)} - {"digests"} == CALLED.keys()
    for datum, matches in CONDITIONS.items():
        assert all(needs_of(rule_of(each).match) == {datum} for each in matches)


def expected(format: str, datum: Datum, match: Mapping[str, Any], side: str, action: str) -> tuple[str, str]:
    """What happens with something of which nothing is known, and which datum is said to be missing."""
    if not tells(format, match):
        return "served", ""  # what a format cannot have is never met
    if side == "allow":
        return "passed", CALLED[datum]
    if side == "quarantine":
        return "held", CALLED[datum]
    return {"block": ("refused", CALLED[datum]), "quarantine": ("held", CALLED[datum]), "warn": ("warned", "")}[action]


def happens(verdict: Verdict) -> tuple[str, str]:
    if not verdict.served:
        return "held" if verdict.waits else "refused", verdict.missing
    if verdict.warned:
        return "warned", ""
    return ("passed", verdict.passed[0][1]) if verdict.passed else ("served", "")


@pytest.mark.parametrize(("format", "datum", "match"), CELLS)
def test_what_is_not_known_is_what_the_rule_says(format: str, datum: Datum, match: Mapping[str, Any]) -> None:
    for side, action in product(SIDES, ACTIONS):
        verdict = decide(format, rule_of(match, missing=side, action=action), NOTHING_KNOWN)
        assert (side, action, happens(verdict)) == (side, action, expected(format, datum, match, side, action))


@pytest.mark.parametrize(("format", "datum", "match"), CELLS)
def test_a_rule_that_says_nothing_of_it_refuses_or_is_not_taken(
    format: str, datum: Datum, match: Mapping[str, Any]
) -> None:
    order, rules = order_of(FORMATS[format]), [rule_of(match)]
    if not tells(format, match):
        with pytest.raises(Invalid, match="can never be met"):
            check_rules(rules, [order], "/rules")
        return
    check_rules(rules, [order], "/rules")
    (written,) = stamped(rules, ())
    assert written.missing == "block"
    assert not decide(format, written, NOTHING_KNOWN).served


@pytest.mark.parametrize(("format", "datum", "match"), CELLS)
def test_what_the_file_tells_is_decided_when_it_is_asked_for(
    format: str, datum: Datum, match: Mapping[str, Any]
) -> None:
    listed = evolve(NOTHING_KNOWN, unread=frozenset({datum}), compare=lambda *_: NO_LINE)
    read = evolve(listed, unread=frozenset())
    for side in SIDES:
        rule = rule_of(match, missing=side)
        assert decide(format, rule, listed).served
        assert decide(format, rule, read).served == (side == "allow" or not tells(format, match))
