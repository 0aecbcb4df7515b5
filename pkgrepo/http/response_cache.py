"""Answers kept ready, for what many clients ask for again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.http.answering.head import render_head
from pkgrepo.http.answering.send import respond, send_whole

from .answers import Answer

if TYPE_CHECKING:
    from .request import Request

T = TypeVar("T")

ENTRY_OVERHEAD = 512  # bytes of Python objects around an entry, roughly
_log = Logger()


class Prepared:
    """
    An answer whose head is rendered once.

    What changes from one request to the next (date, request id, whether the connection is kept) is added when it is
    sent. ``size`` is what it costs in memory, in bytes.
    """

    __slots__ = ("_head", "_head_304", "_small", "answer", "size")

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._head = render_head(answer, answer.status, 0, answer.size)
        self._head_304 = render_head(answer, 304, 0, 0) if answer.status == 200 else b""
        self._small = answer.body if isinstance(answer.body, bytes) and answer.status != 304 else None
        self.size = len(self._head) + len(self._head_304) + len(self._small or b"") + ENTRY_OVERHEAD

    def serve(self, request: Request) -> None:
        """Answer a GET or HEAD with this; what it does not know itself goes the general way."""
        fields = request.fields
        answer = self.answer
        if answer.status == 200:
            condition = fields.get(b"if-none-match")
            if condition is not None:
                if condition == answer.etag:
                    send_whole(request, 304, self._head_304, b"")
                    return
            elif b"range" not in fields and b"if-modified-since" not in fields and self._small is not None:
                send_whole(request, 200, self._head, self._small if request.method == b"GET" else b"")
                return
        under_way = respond(request, answer)
        if under_way is not None:
            under_way.addErrback(_report)


def _report(failure: Failure) -> None:
    _log.failure("sending a prepared answer failed", failure=failure)


def prepare(answer: Answer) -> Prepared:
    """Render the heads of ``answer`` ahead of time."""
    return Prepared(answer)


class ResponseCache(Generic[T]):
    """
    Entries by key, the least recently used given up first when they exceed ``limit`` bytes together.

    What an entry is (one L{Prepared}, or several with what they depend on), and whether it still holds, is its
    owner's business. An entry larger than an eighth of the limit is not kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def largest(self) -> int:
        """Bytes of the largest entry that is kept."""
        return self.limit // 8

    def get(self, key: Hashable) -> T | None:
        """What is kept under ``key``, or None."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return entry[0]

    def put(self, key: Hashable, entry: T, size: int) -> None:
        """Keep ``entry``, which costs ``size`` bytes, in place of what was there."""
        self.drop(key)
        if size > self.largest:
            return
        self._entries[key] = (entry, size)
        self.size += size
        while self.size > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed

    def drop(self, key: Hashable) -> None:
        """Forget ``key``, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.size = 0
