"""The command behind ``bin/faults``: rounds of work and faults for some minutes, and a page of what came out."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import Factory, define

from tests.support.first_publishes import REPOSITORIES

from .checks import CHECKS, SAMPLE
from .engines import ENGINES
from .engines.estate import Engine, Estate
from .jobs import JOBS
from .ledger import Ledger
from .rounds import Finding, Round

WRITERS: Final = 16
ROUND_S: Final = (0.3, 2.5)  # how long there is work before a fault
CONFIGURATION: Final = "limits.login_failures = 1000\n"


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
    left_out: list[str] = Factory(list)


def run(
    folder: Path, minutes: float, seed: int, *, engine: Engine, rounds: int = 10**9, writers: int = WRITERS
) -> Result:
    """Do rounds until so many minutes have passed, or so many are done, or something is wrong."""
    result, rng = Result(seed), random.Random(seed)
    ends_at = time.monotonic() + minutes * 60
    ledger = Ledger(folder / "ledger.jsonl")
    with engine.run(folder, CONFIGURATION + "".join(each.configuration for each in JOBS)) as estate:
        result.left_out += estate.left_out
        for each in JOBS:
            each.prepare(estate.urls[0])
        number = 0
        while time.monotonic() < ends_at and number < rounds and not result.wrong:
            begun = sum(1 for _ in ledger.states())
            _round(estate, Round(number, estate.urls, ledger, rng, begun, writers), result)
            number += 1
        if not result.wrong:
            _finish(estate, Round(number, estate.urls, ledger, rng, 0, 0), result)
    result.acknowledged, result.items = ledger.acknowledged, sum(1 for _ in ledger.states())
    return result


def _round(estate: Estate, round_: Round, result: Result) -> None:
    workers = [each for job in JOBS for each in job.begin(round_)]
    time.sleep(round_.rng.uniform(*ROUND_S))
    [fault] = round_.rng.choices(estate.faults, [each.chance for each in estate.faults])
    round_.ledger.note(fault=fault.name, round=round_.number)
    began_at = time.monotonic()
    fault.strike(round_.rng)
    over_at = time.monotonic()
    for each in workers:
        each.stop()
    for each in workers:
        each.join()
        result.steps += each.counts
    result.faults[fault.name] += 1
    if estate.mend():
        result.recoveries_s.append(time.monotonic() - over_at)
    after = Round(round_.number, estate.urls, round_.ledger, round_.rng, round_.begun, round_.writers)
    where = f"round {round_.number}, {fault.name}"
    result.wrong += [f"{where}: {each}" for each in _told(_looked(after), round_.ledger)]
    result.wrong += [
        f"{where}: {each.what}"
        for worker in workers
        for each in worker.wrong
        if not (each.at >= began_at and each.status >= 500)
    ]


def _finish(estate: Estate, round_: Round, result: Result) -> None:
    """Everything once more, and what is wrong with the data when all is stopped."""
    result.wrong += _told(_looked(round_), round_.ledger)
    result.wrong += estate.end()


def _looked(round_: Round) -> list[Finding]:
    return [found for check in CHECKS for found in check(round_)]


def _told(found: Iterable[Finding], ledger: Ledger) -> list[str]:
    """A sentence for each finding, with the history of its item."""
    return [
        each.why
        if each.item is None
        else f"{each.item.format} {each.item.name} {each.item.version}: {each.why}\n    "
        + "\n    ".join(ledger.history(each.item))
        for each in found
    ]


def page(result: Result, engine: Engine, command: str, minutes: float) -> str:
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
        "machine": f"{machine}; {engine.about}",
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
    parser.add_argument("--engine", choices=[*ENGINES], default="sqlite")
    parser.add_argument("--page", type=Path, help="write the page of the book")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    engine = ENGINES[given.engine]
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        result = run(Path(folder), given.minutes, seed, engine=engine)
    print(json.dumps({"faults": result.faults, "acknowledged": result.acknowledged, "items": result.items}, indent=2))
    for each in result.left_out:
        print(f"left out: {each}")
    for each in result.wrong:
        print(f"WRONG: {each}")
    if given.page is not None and not result.wrong:
        command = f"bin/faults {given.minutes:g} --engine {engine.name} --seed {seed}"
        given.page.write_text(page(result, engine, command, given.minutes))
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
