"""The lab of faults finds nothing lost in a few rounds, and finds what is."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from attrs import evolve

from tests.lab.faults.checks import Checker
from tests.lab.faults.engines import ENGINES
from tests.lab.faults.engines.estate import Estate
from tests.lab.faults.ledger import Item, Ledger
from tests.lab.faults.results import summary_of
from tests.lab.faults.rounds import AUTH, Finding, Round
from tests.lab.faults.run import MOST_SPOILED, run
from tests.lab.faults.writers import place_of
from tests.lab.page import Results
from tests.support import server_process
from tests.support.data_folder import DataFolder
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import running

pytestmark = [pytest.mark.faults, pytest.mark.folder("disks and processes of one server"), pytest.mark.timeout(600)]


@pytest.mark.parametrize(("engine", "rounds"), [("sqlite", 6), ("nodes", 3)])
def test_some_rounds_lose_nothing(engine: str, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "WORKERS", ["1"])
    result = run(tmp_path, 5, random.randrange(10**9), engine=ENGINES[engine], rounds=rounds, writers=6)
    assert (result.wrong, result.rounds) == ([], rounds), result.seed
    assert sum(result.faults.values()) >= rounds
    assert result.acknowledged > 20
    Results({engine: summary_of(result, "bin/faults")}).write(tmp_path / "results.json")
    told = Results.read(tmp_path / "results.json").page()
    assert f"| acknowledged changes | {result.acknowledged} |" in told
    for name, times in result.faults.items():
        assert f"| {name} | {times} |" in told


def test_the_page_of_the_book_is_made_of_the_results() -> None:
    """Made again by any run with ``--results tests/data/lab.json --page pkgrepo/docs/reliability.md``."""
    page = (server_process.ROOT / "pkgrepo" / "docs" / "reliability.md").read_text()
    assert page == Results.read(server_process.ROOT / "tests" / "data" / "lab.json").page()


def test_a_run_goes_on_with_new_servers_when_something_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong_at_first(round_: Round) -> list[Finding]:
        return [] if round_.number else [Finding("it is wrong")]

    monkeypatch.setattr(server_process, "WORKERS", ["1"])
    monkeypatch.setattr("tests.lab.faults.run.CHECKS", [wrong_at_first])
    monkeypatch.setattr("tests.lab.faults.jobs.crew.TASKS", ())
    told: list[str] = []
    options = {"rounds": 2, "writers": 2, "tell": told.append, "faults": ["kill -9 of the server"]}
    result = run(tmp_path, 5, 1, engine=ENGINES["sqlite"], **options)  # type: ignore[arg-type]
    [wrong] = result.wrong
    told_of = Results({"sqlite": summary_of(result, "bin/faults")}).page()
    assert ("| wrong otherwise | 1 |" in told_of, f"- {wrong}\n" in told_of) == (True, True)
    assert wrong == "round 0, kill -9 of the server: it is wrong"
    assert (result.rounds, result.lives, result.faults["kill -9 of the server"]) == (2, 2, 2)
    assert [each.name for each in tmp_path.iterdir()] == ["servers0"], "what is wrong is kept, and nothing else"
    lines = (tmp_path / "servers0" / "ledger.jsonl").read_text().splitlines()
    assert result.acknowledged > sum('"acknowledged"' in each for each in lines)
    assert f"WRONG OTHERWISE: {wrong}" in told


def test_a_run_that_cannot_work_ends_and_one_that_is_interrupted_keeps_its_numbers(tmp_path: Path) -> None:
    errors: list[type[BaseException]] = [OSError] * MOST_SPOILED + [KeyboardInterrupt]

    def broken(_folder: Path, _configuration: str) -> AbstractContextManager[Estate]:
        raise errors.pop(0)

    engine = evolve(ENGINES["sqlite"], run=broken)
    (first := tmp_path / "first").mkdir()
    result = run(first, 5, 1, engine=engine)
    assert (len(result.wrong), result.interrupted, result.lives) == (MOST_SPOILED, False, MOST_SPOILED)
    assert all("OSError" in each for each in result.wrong)
    result = run(tmp_path, 5, 1, engine=engine)
    assert (result.wrong, result.interrupted, result.rounds) == ([], True, 0)


def test_what_is_lost_changed_or_there_again_is_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with running(tmp_path) as server:
        publisher, items = Publisher(server.url, AUTH), dict[str, Item]()
        publisher.create(REPOSITORIES["python"], "python")
        for name in ("lost", "changed", "rotten", "back", "fine", "open"):
            item = Item("python", name, "1.0")
            ledger.begin("publish", item)
            items[name] = item.published(publisher.publish("python", name, "1.0"))
            ledger.end("publish", items[name], there=True)
        ledger.end("delete", items["back"], there=False)  # which is not so
        ledger.begin("delete", items["open"])
        publisher.ask("DELETE", place_of(items["lost"]))
        ledger.end("publish", evolve(items["changed"], sha256="0" * 64), there=True)  # which is not so, either
        data = DataFolder(tmp_path / "data")
        [copy] = [path for path in data.copies().values() if items["rotten"].sha256 in path.as_posix()] or [None]
        assert copy is not None
        copy.chmod(0o644)
        copy.write_bytes(copy.read_bytes()[:-1] + b"x")
        checker = Checker(server.url)
        found = {each.item.name: each.why for each in checker.check(ledger.states(), ledger)}
        assert found == {
            "lost": "lost: it was acknowledged, and is answered with 404",
            "changed": "it has other bytes than those that were acknowledged",
            "rotten": "it is answered with 500",
            "back": "it was deleted, and is there",
        }
        indexed = {each.item.name: each.why for each in checker.check_indexes(ledger.states())}
        assert indexed == {"lost": "its index does not list it (404)", "back": "its index lists it (200)"}
        assert len(ledger.history(items["lost"])) == 2
