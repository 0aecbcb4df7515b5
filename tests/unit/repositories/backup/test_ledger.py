"""The database of what a backup copies, which is closed while a thread may still work with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from pkgrepo.repositories.backup.ledger import Ledger
from pkgrepo.repositories.backup.manifests import Entry

WAIT_S = 30
CALLS: dict[str, Callable[[Ledger, Iterator[str]], object]] = {
    "add_used": lambda ledger, names: ledger.add_used(names),
    "add_listed": lambda ledger, names: ledger.add_listed((Entry(each, 1, each) for each in names), 1),
}


def closed_during(ledger: Ledger, call: Callable[[], object], began: Event, may_end: Event) -> list[type[Exception]]:
    """Close it while another thread is in a call, as when a backup is cancelled; the errors of either."""
    errors: list[type[Exception]] = []

    def noted(work: Callable[[], object]) -> None:
        try:
            work()
        except apsw.Error as error:
            errors.append(type(error))

    working = Thread(target=noted, args=[call])
    working.start()
    assert began.wait(WAIT_S)
    closing = Thread(target=noted, args=[ledger.close])
    closing.start()
    may_end.set()
    for each in (working, closing):
        each.join(WAIT_S)
        assert not each.is_alive()
    with pytest.raises(apsw.ConnectionClosedError):
        ledger.totals()
    return errors


@pytest.mark.parametrize("name", CALLS)
def test_it_is_closed_when_the_call_of_another_thread_has_ended(name: str, tmp_path: Path) -> None:
    began, may_end = Event(), Event()

    def names() -> Iterator[str]:
        for number in range(3):
            yield str(number)
            began.set()
            assert may_end.wait(WAIT_S)

    ledger = Ledger(tmp_path / "ledger.db")
    errors = closed_during(ledger, lambda: CALLS[name](ledger, names()), began, may_end)
    assert errors in ([], [apsw.InterruptError])


def test_a_long_statement_is_ended(tmp_path: Path) -> None:
    ledger, began = Ledger(tmp_path / "ledger.db"), Event()
    ledger._database.create_scalar_function("note", began.set, 0)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(note()) FROM n"

    def call() -> None:
        with ledger._alone() as database:
            database.execute(endless).fetchall()

    assert closed_during(ledger, call, began, Event()) == [apsw.InterruptError]
