"""The command behind ``bin/faults``: rounds of work and faults for some minutes, and a page of what came out."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest
from attrs import define, evolve

from tests.lab.page import Results

from .checkers.last import Last
from .checks import CHECKS
from .engines import ENGINES
from .engines.estate import Engine, Estate, Fault, NotRecovered
from .jobs import JOBS
from .jobs.crew import Crew
from .ledger import Ledger
from .results import Result, summary_of
from .rounds import WRITERS, WRONG, Check, Finding, Job, Round, Worker

ROUND_S: Final = (0.2, 1.0)  # how long there is work before a fault
AFTER_S: Final = 0.2  # and after the servers have recovered from it
LIFE_S: Final = 1800.0  # after which servers are looked at as a whole, and new ones come: what a run keeps is bounded
MOST_SPOILED: Final = 8  # servers with something wrong, after which a run ends
CONFIGURATION: Final = "limits.login_failures = 1000\nlog.access = false\n"


def run(
    folder: Path,
    minutes: float,
    seed: int,
    *,
    engine: Engine,
    rounds: int = 10**9,
    writers: int = WRITERS,
    tell: Callable[[str], object] = str,
    faults: Sequence[str] = (),
) -> Result:
    """
    Do rounds until so many minutes have passed, or so many are done, or an interrupt comes.

    Servers are looked at as a whole and replaced by new ones after ``LIFE_S``, or when something is wrong with them;
    after ``MOST_SPOILED`` of those the run ends. The folders of the latter are kept. ``tell`` is called with a line
    about each round. With ``faults`` only those come, in turn.
    """
    result, begun_at = Result(seed), time.monotonic()
    ends_at = begun_at + minutes * 60
    spoiled = 0
    try:
        while spoiled < MOST_SPOILED and result.rounds < rounds and (not result.lives or time.monotonic() < ends_at):
            place, found = folder / f"servers{result.lives}", len(result.wrong)
            place.mkdir()
            try:
                _live(place, result, engine, min(ends_at, time.monotonic() + LIFE_S), rounds, writers, tell, faults)
            except Exception:  # noqa: BLE001 - whatever the lab cannot do is told, and no reason to lose the rest
                _note(result, f"after round {result.rounds}", [Finding(traceback.format_exc())], None)
            result.lives += 1
            for each in result.wrong[found:]:
                tell(f"{WRONG.upper()}: {each}")
            if len(result.wrong) > found:
                spoiled += 1
            else:
                shutil.rmtree(place, ignore_errors=True)
    except KeyboardInterrupt:
        result.interrupted = True
    result.minutes = round((time.monotonic() - begun_at) / 60, 1)
    return result


def _live(
    folder: Path,
    result: Result,
    engine: Engine,
    ends_at: float,
    rounds: int,
    writers: int,
    tell: Callable[[str], object],
    faults: Sequence[str],
) -> None:
    """Do rounds with new servers until a time, or so many are done, or something is wrong."""
    seed, ledger, found = result.seed, Ledger(folder / "ledger.jsonl"), len(result.wrong)
    rng = random.Random(f"{seed} {result.lives} tasks")
    crew = Crew(folder / "tasks", ledger, rng, near=engine.is_near, lag_s=engine.lag_s)
    jobs, checks = [*JOBS, crew.job], [*CHECKS, crew.check]
    configuration = CONFIGURATION + "".join(each.configuration for each in jobs)
    try:
        with engine.run(folder, configuration) as estate, closing(crew):
            result.left_out = [*estate.left_out]
            result.tasks = [each.name for each in crew.tasks]
            for each in jobs:
                each.prepare(estate.urls[0])
            while time.monotonic() < ends_at and result.rounds < rounds and len(result.wrong) == found:
                chosen = random.Random(f"{seed} {result.rounds} fault")
                fault = _chosen(estate.faults, faults, result.rounds, chosen)
                work = random.Random(f"{seed} {result.rounds} work")
                begun = sum(1 for _ in ledger.states())
                round_ = Round(result.rounds, estate.urls, ledger, work, begun, writers)
                told = _Run(estate, result, round_, jobs, checks).go(fault, chosen)
                result.rounds += 1
                tell(told)
            if len(result.wrong) == found:
                last, begun_at = Round(result.rounds, estate.urls, ledger, rng, 0, 0), time.monotonic()
                _note(result, f"after round {result.rounds}", _ended(estate, last, checks, crew), ledger)
                tell(f"the end of these servers took {time.monotonic() - begun_at:.1f}")
    finally:
        result.acknowledged += ledger.acknowledged
        result.items += sum(1 for each in ledger.states() if each.item.file)
        ledger.close()


def _ended(estate: Estate, round_: Round, checks: Sequence[Check], crew: Crew) -> Iterator[Finding]:
    """Everything once more, and what is wrong with the data when all is stopped."""
    estate.renew()
    found = [each for check in checks for each in check(round_)]
    yield from found
    last = None if estate.data is None else Last(crew.lab, estate.data, crew.folder)
    if last is not None and not found:
        found = [Finding(each) for each in last.running()]
        yield from found
    if found:
        return
    yield from map(Finding, estate.end())
    if last is not None:
        yield from map(Finding, last.stopped(estate.outputs()))


def _chosen(every: Sequence[Fault], named: Sequence[str], number: int, rng: random.Random) -> Fault:
    if named:
        [found] = [each for each in every if each.name == named[number % len(named)]]
        return found
    return rng.choices(every, [each.chance for each in every])[0]


@define
class _Run:
    """One round."""

    estate: Estate
    result: Result
    round: Round
    jobs: Sequence[Job]
    checks: Sequence[Check]

    def go(self, fault: Fault, rng: random.Random) -> str:
        """Work, the fault, and what comes after it. Returns a line about it."""
        ledger, times = self.round.ledger, [time.monotonic()]
        workers = [each for job in self.jobs for each in job.begin(self.round)]
        time.sleep(rng.uniform(*ROUND_S))
        ledger.note(fault=fault.name, round=self.round.number)
        times.append(time.monotonic())
        where = f"round {self.round.number}, {fault.name}"
        try:
            parts = [*(fault.strike(rng) or ())]
            times.append(time.monotonic())
            where += f" ({', '.join(parts)})" if parts else ""
            self.estate.mend(fault)
            times.append(time.monotonic())
            if parts:
                ledger.note(parts=parts, round=self.round.number)
            time.sleep(AFTER_S)
        except (NotRecovered, AssertionError) as error:  # the second: a process does not start, or does not end
            _note(self.result, where, [Finding(str(error))], ledger)
            return where
        finally:
            self._join(workers, where, times[1])
        for name in (fault.name, *parts):
            self.result.faults[name] += 1
        self.result.recoveries_s[fault.name].append(times[3] - times[2])
        self.estate.settle()
        times.append(time.monotonic())
        after = evolve(self.round, rng=random.Random(f"{self.result.seed} {self.round.number} checks"))
        _note(self.result, where, (found for check in self.checks for found in check(after)), ledger)
        _note(self.result, where, map(Finding, self.estate.said(fault)), ledger)
        times.append(time.monotonic())
        spent = zip(("work", "fault", "recovery", "end", "checks"), times, times[1:], strict=False)
        longest_s, longest = max(each.longest for each in workers)
        spent_s = ", ".join(f"{name} {end - begin:.1f}" for name, begin, end in spent)
        return f"{where}: {spent_s}; {longest} took {longest_s:.1f}"

    def _join(self, workers: Sequence[Worker], where: str, struck_at: float) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()
            self.result.steps += worker.counts
            excused = [each for each in worker.wrong if each.at >= struck_at and each.status >= 500]
            self.result.steps["refused"] += len(excused)
            wrong = dict.fromkeys(each.what for each in worker.wrong if each not in excused)  # each of them once
            _note(self.result, where, map(Finding, wrong), self.round.ledger)


def _note(result: Result, where: str, found: Iterable[Finding], ledger: Ledger | None) -> None:
    """Add a sentence for each finding, with the history of its item."""
    for each in found:
        result.found[each.kind] += 1
        item = each.item
        told = each.why if item is None else f"{item.format} {item.name} {item.version}: {each.why}"
        history = [] if item is None or ledger is None else ledger.history(item)
        result.wrong.append("\n    ".join([f"{where}: {told}", *history]))


def main(arguments: Sequence[str]) -> int:
    """Run rounds; 1 if something was wrong, 2 if this machine cannot."""
    parser = argparse.ArgumentParser(prog="bin/faults", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of an earlier run")
    parser.add_argument("--engine", choices=[*ENGINES], default="sqlite")
    parser.add_argument("--only", action="append", default=[], metavar="FAULT", help="only this fault; may be repeated")
    parser.add_argument("--results", type=Path, help="put what came out into this file, beside that of other engines")
    parser.add_argument("--page", type=Path, help="write the page of the book, of this run or of --results")
    parser.add_argument("--keep", type=Path, help="work in this folder, and keep it if something is wrong")
    parser.add_argument("--verbose", action="store_true", help="print a line about each round")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    engine = ENGINES[given.engine]
    print(f"seed {seed}", flush=True)
    tell = (lambda line: print(line, flush=True)) if given.verbose else str
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that disks and networks end, too
    try:
        with _folder(given.keep) as folder:
            result = run(folder, given.minutes, seed, engine=engine, tell=tell, faults=given.only)
            if given.keep is not None and not result.wrong:
                shutil.rmtree(folder)
    except pytest.skip.Exception as error:
        print(f"left out: {error}")
        return 2
    summary = summary_of(result, f"bin/faults {given.minutes:g} --engine {engine.name} --seed {seed}")
    print(
        json.dumps(
            {
                "rounds": result.rounds,
                "faults": dict(sorted(result.faults.items())),
                "acknowledged": result.acknowledged,
                "items": result.items,
                "steps": result.steps,
                **summary.found,
            },
            indent=2,
        )
    )
    for each in result.left_out:
        print(f"left out: {each}")
    for each in result.wrong:
        print(f"{WRONG.upper()}: seed {seed}, {each}")
    every = Results.read(given.results)
    every.engines[engine.name] = summary
    if given.results is not None:
        every.write(given.results)
    if result.interrupted:
        print(f"interrupted after {result.minutes:g} minutes")
    if given.page is not None and not result.interrupted:
        given.page.write_text(every.page())
    return 1 if result.wrong else 0


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="faults-") as name:
            yield Path(name)
    else:
        keep.mkdir(parents=True)
        yield keep.absolute()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
