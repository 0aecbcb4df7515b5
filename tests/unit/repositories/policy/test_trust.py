"""How far it is known who published a version, and that of the versions before."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.repositories.attestations import Claim, Rank
from pkgrepo.repositories.policy.trust import History, Released, Trust
from pkgrepo.storage.catalog.file_facts import Attested

PROVENANCE = Claim.of(provenance=True)
PUBLISHER = Claim.of(provenance=True, pipeline=True)
STAGED = Claim.of(approved=True)
NONE = Claim()
GOOD = Attested(root="r", verified=True)
BAD = Attested(root="r", why="it is forged")
GONE = Attested(root="r", why="it is not there", until_ms=1)


@pytest.mark.parametrize(
    ("said", "rank"),
    [
        ({}, Rank.NONE),
        ({"provenance": True}, Rank.PROVENANCE),
        ({"pipeline": True}, Rank.NONE),
        ({"provenance": True, "pipeline": True}, Rank.PUBLISHER),
        ({"approved": True}, Rank.STAGED),
        ({"approved": True, "provenance": True}, Rank.STAGED),
    ],
)
def test_claims_are_ranked_as_pnpm_ranks_them(said: dict[str, bool], rank: Rank) -> None:
    assert Claim.of(**said).rank is rank


@pytest.mark.parametrize(
    ("trust", "fell", "none"),
    [
        (Trust(NONE), None, True),
        (Trust(NONE, before=Rank.NONE), False, True),
        (Trust(NONE, before=Rank.PROVENANCE), True, True),
        (Trust(PROVENANCE, before=Rank.NONE), False, None),
        (Trust(PROVENANCE, before=Rank.PUBLISHER), True, None),
        (Trust(PROVENANCE, before=Rank.PROVENANCE), None, None),
        (Trust(PROVENANCE, GOOD, Rank.PROVENANCE), False, False),
        (Trust(PROVENANCE, BAD, Rank.PROVENANCE), True, True),
        (Trust(PROVENANCE, BAD, Rank.NONE), False, True),
        (Trust(PUBLISHER, BAD, Rank.PROVENANCE), True, True),
        (Trust(PROVENANCE, GONE, Rank.NONE), False, None),
        (Trust(PROVENANCE, GONE, Rank.PROVENANCE), None, None),
        (Trust(PROVENANCE, GONE, Rank.PUBLISHER), True, None),
        (Trust(STAGED, before=Rank.STAGED), False, False),
        (Trust(Claim(Rank.STAGED, provenance=True), BAD, Rank.PROVENANCE), True, True),
        (Trust(Claim(Rank.STAGED, provenance=True), GOOD), None, False),
    ],
)
def test_what_is_below_is_known_or_not(trust: Trust, fell: bool | None, none: bool | None) -> None:
    assert (trust.is_below("fell"), trust.is_below("none")) == (fell, none)


def released(*given: tuple[str, int, Rank]) -> list[Released]:
    return [Released(text, at_ms, rank, prerelease="-" in text) for text, at_ms, rank in given]


EVERY = released(
    ("1.0.0", 10, Rank.NONE),
    ("1.1.0-rc.1", 15, Rank.STAGED),
    ("1.1.0", 20, Rank.PROVENANCE),
    ("1.2.0", 30, Rank.PUBLISHER),
    ("1.2.0", 31, Rank.NONE),
    ("1.0.1", 40, Rank.NONE),
)


@pytest.mark.parametrize(
    ("version", "at_ms", "before", "best"),
    [
        ("1.0.0", 10, Rank.NONE, ""),
        ("1.1.0", 20, Rank.NONE, ""),
        ("1.2.0", 30, Rank.PROVENANCE, "1.1.0"),
        ("1.2.0", 31, Rank.PROVENANCE, "1.1.0"),
        ("1.0.1", 40, Rank.PUBLISHER, "1.2.0"),
        ("1.1.0-rc.2", 16, Rank.STAGED, "1.1.0-rc.1"),
        ("2.0.0", None, None, ""),
    ],
)
def test_a_version_is_compared_with_all_others_that_were_published_before(
    version: str, at_ms: int | None, before: Any, best: str
) -> None:
    found = History(EVERY).compare(Trust(NONE), version, at_ms, prerelease="-" in version)
    assert (found.before, found.best) == (before, best)


def test_an_incomplete_history_shows_that_trust_fell_and_not_that_it_did_not() -> None:
    history = History(released(("1.0.0", 10, Rank.PROVENANCE)), complete=False)
    assert history.compare(Trust(NONE), "1.1.0", 20, prerelease=False).is_below("fell")
    assert history.compare(Trust(PROVENANCE, GOOD), "1.1.0", 20, prerelease=False).is_below("fell") is None


def test_without_dates_what_was_first_seen_at_one_time_has_no_order() -> None:
    history = History(released(("1.0.0", 10, Rank.NONE), ("2.0.0", 10, Rank.PROVENANCE)))
    assert history.compare(Trust(NONE), "1.0.0", 10, prerelease=False, dated=False).is_below("fell") is None
    assert history.compare(Trust(NONE), "1.0.0", 10, prerelease=False).is_below("fell") is False
    assert history.compare(Trust(NONE), "3.0.0", 20, prerelease=False, dated=False).is_below("fell")


def test_a_sentence_says_what_fell() -> None:
    assert Trust(NONE, None, Rank.PUBLISHER, "1.2.0").why("fell") == (
        "1.2.0 before it had a trusted publisher, and it has no provenance"
    )
    assert Trust(PROVENANCE, BAD, Rank.PROVENANCE, "1.1.0").why("fell") == (
        "1.1.0 before it had provenance, and it has no provenance that is verified: it is forged"
    )
    assert Trust(NONE).why("none") == "it has no provenance"
