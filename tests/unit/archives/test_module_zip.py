"""Rules of module zips: names, major versions, and what a go.mod says."""

from __future__ import annotations

import pytest

from pkgrepo.archives.module_zip import fits_major, read_mod


@pytest.mark.parametrize(
    ("module", "fitting", "others"),
    [
        ("example.com/a", ["v0.1.0", "v1.0.0", "v2.0.0+incompatible"], ["v2.0.0", "v1.0.0+incompatible"]),
        ("example.com/a/v2", ["v2.1.0"], ["v1.0.0", "v3.0.0", "v2.0.0+incompatible"]),
        ("gopkg.in/yaml.v3", ["v3.0.1", "v3.0.0-rc.1"], ["v2.0.0", "v1.0.0", "v3.0.0+incompatible"]),
        ("gopkg.in/a/b.v1", ["v1.0.0", "v0.0.0-20200101000000-abcdefabcdef"], ["v0.1.0", "v2.0.0"]),
        ("gopkg.in/a.v0-unstable", ["v0.1.0"], ["v1.0.0"]),
    ],
)
def test_a_version_fits_the_path_of_its_module(module: str, fitting: list[str], others: list[str]) -> None:
    assert [each for each in (*fitting, *others) if fits_major(module, each)] == fitting


def test_a_go_mod_is_read() -> None:
    found = read_mod(
        b"""// Deprecated: use example.com/a/v2
module "example.com/a" // it

go 1.21
toolchain go1.22.1

require (
\tgolang.org/x/text v0.3.0 // indirect
\tgolang.org/x/net v0.1.0
)
require a.b/c v1.0.0 // why
exclude a.b/d v1.0.0
replace x.y/z => ../z
retract [v1.0.0, v1.1.0] // leaks
retract (
\tv1.5.0 // broken
\tv1.6.0
)
"""
    )
    assert (found.module, found.go, found.deprecated) == ("example.com/a", "1.21", "use example.com/a/v2")
    assert found.requires == {"golang.org/x/net": "v0.1.0", "a.b/c": "v1.0.0"}
    assert found.indirect == {"golang.org/x/text": "v0.3.0"}
    assert found.retracts == ["[v1.0.0, v1.1.0] (leaks)", "v1.5.0 (broken)", "v1.6.0"]


def test_a_comment_far_above_the_module_deprecates_nothing() -> None:
    assert not read_mod(b"// Deprecated: no\n\nmodule example.com/a\n").deprecated
