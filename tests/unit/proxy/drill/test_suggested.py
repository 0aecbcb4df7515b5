"""Rules to begin with: each means what it says in its formats, and together they hold every incident at first."""

from __future__ import annotations

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.gateway.format import Format
from pkgrepo.model.advisories import MalwareNames
from pkgrepo.proxy.drill.drills import outcome_of, stand_in
from pkgrepo.proxy.drill.player import Played, Player
from pkgrepo.proxy.drill.suggested import suggested_rules
from pkgrepo.proxy.incidents.corpus import incidents
from pkgrepo.proxy.incidents.shapes import Incident
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import PolicyRule, check_rules
from pkgrepo.storage.catalog.server.policy import StoredPolicy
from tests.support.added_formats import ADDED

FORMATS = {name: each for name, each in make_formats(read_config(environ={})).items() if name not in ADDED}
EVERY = [(each, each.proxied) for each in FORMATS.values()]
OPENED = {"colors-faker", "ctx", "event-stream"}  # they were there for 6, 10 and 78 days


def of(format_: Format) -> list[PolicyRule]:
    return suggested_rules([(format_, format_.proxied)])


def play(incident: Incident, rules: list[PolicyRule]) -> list[Played]:
    format_ = FORMATS[incident.format]
    assert format_.proxied is not None
    seat = stand_in(format_, StoredPolicy(malware=MalwareNames()), rules)
    return Player(format=format_, proxied=format_.proxied, flat=seat.flat).play(incident)


@pytest.mark.parametrize("incident", incidents(), ids=lambda each: each.name)
def test_every_incident_is_held_by_a_rule_that_is_suggested(incident: Incident) -> None:
    played = play(incident, of(FORMATS[incident.format]))
    assert all(each.at_first for each in played)
    found = {holding.rule: holding.missing for each in played for holding in each.at_first}
    assert not any(missing for rule, missing in found.items() if rule != "differs")
    assert outcome_of(incident, played) == ("opened" if incident.name in OPENED else "held")


@pytest.mark.parametrize("name", FORMATS)
def test_each_rule_means_something_in_its_format_and_is_about_what_comes_from_upstreams(name: str) -> None:
    rules = of(FORMATS[name])
    check_rules(rules, [order_of(FORMATS[name])], "")
    assert {each.name: each.match.age_days for each in rules if each.name == "young"} == (
        {"young": 3 if name == "npm" else 7} if name in ("npm", "python", "ruby") else {}
    )
    for each in rules:
        assert each.match.source == "cached"
        assert each.missing is not None
        assert each.name != "differs" or each.match.differs


def test_those_for_all_repositories_hold_nothing_for_its_age_alone() -> None:
    rules = suggested_rules(EVERY, ["@acme/*"])
    check_rules(rules, [order_of(each) for each in FORMATS.values()], "")
    assert [each.name for each in rules] == ["trust fell", "differs", "another publisher"]
    assert all(each.exempt == ["@acme/*"] for each in rules)
    assert [each.name for each in of(FORMATS["docker"])] == []
