"""Whole runs have each file once, and in the order in which those that wait stand beside others."""

from __future__ import annotations

from tests.support.running_order import TESTS, mixed

LAYERS = ("clients", "faults", "server", "contracts", "unit")


def test_every_file_is_run_once():
    files = [path for layer in LAYERS for path in sorted((TESTS / layer).rglob("test_*.py"))]
    ordered = mixed(files)
    assert sorted(ordered) == sorted(files)
    assert len(ordered) == len({*files})


def test_what_waits_stands_between_the_others_and_short_files_are_last():
    names = [f"clients/test_{n}.py" for n in range(4)] + ["clients/console/test_a.py"]
    names += [f"unit/test_{n}.py" for n in range(10)]
    ordered = [str(each.relative_to(TESTS)) for each in mixed([TESTS / each for each in names])]
    assert ordered[0] == "clients/console/test_a.py"
    assert [ordered.index(f"clients/test_{n}.py") for n in range(4)] == [1, 4, 7, 11]
    assert ordered[-2:] == ["unit/test_8.py", "unit/test_9.py"]
