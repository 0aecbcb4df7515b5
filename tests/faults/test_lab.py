"""The lab of faults finds nothing lost in a few rounds, and finds what is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from attrs import evolve

from tests.lab.faults.checks import Checker
from tests.lab.faults.engines import ENGINES
from tests.lab.faults.ledger import Item, Ledger
from tests.lab.faults.results import merged, page, summary_of
from tests.lab.faults.rounds import AUTH
from tests.lab.faults.run import run
from tests.lab.faults.writers import place_of
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
    every = merged(tmp_path / "results.json", engine, summary_of(result, "bin/faults", 5))
    told = page(every, 6)
    assert f"| acknowledged changes | {result.acknowledged} |" in told
    for name, times in result.faults.items():
        assert f"| {name} | {times} |" in told


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
