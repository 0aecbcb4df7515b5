"""Problem types."""

from __future__ import annotations

from pkgrepo.management.api.problems import PROBLEM_TYPES


def test_each_problem_type_has_a_title_and_an_explanation() -> None:
    for title, explanation in PROBLEM_TYPES.values():
        assert title[0].isupper()
        assert explanation.endswith(".")
