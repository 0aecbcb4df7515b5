import pytest

from pkgrepo.model import Actor
from pkgrepo.storage.catalog.packages import events
from tests.support.catalog import MemoryCatalog

ALICE = Actor(user_id=4, name="alice", token_id=9)


def append(catalog, **how):
    how = {
        "repository_id": 1,
        "package_id": 1,
        "package_key": "demo",
        "version_key": "1",
        "kind": "published",
        "data": {},
        "actor": ALICE,
        "now_ms": 1500,
        **how,
    }
    catalog.do(events.append_event, **how)
    return catalog.peek(events.last_seq)


def test_an_event_comes_back_as_written():
    catalog = MemoryCatalog()
    assert catalog.peek(events.last_seq) == 0
    seq = append(catalog, data={"files": ["a"]})
    (event,) = catalog.peek(events.events_after, 0, 10)
    assert (event.seq, event.repository_id, event.package_id, event.package_key, event.version_key) == (
        seq,
        1,
        1,
        "demo",
        "1",
    )
    assert (event.kind, event.data, event.at.timestamp()) == ("published", {"files": ["a"]}, 1.5)
    assert (event.user_id, event.actor, event.token_id) == (4, "alice", 9)


def test_events_are_paged_in_order():
    catalog = MemoryCatalog()
    seqs = [append(catalog, repository_id=1 + n % 2, package_id=n % 3) for n in range(12)]
    assert [event.seq for event in catalog.peek(events.events_after, seqs[3], 4)] == seqs[4:8]
    assert [event.seq for event in catalog.peek(events.events_after, seqs[3], 4, 1)] == seqs[4:12:2]
    assert catalog.peek(events.events_after, seqs[-1], 10) == []


def test_a_sequence_number_is_never_reused():
    catalog = MemoryCatalog()
    seq = append(catalog)
    catalog.tx.execute("DELETE FROM event")
    assert append(catalog) > seq


def test_removals_of_repositories_are_found_among_other_events():
    catalog = MemoryCatalog()
    append(catalog, repository_id=7, data={"uid": "not this"})
    append(catalog, repository_id=7, package_id=None, kind=events.REPOSITORY_REMOVED, data={"uid": "u7"})
    append(catalog, repository_id=8, package_id=None, kind=events.REPOSITORY_REMOVED, data={"uid": "u8"})
    assert catalog.peek(events.removed_repository_uids) == {"u7", "u8"}
    assert catalog.peek(events.find_removal_event, 7).data == {"uid": "u7"}
    assert catalog.peek(events.find_removal_event, 9) is None


@pytest.mark.parametrize(
    "query", [events.removed_repository_uids, lambda r: events.find_removal_event(r, 7)], ids=["all", "one"]
)
def test_removals_of_repositories_are_found_without_reading_other_events(query):
    catalog, steps = MemoryCatalog(), []

    class Planning:
        def all(self, sql, parameters=()):
            steps.extend(row[3] for row in catalog.tx.all(f"EXPLAIN QUERY PLAN {sql}", parameters))
            return []

        def one(self, sql, parameters=()):
            self.all(sql, parameters)

    query(Planning())
    assert len(steps) == 1
    assert "USING INDEX event_removed" in steps[0]
