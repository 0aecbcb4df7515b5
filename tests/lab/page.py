"""The page of the book about what servers survive, and the file of results that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Final

import msgspec
from attrs import Factory, define

from tests.lab.faults.checks import SAMPLE
from tests.lab.faults.engines import ENGINES
from tests.lab.faults.results import Summary
from tests.lab.faults.rounds import WRITERS
from tests.lab.load.measured import Measured, rows
from tests.support.first_publishes import REPOSITORIES

WIDTH: Final = 120  # characters of a line of the book
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

Beside the writers some of the tasks that are named below work in each round. Each knows what has to hold: a block or a
revoked token holds for each later read, a stage is published as a whole, a moved version is in one of both places, a
tag is what it was at some moment of the read. When all is read, the log of events, what is counted, leftovers of a
collection, and a catalog that is rebuilt from the readable layout are compared, too, and no log has a secret of the
run.

A power cut discards all that was not synced to an ext4 disk. System calls fail by strace, in all threads of all
processes; networks are cut in a network namespace, so that connections end (reset), or nothing arrives any more at
either side (silence) or at the node only (no answers). `--results FILE --page FILE` of one run after the other write
this page. What a run finds is counted in it, and said. Most servers are forks of a process that has imported the
program; an ordinary start takes longer by what that takes, more than a second of a processor.
{engines}{loads}
## What it has found

These were wrong in some run, most of them before the ones above. Each is mended, and all but the time of the lease of
an upload have a test of their own.

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
    "A backup that was cancelled by the stop of its server was an unexpected error in the log: its database was closed "
    "while a thread still used it.",
    "A question to an upstream that ended while its server stopped was one, too: what it gave up had been given up.",
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


LOADS: Final = """
## Under load

{about}

{rows}
{notes}"""
ABOUT_LOADS: Final = (
    "`bin/faults --load` on {date}, {machine}. Each load has a server of its own with two workers and SQLite. "
    "Others are a client that reads an index and searches, one request after the other, before the load and beside "
    "it; a search first follows what was published before it. The load, its clients and the others share the "
    "processors: who was alone takes turns beside it, and waits for some milliseconds. Memory is that of all processes "
    "together. Steps are one after the other, and what the last hundred take of the processors is compared with what "
    "the first hundred took."
)


@define
class Results:
    """What runs have measured, by engine and by the name of the load; ``wrong`` of them is counted in each."""

    engines: dict[str, Summary] = Factory(dict)
    loads: dict[str, Measured] = Factory(dict)

    @classmethod
    def read(cls, file: Path | None) -> Results:
        """The results of a file; none if there is no file."""
        return msgspec.json.decode(file.read_bytes(), type=cls) if file is not None and file.exists() else cls()

    def write(self, file: Path) -> None:
        """Write them, to be read again."""
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    def page(self) -> str:
        """The page of the book, in Markdown, with a part for each engine and one for all loads, if they are known."""
        engines = [_part(ENGINES[name].about, each) for name, each in sorted(self.engines.items(), reverse=True)]
        return PAGE.format(
            engines="".join(engines),
            loads=_loads([*self.loads.values()]) if self.loads else "",
            writers=WRITERS,
            formats=len(REPOSITORIES),
            sample=SAMPLE,
            found="\n".join(map(_item, FOUND)),
        )


def _loads(loads: Sequence[Measured]) -> str:
    notes = [_item(f"{each.size} {each.name}: {'; '.join(each.notes)}.") for each in loads if each.notes]
    wrong = [
        _item(f"{each.size} {each.name}: {each.wrong} responses were refused or wrong.") for each in loads if each.wrong
    ]
    told = "".join(f"{each}\n" for each in (*notes, *wrong))
    date, machine = loads[-1].date, loads[-1].machine
    about = fill(ABOUT_LOADS.format(date=date, machine=machine), WIDTH)
    return LOADS.format(about=about, rows="\n".join(rows(loads)), notes="\n" * bool(told) + told)


def _part(about: str, of: Summary) -> str:
    done = ", ".join(f"{count} {name}" for name, count in of.steps.items())
    rows = {
        "run": f"{of.date}, `{of.command}`: {of.rounds} rounds in {of.minutes:g} minutes",
        "machine": of.machine,
        "acknowledged changes": of.acknowledged,
        "versions": of.items,
        "steps": done,
        **({"tasks": ", ".join(of.tasks)} if of.tasks else {}),
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


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
