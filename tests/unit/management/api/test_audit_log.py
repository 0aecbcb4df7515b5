"""Rows without a change are queued, counted for anonymous callers, and kept while the catalog cannot be written."""

import json

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher

from pkgrepo.errors import StorageFull
from pkgrepo.management.api.audit_log import COUNTS_S, FAILED, MAX_ADDRESSES, MAX_KINDS, QUEUE_LIMIT, REFUSED, AuditLog
from pkgrepo.model import ANONYMOUS, Actor
from pkgrepo.storage.catalog.server.audit import LONGEST_TEXT, Entry, list_audit
from tests.support.catalog import MemoryCatalog
from tests.support.repositories import FixedClock

ADA = Actor(user_id=7, name="ada", address="192.0.2.1")


class FullDisk(MemoryCatalog):
    """A catalog that takes no writes while ``full``."""

    full = False

    async def write(self, command, /, *args, **kwargs):
        if self.full:
            raise StorageFull("catalog")
        return await super().write(command, *args, **kwargs)


class Scene:
    def __init__(self):
        self.catalog = FullDisk()
        self.copies = []
        self.audit_log = AuditLog(self.catalog, FixedClock(), Clock(), self.copies.append)

    def do(self, work):
        outcome = []
        Deferred.fromCoroutine(work).addBoth(outcome.append)
        assert outcome == [None]

    def rows(self):
        return self.catalog.peek(list_audit, limit=10_000)


@pytest.fixture
def scene():
    return Scene()


def stranger(number=0, action="login", path="x"):
    actor = Actor.of(ANONYMOUS, address=f"198.51.100.{number}", request_id=f"r-{number}")
    return Entry(actor, action, path, REFUSED, {"reason": "wrong"})


def test_a_thousand_refusals_of_anonymous_callers_are_one_row(scene):
    for number in range(1000):
        scene.audit_log.enqueue(stranger(number % 3, path="x" * 30_000))
    scene.do(scene.audit_log.flush())
    assert scene.rows() == []
    scene.do(scene.audit_log.flush_all())
    (row,) = scene.rows()
    assert (row.actor, row.action, row.outcome, row.object, row.address) == ("anonymous", "login", REFUSED, "", "")
    assert row.detail["count"] == 1000
    assert row.detail["addresses"] == {"198.51.100.0": 334, "198.51.100.1": 333, "198.51.100.2": 333}
    scene.do(scene.audit_log.flush_all())
    assert len(scene.rows()) == 1


def test_the_row_of_a_single_refusal_has_all_its_fields(scene):
    scene.audit_log.enqueue(stranger(5, path="main/py"))
    scene.do(scene.audit_log.flush_all())
    (row,) = scene.rows()
    assert (row.object, row.address, row.request_id, row.detail) == (
        "main/py",
        "198.51.100.5",
        "r-5",
        {"reason": "wrong"},
    )


def test_kinds_and_addresses_are_counted_separately_up_to_a_bound(scene):
    for number in range(3 * MAX_KINDS):
        scene.audit_log.enqueue(stranger(action=f"made up {number}"))
    for number in range(3 * MAX_ADDRESSES):
        scene.audit_log.enqueue(stranger(number, action="made up 0"))
    scene.do(scene.audit_log.flush_all())
    rows = scene.rows()
    assert len(rows) == MAX_KINDS + 1
    assert {row.action: row.detail["count"] for row in rows if row.action == "other"} == {"other": 2 * MAX_KINDS}
    first = next(row for row in rows if row.action == "made up 0")
    assert len(first.detail["addresses"]) == MAX_ADDRESSES + 1
    assert sum(first.detail["addresses"].values()) == first.detail["count"] == 1 + 3 * MAX_ADDRESSES


def test_known_callers_have_rows_of_their_own(scene):
    for number in range(3):
        scene.audit_log.enqueue(Entry(ADA, "login", f"o{number}"))
    scene.do(scene.audit_log.flush())
    assert [row.object for row in scene.rows()] == ["o2", "o1", "o0"]
    assert [json.loads(copy)["object"] for copy in scene.copies] == ["o0", "o1", "o2"]


def test_a_burst_of_a_known_caller_loses_no_row_while_the_catalog_can_be_written(scene):
    for number in range(3 * QUEUE_LIMIT):
        scene.audit_log.enqueue(Entry(ADA, "login", f"o{number}"))
    scene.do(scene.audit_log.flush())
    assert [row.object for row in reversed(scene.rows())] == [f"o{number}" for number in range(3 * QUEUE_LIMIT)]


def test_on_a_full_disk_the_queue_is_bounded_and_lost_rows_are_counted(scene):
    scene.catalog.full = True
    for number in range(QUEUE_LIMIT):
        scene.audit_log.enqueue(Entry(ADA, "login", f"o{number}"))
    scene.do(scene.audit_log.flush())
    for _ in range(7):
        scene.audit_log.enqueue(Entry(ADA, "login", "lost"))
    scene.do(scene.audit_log.flush())
    assert scene.rows() == []
    scene.catalog.full = False
    scene.do(scene.audit_log.flush())
    last, *kept = scene.rows()
    assert (last.actor, last.action, last.outcome, last.detail) == ("system", "audit.lost", FAILED, {"count": 7})
    assert [row.object for row in reversed(kept)] == [f"o{number}" for number in range(QUEUE_LIMIT)]
    scene.do(scene.audit_log.flush())
    assert len(scene.rows()) == QUEUE_LIMIT + 1


def test_rows_are_written_although_the_waiting_reader_was_cancelled(scene, monkeypatch):
    writing = Deferred()
    monkeypatch.setattr(scene.catalog, "write", lambda *_args: writing)
    scene.audit_log.enqueue(Entry(ADA, "login", "x"))
    scene.audit_log.enqueue(stranger())
    reading = Deferred.fromCoroutine(scene.audit_log.flush_all())
    reading.addErrback(lambda failure: failure.trap(CancelledError))
    reading.cancel()
    writing.errback(StorageFull("catalog"))
    monkeypatch.undo()
    scene.do(scene.audit_log.flush())
    assert [row.actor for row in scene.rows()] == ["anonymous", "ada"]


def test_a_stop_logs_how_many_rows_are_lost(scene):
    events = []
    globalLogPublisher.addObserver(events.append)
    try:
        scene.do(scene.audit_log.close())
        assert events == []
        scene.catalog.full = True
        scene.audit_log.enqueue(Entry(ADA, "login", "x"))
        scene.audit_log.enqueue(stranger())
        scene.do(scene.audit_log.close())
    finally:
        globalLogPublisher.removeObserver(events.append)
    assert [each["count"] for each in events] == [2]


def test_long_texts_in_rows_are_cut(scene):
    deep = nested = {}
    for _ in range(50):
        nested["x"] = nested = {}
    detail = {"long": "y" * 10_000, "many": list(range(10_000)), "deep": deep, "wide": {str(n): n for n in range(999)}}
    scene.audit_log.enqueue(Entry(ADA, "a", "o" * 10_000, FAILED, detail))
    scene.do(scene.audit_log.flush())
    (row,) = scene.rows()
    assert len(row.object) == len(row.detail["long"]) == LONGEST_TEXT
    assert row.object.endswith("…")
    assert len(scene.copies[0]) < 5000
    huge = {str(n): "z" * 400 for n in range(99)}
    scene.audit_log.enqueue(Entry(ADA, "a", "o", FAILED, huge))
    scene.do(scene.audit_log.flush())
    assert scene.rows()[0].detail == {"left_out": "the detail is too long"}


def test_the_bound_of_the_rows_of_a_day_is_what_the_documentation_says():
    assert (MAX_KINDS + 1) * 86_400 / COUNTS_S < 15_000
