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
