"""
The worker process: ``python -m pkgrepo.proxy.parts.worker MEMORY``, with the limit of its memory in bytes.

==========  =========================================================================================================
descriptor  content
==========  =========================================================================================================
0           a Unix socket: a line with a L{Job} in JSON, together with the descriptors of the document and, optionally,
            of the previous parts file; its end means that the server has closed it, or is dead
1           the bytes of parts files
2           diagnostics
3           after the bytes of each file, a line with a L{Reply} in JSON
==========  =========================================================================================================

It does not import Twisted, so that it starts fast.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
from contextlib import suppress
from threading import Thread

import msgspec

from pkgrepo.errors import Invalid, PkgrepoError

from .jobs import Job, NormalisingFailed, Reply, normalise

CHANNEL, PARTS, DIAGNOSTICS, REPLIES = range(4)
NICE = 5  # a document may take seconds, and requests that need milliseconds should not wait for a core behind it
LONGEST_JOB = 64 * 1024  # bytes of a line


def main(memory: int) -> None:
    """Do jobs until the channel is closed, which also ends a job that runs."""
    # The server ends this process; a terminal, or systemd, sends these to all processes of a server that still works.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(OSError, ValueError):  # forbidden by some sandboxes, or lower already
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with suppress(OSError):  # forbidden by some sandboxes
        os.nice(NICE)
    Thread(target=_end_with_server, daemon=True).start()
    channel = socket.socket(fileno=CHANNEL)
    while (received := _receive(channel)) is not None:
        response = msgspec.structs.replace(_run(*received, memory), memory=_resident())
        os.write(REPLIES, msgspec.json.encode(response) + b"\n")


def _end_with_server() -> None:
    hangups = select.poll()
    hangups.register(CHANNEL, 0)  # errors and hang-ups are always reported
    hangups.poll()
    os._exit(0)


def _receive(channel: socket.socket) -> tuple[bytes, list[int]] | None:
    line = b""
    descriptors: list[int] = []
    while not line.endswith(b"\n"):
        data, more, _, _ = socket.recv_fds(channel, LONGEST_JOB, 2)
        if not data:
            return None
        line += data
        descriptors += more
    return line, descriptors


def _run(line: bytes, descriptors: list[int], memory: int) -> Reply:
    out = _Parts()
    try:
        job = msgspec.json.decode(line, type=Job)
        document, *previous = descriptors
        normalise(_read(document), job, previous[0] if previous else None, out)
    except Invalid as error:
        return Reply(out.size, invalid=error.message, pointer=error.pointer)
    except MemoryError:
        return Reply(out.size, invalid=f"the document needs more than {memory} bytes of memory")
    except NormalisingFailed as error:
        return Reply(out.size, failed=error.reason)
    except (PkgrepoError, OSError) as error:
        return Reply(out.size, failed=repr(error))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return Reply(out.size)


def _resident() -> int:
    # The maximum of getrusage would include that of the server, from the time before exec.
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return sys.maxsize


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        return file.read()


class _Parts:
    """The pipe for parts files; counts the bytes of one."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = os.write(PARTS, rest)
            self.size += written
            rest = rest[written:]


if __name__ == "__main__":
    main(int(sys.argv[1]))
