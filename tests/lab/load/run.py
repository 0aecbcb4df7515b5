"""
Runs loads, each on a server of its own with two workers, and prints what others felt and what the server needed.

Run it with ``bin/faults --load [NAME[=SIZE]...]``; ``soak=MINUTES`` is the soak of the bench, which needs quiet. The
exit status is 1 if something was refused or wrong, whatever the times are.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench import soak
from tests.support import server_process
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import restarts

from .scenarios import AUTH, LOADS, Place, Say
from .watching import Server

SOAK: Final = "soak"
SHARE: Final = 0.6  # of the highest rate, in a soak
MINUTES: Final = 10.0  # of a soak
SETTINGS: Final = 'limits.login_failures = 1000\nproxy.allow_private = ["0.0.0.0/0"]\n'


@contextmanager
def place(folder: Path, say: Say, workers: int = 2) -> Iterator[Place]:
    """A server with a repository of each format."""
    before, server_process.WORKERS[0] = server_process.WORKERS[0], str(workers)
    environ = {"PKGREPO_ADMIN_USER": AUTH[0], "PKGREPO_ADMIN_PASSWORD": AUTH[1]}
    try:
        with restarts(folder, SETTINGS, environ) as start:
            server = start()
            publisher = Publisher(server.url, AUTH)
            for format_, name in REPOSITORIES.items():
                publisher.create(name, format_)
            yield Place(server, start, folder, say)
    finally:
        server_process.WORKERS[0] = before


def run_load(name: str, size: int, say: Say, workers: int = 2) -> list[str]:
    """Run one load of a size; what went wrong."""
    say(f"{name}, {size:,}:")
    with tempfile.TemporaryDirectory(prefix="load-") as folder, place(Path(folder), say, workers) as made:
        return [f"{name}: {each}" for each in LOADS[name][0](made, size)]


def run_soak(minutes: float, say: Say) -> list[str]:
    """The soak of the bench at 60 % of the highest rate, with the descriptors of all processes; what went wrong."""
    counted: list[int] = []
    ended = threading.Event()

    def count() -> None:
        while not ended.wait(soak.SAMPLE_S):
            counted.append(Server.of(os.getpid()).descriptors())  # the servers of the bench are children

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            found = soak.run_soak(minutes, Path(folder), say, share=SHARE)
    finally:
        ended.set()
        thread.join()
    half = counted[len(counted) // 2 :] or [0]
    say(f"{soak.describe(found)}\ndescriptors in the second half, of this process too: {half[0]} to {half[-1]}")
    return (
        [] if all(found.verdicts.values()) else [f"soak: {each}" for each, kept in found.verdicts.items() if not kept]
    )


def _own_pid() -> int:
    import os

    return os.getpid()


def main(arguments: Sequence[str], say: Callable[[str], None] = print) -> int:
    """Run loads; 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="bin/faults --load", description=__doc__)
    parser.add_argument("loads", nargs="*", metavar="NAME[=SIZE]", help=", ".join((*LOADS, SOAK)))
    given = parser.parse_args(arguments)
    wanted = [each.partition("=")[::2] for each in given.loads or LOADS]
    unknown = [name for name, _ in wanted if name not in (*LOADS, SOAK)]
    if unknown:
        parser.error(f"there is no load {', '.join(unknown)}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wrong: list[str] = []
    began = time.monotonic()
    for name, size in wanted:
        if name == SOAK:
            wrong += run_soak(float(size or MINUTES), say)
        else:
            wrong += run_load(name, int(size or LOADS[name][1]), say)
    say(f"{time.monotonic() - began:.0f} s, {len(wrong)} things are wrong")
    for each in wrong:
        say(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
