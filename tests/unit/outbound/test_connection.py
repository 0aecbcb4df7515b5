"""Connections to upstreams: when they are used again, and what a peer cannot make of them."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pkgrepo.outbound import connection as connection_module
from pkgrepo.outbound.head import NotHttp
from pkgrepo.outbound.pool import KEEP_ALIVE_S, Connections

KEY = "here"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


class Body(Protocol):
    def __init__(self):
        self.data = b""
        self.reason = None

    def dataReceived(self, data):
        self.data += data

    def connectionLost(self, reason):
        self.reason = reason.type


class Scene:
    def __init__(self, most=2):
        self.clock = Clock()
        self.connections = Connections(self.clock, most)

    def connect(self):
        connection = self.connections.factory(KEY).buildProtocol(None)
        connection.makeConnection(StringTransport())
        return connection

    def ask(self, connection, *, bodiless=False):
        answers = []
        connection.send(b"request", bodiless=bodiless).addBoth(answers.append)
        return answers

    def idle(self):
        return self.connections.take(KEY)


def read(answer):
    body = Body()
    answer.deliverBody(body)
    return body


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_an_answer_leaves_the_connection_to_the_next_request(size):
    scene = Scene()
    connection = scene.connect()
    for _ in range(2):
        answers = scene.ask(connection)
        data = HEAD + b"body"
        for at in range(0, len(data), size):
            connection.dataReceived(data[at : at + size])
        body = read(answers[0])
        assert (body.data, body.reason) == (b"body", ResponseDone)
        assert scene.idle() is connection


def test_an_answer_has_its_interface():
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(HEAD)
    verifyObject(IResponse, answers[0])


@implementer(IBodyProducer, IPushProducer)
class Sent:
    """A body of two pieces, of which a test sends the second."""

    length = 8

    def __init__(self):
        self.done = Deferred()

    def startProducing(self, consumer):
        self.consumer = consumer
        consumer.write(b"some")
        return self.done

    def finish(self):
        self.consumer.write(b"more")
        self.done.callback(None)

    def pauseProducing(self):
        pass

    def resumeProducing(self):
        pass

    def stopProducing(self):
        pass


def test_a_body_follows_the_request():
    scene = Scene()
    connection = scene.connect()
    answers, body = [], Sent()
    connection.send(b"request", bodiless=False, body=body).addBoth(answers.append)
    assert connection.transport.producer is body
    body.finish()
    assert connection.transport.producer is None
    assert connection.transport.value() == b"requestsomemore"
    connection.dataReceived(HEAD + b"body")
    assert read(answers[0]).data == b"body"
    assert scene.idle() is connection


def test_an_answer_before_the_end_of_a_body_ends_the_connection():
    scene = Scene()
    connection = scene.connect()
    answers = []
    connection.send(b"request", bodiless=False, body=Sent()).addBoth(answers.append)
    connection.dataReceived(HEAD + b"body")
    assert read(answers[0]).data == b"body"
    assert connection.ended
    assert scene.idle() is None


def test_a_body_that_cannot_be_read_ends_the_connection():
    scene = Scene()
    connection = scene.connect()
    answers, body = [], Sent()
    connection.send(b"request", bodiless=False, body=body).addBoth(answers.append)
    body.done.errback(OSError("the disk"))
    assert answers[0].check(OSError)
    assert connection.ended


def test_nothing_is_read_until_there_is_a_reader():
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(HEAD + b"bo")
    assert connection.transport.producerState == "paused"
    body = read(answers[0])
    assert (body.data, connection.transport.producerState) == (b"bo", "producing")
    body.transport.pauseProducing()
    assert connection.transport.producerState == "paused"
    body.transport.resumeProducing()
    connection.dataReceived(b"dy")
    assert (body.data, body.reason) == (b"body", ResponseDone)


def test_the_reader_of_one_answer_does_not_touch_the_next():
    scene = Scene()
    connection = scene.connect()
    first = scene.ask(connection)
    connection.dataReceived(HEAD + b"body")
    body = read(first[0])
    scene.ask(connection)
    body.transport.pauseProducing()
    body.transport.stopProducing()
    assert connection.transport.producerState == "producing"
    assert not connection.ended


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"body!",
        b"HTTP/1.1 204 None\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody",
    ],
    ids=["more-than-its-length", "body-of-204", "behind-the-last-chunk", "close", "version-1.0"],
)
def test_a_connection_without_a_clean_end_is_not_used_again(data):
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(data)
    assert read(answers[0]).reason is ResponseDone
    assert scene.idle() is None
    assert connection.ended


def test_bytes_that_nobody_asked_for_end_an_idle_connection():
    scene = Scene()
    connection = scene.connect()
    scene.ask(connection, bodiless=True)
    connection.dataReceived(HEAD)
    connection.dataReceived(HEAD)
    assert connection.ended
    assert scene.idle() is None


def test_malformed_chunks_end_the_body_after_what_was_right():
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\nzz\r\n")
    body = read(answers[0])
    assert body.data == b"body"
    assert body.reason not in (ResponseDone, PotentialDataLoss)
    assert connection.ended


def test_what_is_no_answer_fails_the_request():
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(b"220 smtp\r\n")
    assert answers[0].check(NotHttp)
    assert connection.ended


def test_a_cancelled_request_ends_its_connection():
    scene = Scene()
    connection = scene.connect()
    waiting = connection.send(b"request", bodiless=False)
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    assert connection.ended
    connection.dataReceived(HEAD + b"body")
    connection.connectionLost(Failure(ConnectionLost()))
    assert scene.idle() is None


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (HEAD, ConnectionDone),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n", ConnectionDone),
        (b"HTTP/1.1 200 OK\r\n\r\n", PotentialDataLoss),
    ],
    ids=["length", "chunked", "unframed"],
)
def test_the_end_of_the_connection_is_the_end_of_the_body_only_without_framing(head, reason):
    scene = Scene()
    connection = scene.connect()
    answers = scene.ask(connection)
    connection.dataReceived(head + b"bod")
    body = read(answers[0])
    connection.connectionLost(Failure(ConnectionDone()))
    assert (body.data, body.reason) == (b"bod", reason)


def test_idle_connections_are_bounded_in_number_and_time():
    scene = Scene(most=2)
    made = [scene.connect() for _ in range(3)]
    for connection in made:
        scene.ask(connection)
    for connection in made:
        connection.dataReceived(HEAD + b"body")
        scene.clock.advance(1)
    assert [connection.ended for connection in made] == [False, False, True]
    scene.clock.advance(KEEP_ALIVE_S - 2.5)
    assert [connection.ended for connection in made] == [True, False, True]
    assert scene.idle() is made[1]
    made[1].connectionLost(Failure(ConnectionDone()))
    assert scene.idle() is None


class KernelTransport(StringTransport):
    """A TCP connection whose kernel takes some bytes at once."""

    TLS = False

    def __init__(self, takes):
        super().__init__()
        self._takes = takes

    def writeSomeData(self, data):
        if isinstance(self._takes, int):
            taken, self._takes = data[: self._takes], self._takes - len(data[: self._takes])
            self.io.write(taken)
            return len(taken)
        return self._takes


@pytest.mark.parametrize("takes", [100, 10, 0, ConnectionLost()], ids=["all", "some", "none", "error"])
def test_requests_are_written_whole_and_in_order(takes, monkeypatch):
    monkeypatch.setattr(connection_module, "TcpConnection", KernelTransport)
    scene = Scene()
    connection = scene.connections.factory(KEY).buildProtocol(None)
    connection.makeConnection(KernelTransport(takes))
    for number in range(3):
        connection.send(b"request %d" % number, bodiless=True)
        connection.dataReceived(HEAD)
    assert connection.transport.value() == b"request 0request 1request 2"
