"""What came out of rounds: a value for each engine, kept as JSON, and the page of the book that is made of them."""

from __future__ import annotations

import os
import platform
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Final

import msgspec
from attrs import Factory, define, frozen

from tests.support.first_publishes import REPOSITORIES

from .checks import SAMPLE
from .engines import ENGINES
from .jobs.crew import TASKS
from .rounds import KINDS

WIDTH: Final = 120  # characters of a line of the book
LONGEST: Final = 300  # characters of a sentence about what was wrong
PAGE: Final = """\
# What a server survives

An acknowledged upload is not lost: not by `kill -9`, not by a power cut, not by a disk that fails or is full, not by a
database, a bucket or a network that is away for some time. `bin/faults` tries that with writers of all formats; this is
what came out of it. Run it on your machine:

```sh
bin/faults 30 --engine nodes   # minutes; sqlite without --engine; --seed N repeats the choices of a run
```

In each round {writers} writers publish, delete and restore versions of {formats} formats, and note on another disk what
was acknowledged, and readers read what was there before. Then one fault comes, or two, while they go on. An answer
during it may be an error, but not a wrong one. The servers after it are read as clients read: the files of the round
and {sample} older ones, byte for byte, and indexes, have to be what was acknowledged, through each node; what had no
response is there as a whole, or is not. Every half hour, and in the end, all are read, `pkgrepo verify` reads what the
stopped servers have, and new servers take over.

Beside the writers some of {tasks} tasks work in each round:
{names}
Each knows what has to hold: a block or a revoked token holds for each later read, a stage is published as a whole, a
moved version is in one of both places, a tag is what it was at some moment of the read. When all is read, the log of
events, what is counted, leftovers of a collection, and a catalog that is rebuilt from the readable layout are compared,
too, and no log has a secret of the run.

A power cut discards all that was not synced to an ext4 disk. System calls fail by strace, in all threads of all
processes; networks are cut in a network namespace, so that connections end (reset), or nothing arrives any more at
either side (silence) or at the node only (no answers). `--results FILE --page FILE` of one run after the other write
this page. What a run finds is counted in it, and said. Most servers are forks of a process that has imported the
program; an ordinary start takes longer by what that takes, more than a second of a processor.
{engines}
## What it has found

These were wrong in some run, most of them before the ones above. Each is mended, and a test of its own holds it.

{found}"""
FOUND: Final = (
    "A PUT that a killed bucket server answered with 412 when it was repeated counted as stored, and was not: the "
    "catalog named a blob without bytes.",
    "A catalog that could not be read at the first look at a repository was an unexpected error (500), and no 503.",
    "A process that had no descriptor left at its first gem or chart could read no YAML until it was restarted.",
    "Nested JSON, and numbers with thousands of digits, were unexpected errors in several formats.",
    "An older version that was promoted after the newest one had been moved became `latest` again.",
    "A document of an upstream whose stored parts could not be read was an unexpected error (500), and no 503.",
    "A power cut could bring a removed conda package back into the readable layout, which nothing there knew of.",
    "Who went on with an upload of a worker that was killed waited for half a minute: it is 12 s now.",
)
ENGINE: Final = """
## {title}

| | |
| --- | --- |
{facts}

| fault | times | recovered after, median | 99 % | longest |
| --- | --- | --- | --- | --- |
{faults}
{told}"""


@define
class Result:
    """
    What comes out of the rounds of a run.

    ``faults`` are counted by name, those that others are made of and those, too; ``recoveries_s`` are the seconds from
    the end of each to a good answer of every server. ``wrong`` are sentences, ``found`` counts them by kind. ``lives``
    counts the servers, which are new ones from time to time; ``items`` are those of all of them.
    """

    seed: int
    minutes: float = 0
    rounds: int = 0
    lives: int = 0
    interrupted: bool = False
    faults: Counter[str] = Factory(Counter)
    recoveries_s: defaultdict[str, list[float]] = Factory(lambda: defaultdict(list))
    steps: Counter[str] = Factory(Counter)
    acknowledged: int = 0
    items: int = 0
    wrong: list[str] = Factory(list)
    found: Counter[str] = Factory(Counter)
    left_out: list[str] = Factory(list)


@frozen
class Struck:
    """A fault of a summary: how often it came, and the seconds after which every server gave a good answer again."""

    times: int
    median_s: float | None = None
    p99_s: float | None = None
    longest_s: float | None = None


@frozen
class Summary:
    """
    What the page says of an engine; the form of its value in the file of results.

    ``told`` are sentences about what was wrong, without their histories.
    """

    date: str
    machine: str
    command: str
    minutes: float
    rounds: int
    faults: Mapping[str, Struck]
    steps: Mapping[str, int]
    acknowledged: int
    items: int
    found: Mapping[str, int]
    left_out: Sequence[str]
    told: Sequence[str] = ()


def summary_of(result: Result, command: str) -> Summary:
    """The summary of a run on this machine."""
    return Summary(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, "
        f"Python {platform.python_version()}",
        command=command,
        minutes=result.minutes,
        rounds=result.rounds,
        faults={
            name: Struck(times, *_times(result.recoveries_s.get(name, [])))
            for name, times in sorted(result.faults.items())
        },
        steps=dict(sorted(result.steps.items())),
        acknowledged=result.acknowledged,
        items=result.items,
        found={each: result.found[each] for each in KINDS},
        left_out=result.left_out,
        told=[each.partition("\n")[0][:LONGEST] for each in result.wrong],
    )


def merged(file: Path, engine: str, summary: Summary) -> dict[str, Summary]:
    """Put the summary of an engine into a file of results, instead of an earlier one. Returns all that it has."""
    every = msgspec.json.decode(file.read_bytes(), type=dict[str, Summary]) if file.exists() else {}
    every[engine] = summary
    file.write_bytes(msgspec.json.format(msgspec.json.encode(every), indent=2) + b"\n")
    return every


def page(summaries: Mapping[str, Summary], writers: int) -> str:
    """The page of the book, in Markdown, with a part for each engine that has a summary."""
    parts = [_part(ENGINES[name].about, each) for name, each in sorted(summaries.items(), reverse=True)]
    names = fill(f"{', '.join(sorted(each.name for each in TASKS))}.", WIDTH)
    return PAGE.format(
        engines="".join(parts),
        writers=writers,
        formats=len(REPOSITORIES),
        sample=SAMPLE,
        tasks=len(TASKS),
        names=names,
        found="\n".join(map(_item, FOUND)),
    )


def _part(about: str, of: Summary) -> str:
    done = ", ".join(f"{count} {name}" for name, count in of.steps.items())
    rows = {
        "run": f"{of.date}, `{of.command}`: {of.rounds} rounds in {of.minutes:g} minutes",
        "machine": of.machine,
        "acknowledged changes": of.acknowledged,
        "versions": of.items,
        "steps": done,
        **of.found,
        **({"left out": "; ".join(of.left_out)} if of.left_out else {}),
    }
    return ENGINE.format(
        title=about[0].upper() + about[1:],
        facts="\n".join(f"| {name} | {value} |" for name, value in rows.items()),
        faults="\n".join(
            f"| {name} | {each.times} | {' | '.join(map(_seconds, (each.median_s, each.p99_s, each.longest_s)))} |"
            for name, each in of.faults.items()
        ),
        told="\n" * bool(of.told) + "".join(f"{_item(each)}\n" for each in of.told),
    )


def _item(text: str) -> str:
    return fill(f"- {text}", WIDTH, subsequent_indent="  ")


def _times(recoveries_s: Sequence[float]) -> tuple[float, ...]:
    found = sorted(recoveries_s)
    return tuple(round(found[int((len(found) - 1) * part)], 2) for part in (0.5, 0.99, 1)) if found else ()


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
