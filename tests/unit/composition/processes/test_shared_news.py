"""What the workers of a server tell each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.composition.processes.shared_news import (
    DOCUMENTS,
    FILES,
    make_chosen_routes,
    make_mistrusted,
    make_negative_cache,
    make_throttle,
    receive_purges,
)
from pkgrepo.errors import TooManyAttempts
from pkgrepo.process.workers.messages import Message, Published
from pkgrepo.process.workers.peers import WorkerPeers
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument


class Workers:
    """Two workers: what one publishes the other receives."""

    def __init__(self) -> None:
        self.one: WorkerPeers = WorkerPeers(self._to_other, SimpleNamespace())  # type: ignore[arg-type]
        self.other: WorkerPeers = WorkerPeers(lambda _: None, SimpleNamespace())  # type: ignore[arg-type]

    def _to_other(self, message: Message) -> None:
        assert isinstance(message, Published)
        self.other.receive(message)


def test_failed_logins_are_counted_by_the_others() -> None:
    workers = Workers()
    here = make_throttle(workers.one, limit=2)
    there = make_throttle(workers.other, limit=2)
    for _ in range(2):
        here.begin("ann", "192.0.2.1").end(failed=True)
    with pytest.raises(TooManyAttempts):
        there.begin("ann", "192.0.2.7")


def test_an_address_that_logged_in_is_trusted_by_the_others() -> None:
    workers = Workers()
    here = make_throttle(workers.one, limit=2)
    there = make_throttle(workers.other, limit=2)
    here.succeeded("ann", "192.0.2.1")
    for _ in range(2):  # from elsewhere
        here.begin("ann", "192.0.2.7").end(failed=True)
    there.begin("ann", "192.0.2.1").end(failed=False)


def test_purges_reach_the_others() -> None:
    workers, found = Workers(), list[object]()
    repository: Any = SimpleNamespace(id=3)
    untyped: Any = receive_purges
    untyped(
        workers.other,
        SimpleNamespace(find_id={3: repository}.get),
        SimpleNamespace(forget_here=lambda *what: found.append(what)),
        SimpleNamespace(forget_here=lambda each: found.append(("files", each))),
    )
    FILES.publish(workers.one, 3)
    FILES.publish(workers.one, 4)  # which the other does not know yet
    DOCUMENTS.publish(workers.one, (3, ["a", "b"]))
    assert found == [("files", repository), (3, ["a", "b"])]


def test_what_no_upstream_has_the_others_know() -> None:
    workers = Workers()
    document = UpstreamDocument(key="left", trace=({"kind": "absent"},), fetched_ms=1, checked_ms=2, fresh_until_ms=3)
    repository: Any = SimpleNamespace(id=3)
    here, there = (make_negative_cache(each, SystemClock()) for each in (workers.one, workers.other))
    here.add_everywhere(repository, document)
    told = there.find(3, "left")
    assert told is not None
    assert (told.key, told.found, list(told.trace)) == ("left", False, [{"kind": "absent"}])
    assert (told.fetched_ms, told.checked_ms, told.fresh_until_ms) == (1, 2, 3)


def test_files_of_which_a_wrong_one_was_sent_are_known_to_all() -> None:
    workers = Workers()
    there = make_mistrusted(workers.other)
    make_mistrusted(workers.one).note((3, "a/b.jar"))
    assert (3, "a/b.jar") in there


def test_the_route_of_a_version_is_that_of_all() -> None:
    workers = Workers()
    untyped: Any = make_chosen_routes
    here, there = untyped(workers.one, None), untyped(workers.other, None)
    place: Any = (SimpleNamespace(id=3), SimpleNamespace(package_key="g:a", version_key="1.0"))
    here.note(*place, SimpleNamespace(name="central"))
    assert dict(there._known.items()) == {(3, "g:a", "1.0"): "central"}
    here.drop(*place)
    assert dict(there._known.items()) == {}
