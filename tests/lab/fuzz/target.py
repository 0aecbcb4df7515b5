"""A reader of bytes from outside, the errors that it may raise, and the bounds of its work."""

from __future__ import annotations

import resource
import signal
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from attrs import field, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.http.reading.head import BadHead
from pkgrepo.http.reading.ranges import UnsatisfiableError
from pkgrepo.http.responses import Refusal

LARGEST = 64 * 1024  # bytes of an input: what is found can be read, and a round is short
CPU_S = 5.0  # of one input; readers promise a second for each megabyte
MEMORY = 256 * 1024 * 1024  # bytes of one input, beyond what it was before: archives of 64 KiB unpack to 64 MiB

REFUSALS: tuple[type[BaseException], ...] = (PkgrepoError, Refusal, BadHead, UnsatisfiableError)


@frozen(eq=False)
class Target:
    """
    ``read`` is given an input; it may raise ``refuses``, which formats answer with 4xx, and nothing else.

    ``words`` are texts that inputs have, for mutations. ``mend`` makes the sums in a mutated input right again, so that
    mutations reach what is behind these. Inputs that are accepted are in the corpus.
    """

    name: str
    read: Callable[[bytes], object]
    words: Sequence[bytes] = ()
    mend: Callable[[bytes], bytes] = lambda data: data
    refuses: tuple[type[BaseException], ...] = REFUSALS


@frozen
class Finding:
    """An input that broke the promise of a target, and how."""

    target: str
    data: bytes = field(repr=lambda data: f"{data[:80]!r}... of {len(data)} bytes")
    why: str


class TooSlow(BaseException):
    """An input took more processor time than one may."""


def run(target: Target, data: bytes) -> None:
    """Give an input to a target. :raises Exception: another one than it may raise"""
    with suppress(*target.refuses):
        target.read(data)


@contextmanager
def bounded_time(seconds: float = CPU_S) -> Iterator[None]:
    """Interrupt what takes more processor time, in the main thread. :raises TooSlow: it took more"""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check(target: Target, data: bytes) -> str:
    """Why a target breaks its promise with an input, within the bounds; empty if it keeps it."""
    tracemalloc.start()
    try:
        with bounded_time():
            run(target, data)
        _, peak = tracemalloc.get_traced_memory()
    except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever it is
        return f"{type(error).__name__}: {error}"
    finally:
        tracemalloc.stop()
    return f"{peak} bytes of memory" if peak > MEMORY else ""


def limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it has; its reader gets a MemoryError beyond them."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.RLIM_INFINITY))
