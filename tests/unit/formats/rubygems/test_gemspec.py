"""Specifications of gems, and rows of dependencies."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from attrs import evolve

from pkgrepo.formats.rubygems.api.records import Release
from pkgrepo.formats.rubygems.api.requests import dependency_rows, marshal_rows
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
        evolve(SPEC, extensions=True),
        evolve(SPEC, extensions=False),
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


DEPENDENT = GemSpec(
    name="beta-gem",
    number="0.1.0",
    platform="ruby",
    original_platform="ruby",
    rubygems_version="3.3.15",
    date=date(2024, 5, 6),
    summary="",
    dependencies=(
        Dependency("alpha", "runtime", ((">=", "1.0"), ("<", "3"))),
        Dependency("rake", "development"),
    ),
)

# What Marshal.dump of Ruby 3.1 writes for the same.
RUBYS = bytes.fromhex(
    "04085b067b093a096e616d6549220d626574612d67656d063a0645543a0b6e756d62657249220a302e312e30063b06543a0d706c6174666f"
    "726d49220972756279063b06543a11646570656e64656e636965735b065b0749220a616c706861063b06544922103e3d20312e302c203c20"
    "33063b0654"
)


def test_rows_are_written_as_ruby_does() -> None:
    rows = dependency_rows([Release(DEPENDENT, datetime.now(UTC), yanked=False, sha256="")])
    assert marshal_rows(rows) == RUBYS
    assert marshal_rows([]) == bytes.fromhex("04085b00")
