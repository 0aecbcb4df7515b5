"""
Runs loads, each on a server of its own with two workers, and prints what others felt and what the server needed.

Run it with ``bin/faults --load [NAME[=SIZE]...]``; ``soak=MINUTES`` is the soak of the bench, which needs quiet. The
exit status is 1 if something was refused or wrong, whatever the times are, or a bound of the soak was missed.
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
from tests.bench.clients.load import percentile
from tests.bench.measure import MIB
from tests.lab.faults.results import machine, today
from tests.lab.page import Results
from tests.support import server_process
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.server_process import ServerProcess, restarts

from .measured import Felt, Measured
from .scenarios import AUTH, LOADS, Place, Say
from .watching import IDLE_S, Server

SOAK: Final = "soak"
SHARE: Final = 0.6  # of the highest rate, in a soak
MINUTES: Final = 10.0  # of a soak
SETTINGS: Final = 'limits.login_failures = 1000\nproxy.allow_private = ["0.0.0.0/0"]\n'

Start = Callable[[], ServerProcess]


@contextmanager
def server_of(folder: Path, workers: int, *, forked: bool) -> Iterator[tuple[ServerProcess, Start]]:
    """
    A server with a repository of each format, and what starts it again.

    One that is ``forked`` starts at once, and hashes passwords cheaply; see ``forked_programs``.
    """
    before, server_process.WORKERS[0] = server_process.WORKERS[0], str(workers)
    environ = {"PKGREPO_ADMIN_USER": AUTH[0], "PKGREPO_ADMIN_PASSWORD": AUTH[1]}
    own = {} if forked else {"PYTHONHASHSEED": "random"}  # what Python reads needs a process of its own
    try:
        with restarts(folder, SETTINGS, environ | own) as start:
            server = start()
            publisher = Publisher(server.url, AUTH)
            for format_, name in REPOSITORIES.items():
                publisher.create(name, format_)
            yield server, start
    finally:
        server_process.WORKERS[0] = before


def run_load(
    name: str, size: int, say: Say, workers: int = 2, *, forked: bool = False, idle_s: float = IDLE_S
) -> tuple[list[Measured], list[str]]:
    """Run one load of a size; what was measured, and what went wrong. See L{Place}."""
    load = LOADS[name]
    say(f"{size:,} {load.of}:")
    with (
        tempfile.TemporaryDirectory(prefix="load-") as folder,
        server_of(Path(folder), workers, forked=forked) as (server, start),
    ):
        place = Place(server, start, Path(folder), say, load.of, size, idle_s)
        wrong = load.run(place, size)
    if place.found:
        place.found[-1].wrong = len(wrong)
    return place.found, [f"{name}: {each}" for each in wrong]


def run_soak(minutes: float, say: Say) -> tuple[list[Measured], list[str]]:
    """The soak of the bench at 60 % of the highest rate, with the descriptors of all processes; as ``run_load``."""
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
    half = counted[len(counted) // 2 :]
    # The most, for the last ones may be counted while the server ends.
    most = [max(part, default=0) for part in (half[: len(half) // 2], half[len(half) // 2 :])]
    say(soak.describe(found))
    rate = f"{found.rate:,.0f} a second, {SHARE:.0%} of the highest rate"
    mapped = [sum(each.mapped.values()) / MIB for each in found.samples] or [0.0]
    notes = [
        rate,
        *(each if kept else f"{each}: missed" for each, kept in found.verdicts.items()),
        f"mapped pages of files: {mapped[len(mapped) // 2]:.0f} MiB in the middle, {mapped[-1]:.0f} MiB in the end",
        f"descriptors, of the clients too: at most {most[0]} in the third quarter, {most[1]} in the last",
    ]
    wrong = [f"soak: {each}" for each, kept in found.verdicts.items() if not kept]
    p99_ms = percentile(found.tally.took_ms, 99) if found.tally.took_ms else 0.0
    size = f"{len(found.tally.took_ms):,}"
    peak_mib = max((each.total for each in found.samples), default=0) / MIB
    refused = len(found.tally.errors)
    measured = Measured(
        "requests of a soak", size, today(), machine(), minutes * 60, Felt(p99_ms), None, peak_mib, None, notes, refused
    )
    return [measured], wrong


def main(arguments: Sequence[str], say: Callable[[str], None] = print) -> int:
    """Run loads; 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="bin/faults --load", description=__doc__)
    parser.add_argument("loads", nargs="*", metavar="NAME[=SIZE]", help=", ".join((*LOADS, SOAK)))
    parser.add_argument("--results", type=Path, help="put what was measured into this file, beside other loads")
    parser.add_argument("--page", type=Path, help="write the page of the book, of this run or of --results")
    given = parser.parse_args(arguments)
    wanted = [each.partition("=")[::2] for each in given.loads or LOADS]
    unknown = [name for name, _ in wanted if name not in (*LOADS, SOAK)]
    if unknown:
        parser.error(f"there is no load {', '.join(unknown)}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wrong: list[str] = []
    began = time.monotonic()
    results = Results.read(given.results)
    for name, size in wanted:
        if name == SOAK:
            found, bad = run_soak(float(size or MINUTES), say)
        else:
            found, bad = run_load(name, int(size or LOADS[name].size), say)
        wrong += bad
        results.loads |= {each.name: each for each in found}
        if given.results is not None:
            results.write(given.results)
    say(f"{time.monotonic() - began:.0f} s, {len(wrong)} things are wrong")
    for each in wrong:
        say(f"WRONG: {each}")
    if given.page is not None:
        given.page.write_text(results.page())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
