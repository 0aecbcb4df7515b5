"""The end of a reader's body, which its transfer must learn of however it comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.proxy.transfers.arriving import ArrivingBody


class Source:
    available = 3

    def __init__(self) -> None:
        self.left: list[int] = []  # threads

    def wait(self) -> Deferred[None]:
        return Deferred()

    def leave(self) -> None:
        self.left.append(threading.get_ident())


class Reactor:
    """Keeps the calls from other threads for the test."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def callFromThread(self, call: Callable[[], object]) -> None:
        self.calls.append(call)


def make(path: Path) -> tuple[ArrivingBody, Source, Any, int]:
    source, reactor = Source(), Reactor()
    untyped: Any = reactor
    descriptor = os.open(path, os.O_RDONLY)
    return ArrivingBody(source, 5, descriptor, untyped), source, reactor, descriptor


def test_last_byte_of_a_part_is_held_back_until_the_file_is_verified(tmp_path: Path) -> None:
    source, reactor = Source(), Reactor()
    untyped: Any = reactor
    plain, holding = (
        ArrivingBody(source, 5, os.open(tmp_path, os.O_RDONLY), untyped, holds_parts=each) for each in (False, True)
    )
    assert [(plain.available(end), holding.available(end)) for end in (1, 2, 3, 4, 5)] == [
        (3, 0),
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 3),
    ]
    source.available = 5
    assert [holding.available(end) for end in (1, 5)] == [5, 5]
    for each in (plain, holding):
        each.close()


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    return path


def test_reader_leaves_once_however_often_it_is_closed(file: Path) -> None:
    body, source, reactor, descriptor = make(file)
    body.close()
    body.close()
    del body
    assert (len(source.left), reactor.calls, is_open(descriptor)) == (1, [], False)


def test_opened_descriptor_belongs_to_the_caller(file: Path) -> None:
    body, source, _, descriptor = make(file)
    assert body.open() == descriptor
    with pytest.raises(RuntimeError):
        body.open()
    body.close()
    assert (len(source.left), is_open(descriptor)) == (1, True)
    os.close(descriptor)


def test_closed_body_cannot_be_opened(file: Path) -> None:
    body, _, _, _ = make(file)
    body.close()
    with pytest.raises(RuntimeError):
        body.open()


def test_body_that_another_thread_frees_leaves_in_the_thread_of_the_reactor(file: Path) -> None:
    body, source, reactor, descriptor = make(file)
    bodies = [body]
    del body
    thread = threading.Thread(target=bodies.clear)
    thread.start()
    thread.join()
    assert (source.left, is_open(descriptor)) == ([], False)
    (leave,) = reactor.calls
    leave()
    assert source.left == [threading.get_ident()]
