"""The review by OWASP ASVS in the threat model: no requirement is left out or twice, and what it names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "pkgrepo" / "docs" / "threats.md"
HEADING = "## Review by OWASP ASVS 5.0.0, level 2"
# How many requirements of levels 1 and 2 each section of ASVS 5.0.0 has; they are numbered from 1.
SECTIONS = """
1.1 2, 1.2 9, 1.3 11, 1.4 3, 1.5 2, 2.1 3, 2.2 3, 2.3 4, 2.4 1, 3.2 2, 3.3 4, 3.4 6, 3.5 5, 3.7 2, 4.1 3, 4.2 1,
4.3 2, 4.4 4, 5.1 1, 5.2 3, 5.3 2, 5.4 3, 6.1 3, 6.2 12, 6.3 4, 6.4 4, 6.5 5, 6.6 3, 6.8 4, 7.1 3, 7.2 4, 7.3 2,
7.4 5, 7.5 2, 7.6 2, 8.1 2, 8.2 3, 8.3 1, 8.4 1, 9.1 3, 9.2 4, 10.1 2, 10.2 2, 10.3 4, 10.4 11, 10.5 5, 10.6 2,
10.7 3, 11.1 2, 11.2 3, 11.3 3, 11.4 4, 11.5 1, 11.6 1, 12.1 3, 12.2 2, 12.3 4, 13.1 1, 13.2 5, 13.3 2, 13.4 5,
14.1 2, 14.2 4, 14.3 3, 15.1 3, 15.2 3, 15.3 7, 16.1 1, 16.2 5, 16.3 4, 16.4 3, 16.5 3, 17.1 1, 17.2 4, 17.3 2
"""
_NUMBERS = re.compile(r"(\d+\.\d+)\.(\d+)(?:-(\d+))?")
_PATH = re.compile(r"`([\w./-]+\.(?:py|md|js|txt)|proxy/upstream)`")


def rows() -> Iterator[list[str]]:
    for line in PAGE.read_text("utf-8").partition(HEADING)[2].splitlines():
        if line.startswith("| ") and line[2].isdigit():
            yield [each.strip() for each in line.strip("|").split("|")]


def numbers(cell: str) -> Iterator[str]:
    for each in cell.split(", "):
        found = _NUMBERS.fullmatch(each)
        assert found, each
        yield from (f"{found[1]}.{at}" for at in range(int(found[2]), int(found[3] or found[2]) + 1))


def test_each_requirement_is_judged_once() -> None:
    sections = (each.split() for each in SECTIONS.replace("\n", " ").split(","))
    wanted = [f"{section}.{at}" for section, count in sections for at in range(1, int(count) + 1)]
    assert len(wanted) == 253
    assert sorted(each for cells in rows() for each in numbers(cells[0])) == sorted(wanted)


def test_code_and_tests_that_are_named_exist() -> None:
    for cells in rows():
        for column, cell in enumerate(cells):
            for path in _PATH.findall(cell):
                beginnings = [ROOT / "tests"] if column == 3 else [ROOT / "pkgrepo", ROOT / "tests", ROOT]
                assert any((each / path).exists() for each in beginnings), (cells[0], path)
