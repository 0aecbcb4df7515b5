"""Sort keys of generated versions against Maven's own C{ComparableVersion}, run by Java."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pkgrepo.formats.maven.version_order import sort_key
from tests.support.client_programs import absent, program

pytestmark = pytest.mark.clients

CLASS = "org.apache.maven.artifact.versioning.ComparableVersion"
JARS = (Path("/usr/share/java/maven3-artifact.jar"), Path("/usr/share/java/commons-lang3.jar"))
PAIRS = 4000

NUMBERS = ["1", "2", "10", "007", "20030911", "99999999999", "1" * 19]
WORDS = [
    "alpha",
    "beta",
    "a",
    "b",
    "m",
    "milestone",
    "rc",
    "cr",
    "SNAPSHOT",
    "snapshot",
    "ga",
    "Final",
    "RELEASE",
    "sp",
    "foo",
    "x",
    "Z",
    "jre",
    "android",
    "redhat",
    "_",
    "+",
    "v",
    "é",
]


@pytest.fixture(scope="module")
def compare() -> Callable[[Sequence[str]], list[int]]:
    """How each version compares with the next one of a list, by the class: -1, 0 or 1."""
    java = program("java")
    for jar in JARS:
        if not jar.exists():
            absent(f"{jar.name} of Maven 3 is not installed")
    command = [str(java), "-Dsun.jnu.encoding=UTF-8", "-Dfile.encoding=UTF-8", "-cp", ":".join(map(str, JARS)), CLASS]

    def run(versions: Sequence[str]) -> list[int]:
        done = subprocess.run([*command, *versions], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
        lines = [line.split(" ")[4] for line in done.stdout.decode().splitlines() if line.startswith("   ")]
        assert len(lines) == len(versions) - 1
        return [{"<": -1, "==": 0, ">": 1}[sign] for sign in lines]

    return run


def by_key(one: str, other: str) -> int:
    left, right = sort_key(one), sort_key(other)
    return (left > right) - (left < right)


def usual(draw: random.Random) -> str:
    """A version that is in no cycle: no word is before a dot or dash, and no list begins with a zero."""
    text = draw.choice(NUMBERS)
    for _ in range(draw.randint(0, 3)):
        text += "." + draw.choice(["0", "00", *NUMBERS])
    while draw.random() < 0.5:
        text += draw.choice(["-", ".", ""]) + draw.choice(WORDS) + draw.choice(NUMBERS)
        if draw.random() < 0.3:
            text += draw.choice(".-") + draw.choice(NUMBERS)
    return text + (draw.choice(["-", ".", ""]) + draw.choice(WORDS) if draw.random() < 0.6 else "")


def short(draw: random.Random) -> str:
    """A version of few different parts, so that pairs have equal beginnings."""
    text = draw.choice("12") + draw.choice(["", ".0", ".1", ".0.0", ".0.1"])
    word = draw.choice(["", "-1", "-alpha", "a1", ".b2", "-rc1", "-SNAPSHOT", "-sp", ".Final", "-x", "x", "-x1"])
    return text + word + (draw.choice(["", "-SNAPSHOT", ".1", "-1"]) if word[-1:].isdigit() else "")


@pytest.mark.parametrize("generate", [usual, short])
def test_keys_compare_as_mavens_class_compares(
    generate: Callable[[random.Random], str], compare: Callable[[Sequence[str]], list[int]]
):
    draw = random.Random(20240102)
    versions = [generate(draw) for _ in range(PAIRS)]
    pairs = list(itertools.pairwise(versions))
    signs = compare(versions)
    assert {-1, 0, 1} == set(signs) or generate is usual
    wrong = [(one, sign, other) for (one, other), sign in zip(pairs, signs, strict=True) if by_key(one, other) != sign]
    assert wrong == []


def anything(draw: random.Random) -> str:
    text = draw.choice([*NUMBERS, "0", "00", *WORDS])
    for _ in range(draw.randint(0, 5)):
        text += draw.choice(["-", ".", "", ".", "-", "--"]) + draw.choice([*NUMBERS, "0", "00", *WORDS])
    return text


def test_keys_differ_from_mavens_class_only_in_cycles_of_its_own(compare: Callable[[Sequence[str]], list[int]]):
    """Where a key disagrees, a third version shows that no order at all can agree with the class."""
    draw = random.Random(20240102)
    versions = [anything(draw) for _ in range(PAIRS)]
    pairs = list(itertools.pairwise(versions))
    wrong = [pair for pair, sign in zip(pairs, compare(versions), strict=True) if by_key(*pair) != sign]
    assert len(wrong) < PAIRS // 20
    rounds = [(pair, third) for pair in wrong for third in sorted(beginnings(pair[0]) | beginnings(pair[1]))]
    signs = compare([version for (one, other), third in rounds for version in (one, third, other, one)])
    found = {pair for at, (pair, _) in enumerate(rounds) if is_cycle(*signs[4 * at : 4 * at + 3])}
    assert found == set(wrong)


def beginnings(version: str) -> set[str]:
    ends = [match.end() for match in re.finditer(r"\d+|[^\d.-]+|[.-]", version)]
    return {"0"} | {version[:end] + more for end in ends for more in ("", "0", "1", ".0", "-1", "-alpha")}


def is_cycle(first: int, second: int, back: int) -> bool:
    """Whether a, b, c with these signs of a to b, b to c and c to a have no order."""
    signs = {first, second, back}
    return signs in ({1}, {-1}, {0, 1}, {0, -1})
