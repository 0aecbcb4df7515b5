"""The command behind ``bin/faults``: rounds of writers and faults for some minutes, and a page of what came out."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import Factory, define

from tests.support import server_process
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, restarts

from .checks import INDEXES, SAMPLE, Checker, Fault, sampled
from .ledger import Ledger
from .nemesis import FAULTS, Site, chosen, site
from .writers import Writer

Start = Callable[..., ServerProcess]

AUTH: Final = (USER, PASSWORD)
WRITERS: Final = 16
OVERTAKEN: Final = re.compile(r": 50[034] ")  # a response while the server or one of its workers dies
ROUND_S: Final = (0.3, 2.5)  # how long writers write before a fault


PAGE: Final = """\
# What a server survives

An acknowledged upload is not lost: not by `kill -9`, not by a power cut, not by a server that is stopped for some time.
`bin/faults` tries that with writers of all formats; this is what came out of it. Run it on your machine:

```
bin/faults 30            # minutes; --seed N repeats a run, --page FILE writes this page
```

In each round {writers} writers publish, delete and restore versions of {formats} formats, and note on another disk what
was acknowledged. Then one fault comes, and the next server is read as clients read: the files of the round and {sample}
older ones, byte for byte, and indexes, have to be what was acknowledged; what had no response is there as a whole, or
is not. In the end all are read, and `pkgrepo verify` reads the data of the stopped server. A power cut discards all
that was not synced to an ext4 disk.

| | |
| --- | --- |
{table}

| fault | times |
| --- | --- |
{faults}
"""


@define
class Result:
    """What came out of the rounds: how many faults of each kind, and seconds from each death to the first response."""

    seed: int
    faults: Counter[str] = Factory(Counter)
    recoveries_s: list[float] = Factory(list)
    steps: Counter[str] = Factory(Counter)
    acknowledged: int = 0
    items: int = 0
    wrong: list[str] = Factory(list)
    skipped: str = ""


def run(folder: Path, minutes: float, seed: int, *, rounds: int = 10**9, writers: int = WRITERS) -> Result:
    """Do rounds until so many minutes have passed, or so many are done, or something is wrong."""
    result, rng = Result(seed), random.Random(seed)
    ends_at = time.monotonic() + minutes * 60
    server_process.WORKERS[0] = "2"
    with site(folder) as place:
        result.skipped = place.why
        environ = {"PKGREPO_DATA__DIR": str(place.folder / "data")}
        ledger = Ledger(folder / "ledger.jsonl")
        with restarts(folder, "limits.login_failures = 1000\n", environ) as start:
            server = start()
            for format_, name in REPOSITORIES.items():
                Publisher(server.url, AUTH).create(name, format_)
            while time.monotonic() < ends_at and sum(result.faults.values()) < rounds and not result.wrong:
                server = _round(start, server, place, ledger, result, rng, writers)
            if not result.wrong:
                _finish(server, place, ledger, result)
        result.acknowledged, result.items = ledger.acknowledged, sum(1 for _ in ledger.states())
    return result


def _round(
    start: Start, server: ServerProcess, place: Site, ledger: Ledger, result: Result, rng: random.Random, count: int
) -> ServerProcess:
    begun = sum(1 for _ in ledger.states())
    threads = [
        Writer(10 * sum(result.faults.values()) * count + number, server.url, AUTH, ledger, random.Random(rng.random()))
        for number in range(count)
    ]
    time.sleep(rng.uniform(*ROUND_S))
    name = chosen(place, rng)
    ledger.note(fault=name, round=sum(result.faults.values()))
    goes_on = FAULTS[name](server, place, rng)
    died_at = time.monotonic()
    for each in threads:
        each.stop()
    for each in threads:
        each.join()
        result.steps += each.counts
    result.faults[name] += 1
    if not goes_on:
        server = start()
        result.recoveries_s.append(time.monotonic() - died_at)
    checker, states = Checker(server.url, AUTH), sampled(ledger, begun, rng)
    found = [*checker.check(states, ledger), *checker.check_indexes(rng.sample(states, min(INDEXES, len(states))))]
    result.wrong += [f"round {sum(result.faults.values())}, {name}: {each}" for each in _told(found, ledger)]
    result.wrong += [f"{name}: {each}" for one in threads for each in one.wrong if not OVERTAKEN.search(each)]
    return server


def _finish(server: ServerProcess, place: Site, ledger: Ledger, result: Result) -> None:
    """All items once more, and what the administrator's commands find in the data of a stopped server."""
    checker, states = Checker(server.url, AUTH), [*ledger.states()]
    result.wrong += _told([*checker.check(states, ledger), *checker.check_indexes(states)], ledger)
    data = DataFolder(place.folder / "data")
    wait_for(data.is_tidy, server)
    wait_for(data.is_in_step, server)
    server.stop()
    done = pkgrepo(data, "verify")
    if done.returncode:
        result.wrong.append(f"pkgrepo verify: {done.stdout}{done.stderr}")


def _told(found: Sequence[Fault], ledger: Ledger) -> list[str]:
    """A sentence for each fault, with the history of its item."""
    return [
        f"{each.item.format} {each.item.name} {each.item.version}: {each.why}\n    "
        + "\n    ".join(ledger.history(each.item))
        for each in found
    ]


def page(result: Result, command: str, minutes: float) -> str:
    """The page of the book, in Markdown."""
    recovered = sorted(result.recoveries_s)
    median, p99 = (recovered[int(len(recovered) * part)] if recovered else 0 for part in (0.5, 0.99))
    faults = "\n".join(f"| {name} | {count} |" for name, count in sorted(result.faults.items()))
    done = ", ".join(f"{count} {name}" for name, count in sorted(result.steps.items()))
    machine = (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    rows = {
        "run": f"{datetime.now(UTC):%Y-%m-%d}, `{command}`, {minutes:g} minutes",
        "machine": f"{machine}; SQLite, two workers",
        "acknowledged changes": result.acknowledged,
        "versions": result.items,
        "steps": done,
        "lost, or with other bytes": len(result.wrong),
        "from a death to the first response": f"median {median:.1f} s, 99 % {p99:.1f} s",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return PAGE.format(table=table, faults=faults, writers=WRITERS, formats=len(REPOSITORIES), sample=SAMPLE)


def main(arguments: Sequence[str]) -> int:
    """Run rounds; 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="bin/faults", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--page", type=Path, help="write the page of the book")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        result = run(Path(folder), given.minutes, seed)
    print(json.dumps({"faults": result.faults, "acknowledged": result.acknowledged, "items": result.items}, indent=2))
    if result.skipped:
        print(f"left out: {result.skipped}")
    for each in result.wrong:
        print(f"WRONG: {each}")
    if given.page is not None and not result.wrong:
        given.page.write_text(page(result, f"bin/faults {given.minutes:g} --seed {seed}", given.minutes))
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
