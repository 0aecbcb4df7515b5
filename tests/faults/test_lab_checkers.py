"""The last checks of the lab of faults find nothing wrong with a sound server, and find what was spoiled."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import define

from tests.lab.faults.checkers import leftovers as collected
from tests.lab.faults.checkers.contents import differences
from tests.lab.faults.checkers.events import read_events, wrong_events
from tests.lab.faults.checkers.leftovers import leftovers
from tests.lab.faults.checkers.reindexed import contents, reindexed
from tests.lab.faults.checkers.secrets import in_arguments, in_files, in_texts
from tests.lab.faults.checkers.usage import wrong_counts
from tests.lab.faults.ledger import Item, Ledger
from tests.lab.faults.rounds import AUTH
from tests.lab.faults.writers import place_of
from tests.support.data_folder import DataFolder, wait_for
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import ServerProcess, running

pytestmark = [pytest.mark.faults, pytest.mark.folder("looks into a folder"), pytest.mark.timeout(600)]

SECRET = "pkgr_ci_0123456789abcdefghij"


@define
class Lab:
    """A server with a version of each format, one of which was deleted and restored, and their ledger."""

    server: ServerProcess
    api: Publisher
    data: DataFolder
    ledger: Ledger
    folder: Path


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with running(tmp_path) as server:
        api = Publisher(server.url, AUTH)
        for format_, name in REPOSITORIES.items():
            api.create(name, format_)
            item = Item(format_, "demo", "1.0.0")
            ledger.begin("publish", item)
            ledger.end("publish", item := item.published(api.publish(format_, "demo", "1.0.0")), there=True)
            if format_ == "npm":
                ledger.begin("delete", item)
                entry = api.ask("DELETE", place_of(item)).json()["trash"]
                ledger.end("delete", item, there=False)
                ledger.begin("restore", item)
                api.ask("POST", f"api/trash/{entry}/restore")
                ledger.end("restore", item, there=True)
        yield Lab(server, api, DataFolder(tmp_path / "data"), ledger, tmp_path)


def test_missing_events_and_events_out_of_order_are_told(lab: Lab) -> None:
    events = read_events(lab.api)
    assert [*wrong_events(events, lab.ledger)] == []
    npm = [each for each in events if str(each["subject"]).startswith("main/node/")]
    assert len(npm) == 3, npm
    for each in npm:
        [told] = wrong_events([other for other in events if other is not each], lab.ledger)
        assert "npm demo 1.0.0 has 0 events" in told
        [told] = wrong_events([*events, {**each, "seq": events[-1]["seq"] + 1, "id": "evt_new"}], lab.ledger)
        assert "npm demo 1.0.0 has 2 events" in told
    assert len([*wrong_events(events[::-1], lab.ledger)]) == len(events) - 1
    assert "events have the same id" in [*wrong_events([*events, {**events[-1], "seq": 10**9}], lab.ledger)]


def test_a_change_without_an_answer_may_have_an_event_or_none(lab: Lab) -> None:
    events = read_events(lab.api)
    for version in ("1.0.0", "2.0.0"):
        lab.ledger.begin("publish", Item("raw", "demo", version))
    assert [*wrong_events(events, lab.ledger)] == []
    lab.ledger.end("publish", Item("raw", "demo", "2.0.0"), there=True)
    [told] = wrong_events(events, lab.ledger)
    assert "raw demo 2.0.0 has 0 events package.published; publish was asked for 1 times" in told


def test_counts_that_are_not_the_sums_are_told(lab: Lab) -> None:
    assert [*wrong_counts(lab.data)] == []
    for column in ("bytes_used", "package_count", "version_count"):
        lab.data.change(f"UPDATE repository SET {column} = {column} + 1 WHERE key = 'node'")
        [told] = wrong_counts(lab.data)
        assert told.startswith(f"{column} of node is ")
        lab.data.change(f"UPDATE repository SET {column} = {column} - 1 WHERE key = 'node'")


def test_what_a_collection_leaves_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*leftovers(lab.api, lab.data)] == []
    monkeypatch.setattr(collected, "SETTLED_S", 0)
    copy = next(iter(lab.data.copies().values()))
    stray = copy.with_name("0" * 64 + ".1")
    stray.write_bytes(b"stray")
    lab.data.uploads.mkdir(exist_ok=True)
    (left := lab.data.uploads / "left").write_bytes(b"left")
    found = [*leftovers(lab.api, lab.data)]
    assert [each.partition(" ")[0] for each in found] == ["the", "an"], found
    left.unlink()
    stray.unlink()
    moved = copy.rename(copy.with_suffix(".moved"))
    found = [*collected._found(lab.data)]
    assert any("which the storage does not have" in each for each in found), found
    moved.rename(copy)
    lab.data.change("DELETE FROM file WHERE path LIKE '%demo-1.0.0.gem'")
    assert any(each.startswith("nothing refers to") for each in collected._found(lab.data))
    lab.data.change("UPDATE blob SET touched_at = touched_at + 3600000")  # as a clock leaves it that was ahead
    assert [*collected._found(lab.data)] == []


def test_what_a_rebuilt_catalog_lacks_is_told(lab: Lab) -> None:
    before = contents(lab.api)
    assert all(before.values())
    wait_for(lab.data.is_in_step, lab.server)
    lab.server.stop()
    (lab.folder / "one").mkdir()
    assert [*reindexed(before, lab.data, lab.folder / "one", AUTH)] == []
    shutil.rmtree(lab.data.layout / REPOSITORIES["ruby"])
    (lab.folder / "two").mkdir()
    found = [*reindexed(before, lab.data, lab.folder / "two", AUTH)]
    assert any("main/gems" in each for each in found), found


def test_a_copy_that_differs_is_told(lab: Lab) -> None:
    [(key, version)] = contents(lab.api)["node"].items()
    assert [*differences("it", {key: version}, {key: version})] == []
    for other in ({}, {key: ("yanked", *version[1:])}, {key: version, ("demo", "2.0.0"): version}):
        assert len([*differences("it", {key: version}, other)]) == 1


def test_secrets_are_found_and_not_told(tmp_path: Path) -> None:
    header = f"Authorization: Basic {b64encode(f'admin:{SECRET}'.encode()).decode()}"
    for text in (f"a line\nGET /x?token={SECRET}\n", header):
        [told] = in_texts([SECRET], [text])
        assert SECRET not in told
    assert [*in_texts([SECRET], ["a line"])] == []
    (tmp_path / "storages").mkdir()
    (tmp_path / "storages" / "package").write_text(SECRET)
    assert [*in_files([SECRET], tmp_path)] == []
    (tmp_path / "log").write_text(SECRET)
    [told] = in_files([SECRET], tmp_path)
    assert told.startswith("log has the secret pkgr_ci_0123")
    children = {1: {1: "2 13"}, 2: {2: "", 3: "12 "}, 12: {12: ""}, 13: {13: ""}, 14: {14: ""}}  # by their threads
    for pid, threads in children.items():
        for thread, text in threads.items():
            (folder := tmp_path / "proc" / str(pid) / "task" / str(thread)).mkdir(parents=True)
            (folder / "children").write_text(text)
        arguments = f"pkgrepo\0--token\0{SECRET}\0" if pid in (12, 14) else "pkgrepo\0"
        (tmp_path / "proc" / str(pid) / "cmdline").write_bytes(arguments.encode())
    [told] = in_arguments([SECRET], 1, tmp_path / "proc")  # 14 is another program of this machine
    assert "process 12" in told
