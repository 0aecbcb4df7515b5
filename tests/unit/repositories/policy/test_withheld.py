"""What clients are told of versions that rules hide, in documents that have a place for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from attrs import evolve

from pkgrepo.repositories.policy.conditions import SERVER, Placed
from pkgrepo.repositories.policy.refusals import (
    LONGEST_REASON,
    MOST_REASONS,
    MOST_WITHHELD,
    Withheld,
    refusal,
    withheld,
)
from pkgrepo.repositories.policy.rules import Ruling, Verdict
from pkgrepo.repositories.policy.schema import PolicyRule
from tests.support.auth import make_repository

OWN = make_repository(1, format="npm")


def placed(owner: str = OWN.path, **rule: Any) -> Placed:
    return Placed(msgspec.convert({"name": "known bad", "match": {"versions": "1.0.1"}, **rule}, PolicyRule), owner)


def told(*hidden: tuple[str, Verdict]) -> Withheld | None:
    return withheld(OWN, "widget", [(text, verdict, OWN) for text, verdict in hidden])


def test_each_reason_names_its_versions() -> None:
    bad = Verdict(by=placed(reason="steals tokens"))
    held = Verdict(by=placed(name="trust fell", action="quarantine"), waits=True, because="it has no provenance")
    found = told(("3.0.0", held), ("2.0.0", bad), ("1.9.0", held), ("1.8.0", bad))
    assert found is not None
    assert found.versions == ["3.0.0", "1.9.0", "2.0.0", "1.8.0"]
    assert found.why.splitlines() == [
        "widget 3.0.0 (also 1.9.0) is held in quarantine by the rule 'trust fell' of main/r1 (it has no provenance)",
        "widget 2.0.0 (also 1.8.0) is blocked by the rule 'known bad' of main/r1: steals tokens",
    ]


def test_a_block_a_freeze_a_denial_and_the_age_are_reasons() -> None:
    age = evolve(placed(match={"age_days": 3}), short=True)
    freeze = evolve(placed(match={"published_after": "2026-08-01T00:00:00Z"}), frozen=True)
    for verdict, why in (
        (Verdict(by=evolve(placed(), block="b1")), "is blocked by a block of main/r1"),
        (Verdict(by=freeze), "is held, as main/r1 is frozen at 2026-08-01 00:00:00 UTC and it was published later"),
        (Verdict(by=placed(reason="no"), denied=Ruling(approved=False)), "was denied after a quarantine: no"),
        (
            Verdict(by=age, opens_ms=1_788_000_000_000),
            "is younger than the 3 days that policy.minimum_release_age of main/r1 asks for: it will be served from "
            "2026-08-29 10:40:00 UTC",
        ),
        (Verdict(by=age, missing="the time"), "has no publication date, so it may be younger than the 3 days that"),
    ):
        found = told(("1.0.1", verdict))
        assert found is not None
        assert found.why.startswith(f"widget 1.0.1 {why}")
        assert str(refusal("widget 1.0.1", verdict, OWN, OWN)).startswith(f"widget 1.0.1 {why}")


def test_what_a_view_of_the_past_does_not_have_is_not_named() -> None:
    later = Verdict(by=evolve(placed(), later_ms=5))
    assert told(("1.0.1", later)) is None
    assert told() is None


def test_a_member_is_not_named_to_those_who_ask_a_virtual_repository() -> None:
    member = make_repository(2, format="npm")
    found = withheld(OWN, "widget", [("1.0.1", Verdict(by=placed(member.path)), member)])
    assert found is not None
    assert "r2" not in found.why
    assert "of a member of main/r1" in found.why
    of_server = withheld(OWN, "widget", [("1.0.1", Verdict(by=placed(SERVER)), member)])
    assert of_server is not None
    assert "of the server" in of_server.why


def test_what_is_said_is_bounded_and_has_no_control_characters() -> None:
    bad = Verdict(by=placed())
    found = told(*((f"1.0.{number}", bad) for number in range(5000)))
    assert found is not None
    assert len(found.versions) == MOST_WITHHELD
    assert "1.0.0 (also 1.0.1, 1.0.2, 1.0.3, 46 more) is" in found.why
    long = Verdict(by=placed(), because="x\x1b[2J\r\n" + "y" * 5000)
    found = told(("1.0.1", long))
    assert found is not None
    assert (len(found.why), found.why[-3:]) == (LONGEST_REASON, "...")
    assert "x?[2J??yyy" in found.why
    many = [Verdict(by=placed(name=f"rule {number}")) for number in range(40)]
    found = told(*((f"1.0.{number}", each) for number, each in enumerate(many)))
    assert found is not None
    assert found.versions == [f"1.0.{number}" for number in range(MOST_REASONS)]


@pytest.mark.parametrize("waits", [True, False])
def test_the_sentence_of_a_refusal_says_who_lifts_it(waits: bool) -> None:
    said = str(refusal("widget 1.0.1", Verdict(by=placed(), waits=waits), OWN, OWN))
    assert said.endswith(f"; who has the action admin in main/r1 {'approves it' if waits else 'can lift that'}")


def test_lines_say_it_of_each_version_whatever_the_number_of_reasons() -> None:
    hidden = [(f"{number}.0", Verdict(by=placed(reason=f"reason {number}"))) for number in range(MOST_WITHHELD + 1)]
    found = told(*hidden)
    assert found is not None
    assert len(found.versions) == MOST_REASONS
    assert [*found.lines] == [version for version, _ in hidden[:MOST_WITHHELD]]
    assert found.lines["7.0"] == "widget 7.0 is blocked by the rule 'known bad' of main/r1: reason 7"
