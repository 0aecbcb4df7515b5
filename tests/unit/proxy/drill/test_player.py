"""What rules would have said of each version of an incident, from its publication until it was removed."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.proxy.drill.drills import outcome_of, stand_in
from pkgrepo.proxy.drill.player import HOUR_MS, Played, Player
from pkgrepo.proxy.incidents.corpus import get_incident, incidents
from pkgrepo.proxy.incidents.shapes import Incident
from pkgrepo.repositories.policy.conditions import DAY_MS
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.server.policy import StoredPolicy

FORMATS = make_formats(read_config(environ={}))
YOUNG = {"name": "young", "match": {"age_days": 3}}


def play(incident: Incident, *rules: dict[str, Any], loaded: bool = True) -> list[Played]:
    format_ = FORMATS[incident.format]
    assert format_.proxied is not None
    given = [msgspec.convert(each, PolicyRule) for each in rules]
    seat = stand_in(format_, StoredPolicy(), given)
    return Player(format=format_, proxied=format_.proxied, flat=seat.flat, loaded=loaded).play(incident)


def of(name: str, version: str, *rules: dict[str, Any]) -> Played:
    (found,) = [each for each in play(get_incident(name), *rules) if each.version == version]
    return found


@pytest.mark.parametrize("incident", incidents(), ids=lambda each: each.name)
def test_spans_cover_the_time_of_each_version_without_gaps(incident: Incident) -> None:
    harmful = {(package.name, each.version): each for package in incident.packages for each in package.harmful}
    played = play(incident, YOUNG)
    assert {(each.package, each.version) for each in played} == harmful.keys()
    for each in played:
        published = harmful[each.package, each.version]
        assert (each.spans[0].from_ms, each.spans[-1].until_ms) == (published.at_ms, published.removed_ms)
        assert all(one.until_ms == other.from_ms for one, other in pairwise(each.spans))
        assert all(one.by != other.by for one, other in pairwise(each.spans))
        lasted_ms = published.removed_ms - published.at_ms
        assert each.served_ms == max(0, lasted_ms - 3 * DAY_MS)  # to the millisecond
        assert each.outcome == ("opened" if each.served_ms else "held")
    assert outcome_of(incident, play(incident)) == "served"


def test_a_rule_that_ends_holds_until_then() -> None:
    until = "2025-09-08T14:00:00Z"
    played = of("chalk-debug", "5.6.1", {"name": "all", "until": until})
    assert [each.by is None for each in played.spans] == [False, True]
    assert played.spans[0].until_ms == datetime(2025, 9, 8, 14, tzinfo=UTC).timestamp() * 1000


def test_all_rules_that_hold_are_told_and_the_one_that_is_named_to_clients() -> None:
    played = of(
        "phantom-gyp",
        "1.2.1",
        YOUNG,
        {"name": "builds", "match": {"contents": ["native_build"]}, "action": "quarantine"},
        {"name": "counted", "action": "warn"},
        {"name": "others", "match": {"packages": ["left-pad"]}},
    )
    assert {each.rule: each.action for each in played.at_first} == {"young": "block", "builds": "quarantine"}
    assert played.at_first == played.throughout
    assert [each.by.rule for each in played.spans if each.by] == ["young"]


def test_exemptions_and_versions_are_those_of_the_format() -> None:
    exempt = {**YOUNG, "exempt": ["@vapi-ai/*@>=1.2"]}
    assert of("phantom-gyp", "1.2.1", exempt).outcome == "served"
    assert of("phantom-gyp", "0.11.1", exempt).outcome == "held"
    assert of("rest-client", "1.6.13", {"name": "old", "match": {"versions": "~> 1.6.10"}}).outcome == "held"


def test_a_rule_about_scripts_sees_what_the_document_says_and_one_about_contents_the_bytes() -> None:
    told = {"name": "told", "match": {"install_scripts": True}}
    inside = {"name": "inside", "match": {"contents": ["install_script"]}}
    assert of("phantom-gyp", "1.2.1", told).outcome == "served"
    assert of("phantom-gyp", "1.2.1", inside).outcome == "held"
    assert {each.rule for each in of("keyv", "6.0.0", told, inside).throughout} == {"told", "inside"}


def test_trust_falls_where_a_version_comes_without_the_provenance_of_those_before() -> None:
    fell = {"name": "fell", "match": {"trust": "fell"}, "missing": "quarantine"}
    outcomes = {each.version: each.outcome for each in play(get_incident("ultralytics"), fell)}
    assert outcomes == {"8.3.41": "served", "8.3.42": "served", "8.3.45": "held", "8.3.46": "held"}
    assert {each.outcome for each in play(get_incident("nx-s1ngularity"), fell)} == {"held"}
    assert {each.outcome for each in play(get_incident("tanstack"), fell)} == {"served"}  # with valid provenance
    (axios,) = [each for each in play(get_incident("axios"), fell) if each.version == "1.14.1"]
    assert [each.missing for each in axios.throughout] == [""]
    none = {"name": "none", "match": {"trust": "none"}}
    assert {each.outcome for each in play(get_incident("keyv"), none)} == {"served"}
    assert {each.outcome for each in play(get_incident("chalk-debug"), none)} == {"held"}


def test_a_version_that_differs_from_the_one_before_that_was_served_is_held() -> None:
    def differs(*words: str, **more: Any) -> dict[str, Any]:
        rule = {"name": "differs", "match": {"differs": [*words], **more}, "missing": "quarantine"}
        return {**rule, "action": "quarantine"}

    for name, version, word in (
        ("phantom-gyp", "1.2.1", "native_build"),
        ("shai-hulud", "4.1.2", "size"),  # than 4.1.0, since 4.1.1 is held, too
        ("litellm", "1.82.8", "pth"),
        ("tanstack", "1.169.5", "git_dependency"),
        ("axios", "1.14.1", "dependency"),
        ("event-stream", "3.3.6", "publisher"),
        ("ua-parser-js", "1.0.0", "executable"),
    ):
        assert of(name, version, differs(word)).outcome == "held", name
    assert of("nx-s1ngularity", "21.5.0", differs("install_script")).outcome == "served"  # which had one before
    assert of("axios", "1.14.1", differs("publisher")).outcome == "served"  # who could publish before
    played = play(get_incident("event-stream"), differs("publisher", age_days=30))[0]
    assert (played.version, played.served_ms) == ("3.3.6", 48 * DAY_MS)
    (new,) = play(get_incident("torchtriton"), differs("executable"))
    assert new.outcome == "served"  # with nothing before


def test_a_word_alone_finds_the_packages_of_the_incidents_that_had_it() -> None:
    def held_by(word: str) -> set[str]:
        rule = {"name": "word", "match": {"differs": [word]}, "action": "quarantine", "missing": "allow"}
        return {each.package for one in incidents() for each in play(one, rule) if each.outcome == "held"}

    packages = [each for one in incidents() for each in one.packages]
    first_dense = {
        each.name
        for each in packages
        if any(one.dense for one in each.harmful) and not any(one.dense for one in each.versions if not one.harmful)
    }
    assert held_by("obfuscated") == first_dense > {"chalk", "keyv"}
    assert held_by("young_dependency") == {"event-stream", "axios"}


def test_a_dependency_does_not_count_while_what_needs_it_is_held() -> None:
    incident = get_incident("event-stream")
    played = play(incident, {"name": "one", "match": {"packages": ["event-stream"]}})
    assert [each.outcome for each in played] == ["held", "served"]
    assert outcome_of(incident, played) == "held"
    played = play(incident, {"name": "other", "match": {"packages": ["flatmap-stream"]}})
    assert outcome_of(incident, played) == "served"


def test_what_is_not_known_is_said_with_the_rule_that_decides_by_it() -> None:
    rule = {"name": "known", "match": {"advisories": "critical"}, "missing": "quarantine"}
    (first, *_) = play(get_incident("tanstack"), rule, loaded=False)
    (holding,) = first.throughout
    assert (holding.action, holding.missing) == ("quarantine", "whether it has vulnerabilities")
    assert {each.outcome for each in play(get_incident("tanstack"), rule)} == {"served"}


def test_a_record_tells_of_the_versions_that_were_there_when_it_was_written() -> None:
    rule = {"name": "known", "match": {"advisories": "critical"}, "missing": "allow"}
    played = {each.version: each for each in play(get_incident("ultralytics"), rule)}
    assert played["8.3.46"].outcome == "served"
    known = {each.version: each for each in play(get_incident("litellm"), rule)}
    assert [each.by is None for each in known["1.82.7"].spans] == [True, False]
    assert known["1.82.7"].served_ms < HOUR_MS


def test_an_incident_is_asked_at_the_moments_that_people_ask_about() -> None:
    played = of("event-stream", "0.1.1", {"name": "day", "match": {"age_days": 1}})
    assert played.spans[0].until_ms - played.spans[0].from_ms == DAY_MS
