"""
Rounds of one target: a child process gives it mutated inputs for some seconds, and keeps those that break its promise.

With atheris (`pip install atheris`) an input that reaches code which none before has reached is mutated further; the
inputs that a run has so collected stay in ``.cache/fuzz`` for the next one. Without it the stored inputs are mutated.
What ends the child, or is not interrupted, is kept too: the input that it had then is in shared memory.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from attrs import define

from . import corpus
from .mutations import mutate
from .target import LARGEST, Finding, Target, TooSlow, bounded_time, limit_memory, run

ROOT: Final = Path(__file__).parents[3]
COLLECTED: Final = ROOT / ".cache" / "fuzz"
MEMORY: Final = 1024 * 1024 * 1024  # bytes of the child beyond those at its start, with what is collected
LATE_S: Final = 60  # after the end of its time, when what nothing interrupts is one more finding
MOST_FINDINGS: Final = 5  # of one round
HEAD: Final = 4  # bytes of the length of the input in shared memory


@define
class Round:
    """What came out of one: the inputs that were tried, and the findings, one for each place in the code."""

    target: str
    tried: int
    findings: list[Finding]


class _Child:
    """What the child process does with each input. ``seen`` are the places of findings."""

    def __init__(self, target: Target, shared: mmap.mmap, out: int) -> None:
        self._target, self._shared, self._out = target, shared, out
        self._seen: set[tuple[str, str]] = set()
        self.tried = 0

    def give(self, data: bytes) -> None:
        """Give an input, whose sums are right, to the target; report what it should not do."""
        data = self._target.mend(data[:LARGEST])
        self._shared[: HEAD + len(data)] = len(data).to_bytes(HEAD, "little") + data
        self.tried += 1
        try:
            with bounded_time():
                run(self._target, data)
        except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever it is
            place = _place_of(error)
            if (type(error).__name__, place) not in self._seen:
                self._seen.add((type(error).__name__, place))
                self.tell(why=f"{type(error).__name__}: {str(error)[-500:]} at {place}", data=data.hex())
        if self.tried % 500 == 0:
            self.tell(tried=self.tried)

    def tell(self, **said: Any) -> None:
        """One line for the parent."""
        os.write(self._out, json.dumps(said).encode() + b"\n")


def run_round(target: Target, seconds: float, seed: int, guide: ModuleType | None = None) -> Round:
    """Fuzz a target for so many seconds, in a child process; ``guide`` is the module ``atheris``."""
    shared = mmap.mmap(-1, HEAD + LARGEST)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            _be_child(_Child(target, shared, write), target, seconds, seed, guide)
        finally:
            os._exit(1)  # _be_child ends the process itself
    os.close(write)
    result = Round(target.name, 0, [])
    ends_at, late = time.monotonic() + seconds + LATE_S, False
    with open(read, "rb") as lines:
        os.set_blocking(read, False)
        rest = b""
        while True:
            part = os.read(read, 1 << 16) if _readable(read, 1.0) else None
            if part == b"":
                break
            *whole, rest = (rest + (part or b"")).split(b"\n")
            for line in whole:
                _take(result, json.loads(line))
            if time.monotonic() > ends_at:
                late = True
                os.kill(pid, signal.SIGKILL)
                break
        del lines
    _, status = os.waitpid(pid, 0)
    if late or os.WIFSIGNALED(status) or os.WEXITSTATUS(status):
        size = int.from_bytes(shared[:HEAD], "little")
        why = "nothing interrupts it" if late else f"the process ended with status {status}"
        result.findings.append(Finding(target.name, shared[HEAD : HEAD + size], why))
    return result


def _readable(descriptor: int, seconds: float) -> bool:
    import select

    return bool(select.select([descriptor], [], [], seconds)[0])


def _take(result: Round, said: dict[str, Any]) -> None:
    result.tried = said.get("tried", result.tried)
    if "data" in said and len(result.findings) < MOST_FINDINGS:
        result.findings.append(Finding(result.target, bytes.fromhex(said["data"]), said["why"]))


def _place_of(error: BaseException) -> str:
    """The last line of ours on the way to an error."""
    ours = [each for each in traceback.extract_tb(error.__traceback__) if "/pkgrepo/" in each.filename]
    return f"{ours[-1].filename.rpartition('/pkgrepo/')[2]}:{ours[-1].lineno}" if ours else "?"


def _be_child(child: _Child, target: Target, seconds: float, seed: int, guide: ModuleType | None) -> None:
    limit_memory(MEMORY)
    stored = [data for _, data in corpus.inputs(target.name)] or [b""]
    if guide is None:
        chance, ends_at = random.Random(seed), time.monotonic() + seconds
        while time.monotonic() < ends_at:
            child.give(mutate(chance.choice(stored), target.words, stored, chance))
        child.tell(tried=child.tried)
        os._exit(0)
    folder = COLLECTED / target.name
    folder.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(COLLECTED / "log.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 2)

    def mutated(data: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)
        if chance.random() < 0.4:
            found: bytes = guide.Mutate(data, most)  # type: ignore[union-attr]
        else:
            found = mutate(data, target.words, stored, chance)
        return target.mend(found)[:most]

    options = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed % 2**31 or 1}", f"-max_len={LARGEST}"]
    options += ["-timeout=120", "-rss_limit_mb=0", "-verbosity=0", "-len_control=0"]
    folders = [str(folder), *([str(corpus.FOLDER / target.name)] if (corpus.FOLDER / target.name).is_dir() else [])]
    guide.Setup([sys.argv[0], *options, *folders], child.give, custom_mutator=mutated)
    guide.Fuzz()  # ends the process
