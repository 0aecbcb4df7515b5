"""Specifications as values, and as the catalog stores them."""

from __future__ import annotations

import json
from datetime import date

import pytest
from attrs import evolve

from pkgrepo.formats.rubygems.gemspec import ANY, Dependency, GemSpec, meta_of, render_requirement, spec_of

SPEC = GemSpec(
    name="alpha",
    number="1.0.0",
    platform="ruby",
    original_platform="ruby",
    rubygems_version="3.3.15",
    date=date(2024, 5, 6),
    summary="",
)


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        evolve(SPEC, email=("a@x.example",), authors=("Ä", "B"), metadata={"k": "v"}, licenses=("MIT",)),
        evolve(SPEC, email="a@x.example", description="", homepage=None, platform="java", original_platform="jruby"),
        evolve(
            SPEC,
            required_ruby=((">=", "2.5"), ("<", "4")),
            dependencies=(Dependency("b", "runtime"), Dependency("c", "development", (("~>", "1"),))),
        ),
    ],
)
def test_a_stored_specification_can_be_rebuilt(spec: GemSpec) -> None:
    again = spec_of(json.loads(json.dumps(meta_of(spec))))
    assert again == evolve(spec, description=spec.description or None)


def test_names_of_a_specification() -> None:
    assert SPEC.full_name == "alpha-1.0.0"
    assert evolve(SPEC, platform="java").full_name == "alpha-1.0.0-java"
    assert not SPEC.prerelease
    assert evolve(SPEC, number="1.0.b").prerelease


def test_requirements_are_sorted_as_text() -> None:
    assert render_requirement(((">=", "1.0"), ("<", "3")), "&") == "< 3&>= 1.0"
    assert render_requirement(ANY, ", ") == ">= 0"
