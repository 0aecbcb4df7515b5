"""The open stores of the storages."""

from datetime import UTC, datetime

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.errors import Conflict, StorageFailed
from pkgrepo.model import Storage
from pkgrepo.repositories.stores import Stores

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORAGE = Storage(id=1, uid="u", name="far", kind="Local", settings={}, active=True, created_at=NOW, updated_at=NOW)


class Opening:
    """Opens of a storage that end when the test says so."""

    def __init__(self):
        self.calls = []
        self.stores = Stores(self.open)

    async def open(self, storage):
        self.calls.append(Deferred())
        return await self.calls[-1]

    def ask(self):
        asked = Deferred.fromCoroutine(self.stores.of(STORAGE))
        results = []
        asked.addBoth(results.append)
        return results


def test_callers_at_once_open_a_storage_once():
    opening = Opening()
    first, second = opening.ask(), opening.ask()
    opening.calls[0].callback("store")
    assert (first, second, opening.ask()) == (["store"], ["store"], ["store"])
    assert len(opening.calls) == 1


@pytest.mark.parametrize("error", [Conflict("not there"), StorageFailed("far")])
def test_what_an_earlier_caller_met_does_not_answer_later_ones(error):
    opening = Opening()
    first = opening.ask()
    later = [opening.ask(), opening.ask()]  # the folder is mounted just before
    opening.calls[0].errback(error)
    assert first[0].check(StorageFailed)
    assert later == [[], []]
    opening.calls[1].callback("store")
    assert later == [["store"], ["store"]]
    assert len(opening.calls) == 2


def test_a_storage_that_stays_away_is_looked_for_once_more():
    opening = Opening()
    asked = [opening.ask(), opening.ask()]
    for count in range(2):
        opening.calls[count].errback(Conflict("not there"))
    assert [each[0].check(StorageFailed) for each in asked] == [StorageFailed, StorageFailed]
    assert len(opening.calls) == 2
