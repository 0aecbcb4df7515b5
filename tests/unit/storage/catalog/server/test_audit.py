import pytest

from pkgrepo.model import SYSTEM, Actor
from pkgrepo.storage.catalog.server import audit
from tests.support.catalog import MemoryCatalog

ALICE = Actor(user_id=7, name="alice", token_id=3, address="192.0.2.1", request_id="r-1")


@pytest.fixture
def catalog():
    catalog = MemoryCatalog()
    for at, actor, action, what, outcome in (
        (1000, ALICE, "token.created", "token/1", "ok"),
        (2000, SYSTEM, "gc.finished", "main/py", "ok"),
        (3000, ALICE, "package.deleted", "main/py", "refused"),
        (4000, ALICE, "token.revoked", "token/1", "ok"),
    ):
        catalog.do(audit.append_entry, audit.Entry(actor, action, what, outcome), at)
    return catalog


def test_an_entry_is_read_as_it_was_added():
    catalog = MemoryCatalog()
    catalog.do(audit.append_entry, audit.Entry(ALICE, "user.updated", "user/bob", detail={"a": [1, "x"]}), 1500)
    (line,) = catalog.peek(audit.list_audit)
    assert (line.user_id, line.actor, line.token_id, line.address, line.request_id) == (
        7,
        "alice",
        3,
        "192.0.2.1",
        "r-1",
    )
    assert (line.action, line.object, line.outcome, line.detail) == ("user.updated", "user/bob", "ok", {"a": [1, "x"]})
    assert line.at.timestamp() == 1.5


@pytest.mark.parametrize(
    ("filters", "times"),
    [
        ({}, [4, 3, 2, 1]),
        ({"limit": 2}, [4, 3]),
        ({"actor": "alice"}, [4, 3, 1]),
        ({"object": "main/py"}, [3, 2]),
        ({"action": "gc.finished"}, [2]),
        ({"action": "token."}, [4, 1]),
        ({"action": "token"}, []),
        ({"outcome": "refused"}, [3]),
        ({"from_ms": 2000, "to_ms": 4000}, [3, 2]),
        ({"actor": "alice", "object": "main/py"}, [3]),
    ],
)
def test_filters_select_entries_newest_first(catalog, filters, times):
    assert [line.at.timestamp() for line in catalog.peek(audit.list_audit, **filters)] == times


def test_the_next_page_begins_before_the_last_entry(catalog):
    first = catalog.peek(audit.list_audit, limit=3)
    assert [line.at.timestamp() for line in catalog.peek(audit.list_audit, after=(first[-1].seq,))] == [1]


def test_long_texts_are_truncated_and_found_by_the_whole_text(catalog):
    path = "p" * 30_000
    catalog.do(audit.append_entry, audit.Entry(ALICE, "x", path, detail={"reason": path}), 5000)
    (line,) = catalog.peek(audit.list_audit, object=path)
    assert len(line.object) == len(line.detail["reason"]) == audit.LONGEST_TEXT


def test_old_entries_are_removed_in_batches(catalog):
    assert [catalog.do(audit.prune_audit, 4000, limit=2) for _ in range(3)] == [2, 1, 0]
    assert [line.at.timestamp() for line in catalog.peek(audit.list_audit)] == [4]
