"""Resources that are made at the first request for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.resource import IResource

from pkgrepo.concurrency.late import Late
from pkgrepo.http.answering.late import LateResource, late_branches
from pkgrepo.http.site import make_site
from tests.support.http_answering import FULL, answering_with, get
from tests.support.inprocess_server import Provoked
from tests.support.memory_connection import Connection, HandlerResource


class Threads:
    """Calls what it was given when the test says so."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def __call__(self, func: Callable[[], Any]) -> Deferred[Any]:
        outcome: Deferred[Any] = Deferred()
        self._waiting.append((func, outcome))
        return outcome

    def run(self) -> None:
        waiting, self._waiting = self._waiting, []
        for func, outcome in waiting:
            try:
                result = func()
            except Provoked:
                outcome.errback(Failure())
            else:
                outcome.callback(result)


class Setup:
    def __init__(self, *failures: Exception) -> None:
        self.threads = Threads()
        self.failures = list(failures)
        self.made = 0
        self.rendered: list[bytes] = []
        late = LateResource(Late(self.make), self.threads)
        self.site = make_site(late, reactor=Connection(answering_with(FULL)).clock)

    def make(self) -> IResource:
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return HandlerResource(self.answer)

    async def answer(self, request: Any) -> Any:
        self.rendered.append(request.path)
        return FULL

    def connect(self) -> Connection:
        connection = Connection(answering_with(FULL))
        connection.lose()
        connection.channel = self.site.buildProtocol(None)
        connection.transport.unregisterProducer()
        connection.channel.makeConnection(connection.transport)
        return connection


def test_requests_wait_for_one_load() -> None:
    setup = Setup()
    first, second = setup.connect(), setup.connect()
    first.send(get())
    second.send(get())
    assert first.take() == second.take() == b""
    setup.threads.run()
    assert [first.answer().status, second.answer().status] == [200, 200]
    first.send(get())  # from now on at once
    assert (first.answer().status, setup.made) == (200, 1)


def test_a_load_that_fails_is_told_and_tried_again_by_the_next_request() -> None:
    setup = Setup(Provoked("no room"))
    connection = setup.connect()
    connection.send(get())
    setup.threads.run()
    assert connection.answer().status == 500
    connection.send(get())
    setup.threads.run()
    assert (connection.answer().status, setup.made) == (200, 2)


def test_a_client_that_has_gone_meanwhile_gets_no_answer() -> None:
    for failures in ([], [Provoked("no room")]):
        setup = Setup(*failures)
        gone, patient = setup.connect(), setup.connect()
        gone.send(get(path="/gone"))
        patient.send(get(path="/patient"))
        gone.lose()
        setup.threads.run()
        assert setup.rendered == [b"/patient"]
        assert (gone.take(), patient.answer().status) == (b"", 200)


def test_branches_are_made_together() -> None:
    made: list[dict[str, Any]] = []

    def make() -> dict[str, Any]:
        made.append({name: HandlerResource(answering_with(FULL)) for name in "ab"})
        return made[-1]

    threads = Threads()
    branches: Any = late_branches("ab", make, threads)
    for each in branches.values():
        connection = Connection(answering_with(FULL))
        connection.lose()
        connection.channel = make_site(each, reactor=connection.clock).buildProtocol(None)
        connection.transport.unregisterProducer()
        connection.channel.makeConnection(connection.transport)
        connection.send(get())
        threads.run()
        assert connection.answer().status == 200
    assert len(made) == 1
