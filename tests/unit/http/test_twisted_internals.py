"""The names of Twisted that it does not promise to keep: each is used here as we use it."""

from __future__ import annotations

import socket

from twisted.internet import reactor, tcp
from twisted.internet.testing import AccumulatingProtocol, StringTransport

from pkgrepo.http.reading.read_scheduling import USUAL_READ
from pkgrepo.http.twisted_internals import (
    PullToPush,
    is_plain_tcp,
    read_at_most,
    reserve_descriptor,
    socket_of,
    unsent,
)


def test_transport_says_what_it_has_not_sent() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        connection = tcp.Connection(ours, None, reactor)  # type: ignore[arg-type]
        connection.connected = True
        assert is_plain_tcp(connection)
        assert socket_of(connection) is connection
        assert unsent(connection) == 0
        connection.write(b"12345")
        assert unsent(connection) == 5
        assert connection.writeSomeData(b"abc") == 3
        connection.doWrite()
        assert unsent(connection) == 0
        connection.stopWriting()
        ours.close()


def test_transport_reads_as_much_as_it_is_told_to() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        protocol = AccumulatingProtocol()
        connection = tcp.Connection(ours, protocol, reactor)  # type: ignore[arg-type]
        assert connection.bufferSize == USUAL_READ
        theirs.sendall(b"x" * 100)
        read_at_most(connection, 60)
        connection.doRead()
        assert protocol.data == b"x" * 60
        read_at_most(connection, USUAL_READ)
        connection.doRead()
        assert protocol.data == b"x" * 100


def test_a_reserve_that_was_lost_comes_back() -> None:
    tcp._reservedFD.reserve()
    with tcp._reservedFD:  # closes it
        assert not tcp._reservedFD.available()
        reserve_descriptor()
        assert tcp._reservedFD.available()


def test_other_transports_have_no_socket() -> None:
    assert socket_of(StringTransport()) is None
    assert not is_plain_tcp(StringTransport())


def test_pull_producers_can_be_driven() -> None:
    assert {"startStreaming", "stopStreaming", "pauseProducing", "resumeProducing"} <= set(dir(PullToPush))
