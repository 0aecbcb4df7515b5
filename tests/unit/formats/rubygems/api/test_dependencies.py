"""The dependencies that old versions of Bundler ask for, in Ruby's own format."""

from __future__ import annotations

from datetime import UTC, date, datetime

from pkgrepo.formats.rubygems.api.records import Release
from pkgrepo.formats.rubygems.api.requests import dependency_rows, marshal_rows
from pkgrepo.formats.rubygems.gemspec import Dependency, GemSpec

SPEC = GemSpec(
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
    rows = dependency_rows([Release(SPEC, datetime.now(UTC), yanked=False, sha256="")])
    assert marshal_rows(rows) == RUBYS
    assert marshal_rows([]) == bytes.fromhex("04085b00")
