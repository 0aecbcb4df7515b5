"""Which files are before one, and which of these it is compared with."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.repositories.policy.conditions import Facts
from pkgrepo.repositories.policy.line import Line, Peer

NPM: Any = npm().versions
PYTHON: Any = python().versions


def line(*versions: str, kinds: Any = NPM) -> Line:
    return Line([peer(each, f"demo/-/demo-{each}.tgz") for each in versions], kinds)


def peer(version: str, path: str) -> Peer:
    return Peer(path, Facts(package="demo", versions=(version,)), ())


@pytest.mark.parametrize(
    ("version", "before"),
    [
        ("1.0.0", []),
        ("1.1.0", ["1.0.0"]),
        ("1.1.1", ["1.1.0", "1.0.0", "1.1.0-rc.1"]),
        ("2.1.0", ["2.0.0", "1.1.0", "1.0.0", "2.0.0-rc.1", "1.1.0-rc.1"]),
        ("2.0.0", ["1.1.0", "1.0.0", "2.0.0-rc.1", "1.1.0-rc.1"]),
        ("2.0.1-rc.1", ["2.0.0", "2.0.0-rc.1", "1.1.0", "1.1.0-rc.1", "1.0.0"]),
        ("3.0.0", ["2.0.0", "1.1.0", "1.0.0", "2.0.0-rc.1", "1.1.0-rc.1"]),
    ],
)
def test_the_same_major_version_comes_first_and_prereleases_last(version: str, before: list[str]) -> None:
    found = line("2.0.0", "1.0.0", "1.1.0", "1.1.0-rc.1", "2.0.0-rc.1", version)
    wanted = [each for each in before if each != version]
    if version == "1.1.0":
        wanted = ["1.0.0", "1.1.0-rc.1"]
    assert [each.version for each in found.before(version, "x.tgz")] == wanted


def test_what_cannot_be_ordered_has_nothing_before_it() -> None:
    assert [each.version for each in line("1.0.0", "what").before("2.0.0", "x.tgz")] == ["1.0.0"]
    with pytest.raises(Invalid):
        next(line("1.0.0").before("what", "x.tgz"))


@pytest.mark.parametrize(
    ("path", "compared"),
    [
        ("demo-1.1-cp311-cp311-manylinux_2_17_x86_64.whl", "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"),
        ("demo-1.1-cp314-cp314-manylinux_2_28_aarch64.whl", "demo-1.0-cp311-cp311-manylinux_2_17_aarch64.whl"),
        ("demo-1.1-cp314-cp314-win_amd64.whl", "demo-1.0-cp311-cp311-win_amd64.whl"),
        ("demo-1.1.tar.gz", "demo-1.0.tar.gz"),
        ("demo-1.1-py3-none-any.whl", "demo-1.0-py3-none-any.whl"),
    ],
)
def test_of_several_files_the_one_that_is_most_alike_is_compared(path: str, compared: str) -> None:
    names = [
        "demo-1.0.tar.gz",
        "demo-1.0-py3-none-any.whl",
        "demo-1.0-cp311-cp311-win_amd64.whl",
        "demo-1.0-cp311-cp311-manylinux_2_17_aarch64.whl",
        "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
    ]
    found = Line([peer("1.0", f"demo/1.0/{each}") for each in names], PYTHON)
    assert [each.path.rpartition("/")[2] for each in found.before("1.1", f"demo/1.1/{path}")] == [compared]


def test_versions_are_before_one_if_they_were_published_earlier_unless_they_say_that_themselves() -> None:
    times = {"1.0.0": 10, "2.0.0": 20, "1.0.1": 30, "0.9.0": 40}
    made = [Peer(each, Facts(package="demo", versions=(each,), published_ms=ms), ()) for each, ms in times.items()]

    def before(version: str, kinds: Any) -> list[str]:
        return [each.version for each in Line(made, kinds).before(version, version, times[version])]

    assert {each: before(each, NPM) for each in times} == {
        "1.0.0": [],
        "2.0.0": ["1.0.0"],
        "1.0.1": ["1.0.0", "2.0.0"],
        "0.9.0": ["1.0.0", "1.0.1", "2.0.0"],
    }
    assert {each: before(each, evolve(NPM, self_dated=True)) for each in times} == {
        "1.0.0": ["0.9.0"],
        "2.0.0": ["1.0.1", "1.0.0", "0.9.0"],
        "1.0.1": ["1.0.0", "0.9.0"],
        "0.9.0": [],
    }
