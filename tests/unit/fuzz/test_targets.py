"""Readers of bytes from outside refuse what they cannot use, in bounded time and memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.fuzz import corpus
from tests.lab.fuzz.mutations import mutate
from tests.lab.fuzz.rounds import run_round
from tests.lab.fuzz.target import Target, bounded_time, check, run
from tests.lab.fuzz.targets import all_targets

TARGETS = all_targets()
SOME = settings(max_examples=25, suppress_health_check=[*HealthCheck])


@pytest.mark.parametrize("name", TARGETS)
def test_stored_inputs_are_read_or_refused(name: str) -> None:
    """Also those that were once neither."""
    stored = dict(corpus.inputs(name))
    assert any(each.startswith(corpus.VALID) for each in stored), "it needs one that is accepted"
    for file, data in stored.items():
        assert check(TARGETS[name], data) == "", file
        if file.startswith(corpus.VALID):
            TARGETS[name].read(data)  # so that mutations are near to what is read


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_inputs_are_read_or_refused(name: str) -> None:
    target, stored = TARGETS[name], [data for _, data in corpus.inputs(name)]

    @SOME
    @given(seed=st.integers(0, 2**32 - 1))
    def mutated(seed: int) -> None:
        chance = random.Random(seed)
        data = target.mend(mutate(chance.choice(stored), target.words, stored, chance))
        with bounded_time():
            run(target, data)

    mutated()  # pytest-twisted would repeat the examples of a test with parameters


def test_no_input_is_stored_for_what_is_no_target() -> None:
    assert {path.name for path in corpus.FOLDER.iterdir()} == set(TARGETS)


def _fails(data: bytes) -> None:
    if data != b"abc":
        raise KeyError(data)


def _hangs(data: bytes) -> None:
    while data != b"abc":
        pass


def _hoards(data: bytes) -> None:
    if data != b"abc":
        bytearray(300 * 1024 * 1024)


@pytest.mark.parametrize(("read", "why"), [(_fails, "KeyError"), (_hoards, "bytes of memory")])
def test_what_breaks_a_promise_is_told(read: object, why: str) -> None:
    target = Target("t", read)  # type: ignore[arg-type]
    assert check(target, b"abc") == ""
    assert why in check(target, b"x")


def test_an_endless_loop_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaseException, match="processor time"), bounded_time(0.05):
        _hangs(b"x")


def test_a_round_finds_what_fails_and_keeps_it(tmp_path: Path) -> None:
    found = run_round(Target("t", _fails), 0.3, seed=1)
    [finding] = found.findings
    assert found.tried > 0
    assert finding.why.startswith("KeyError")
    kept = corpus.keep(finding, tmp_path)
    assert [*corpus.inputs("t", tmp_path)] == [(kept.name, finding.data)]


def _dies(data: bytes) -> None:
    if data != b"abc":
        import os

        os._exit(3)


def test_a_round_finds_what_ends_the_process() -> None:
    [finding] = run_round(Target("t", _dies), 5, seed=1).findings
    assert finding.data != b"abc"
    assert "the process ended" in finding.why
