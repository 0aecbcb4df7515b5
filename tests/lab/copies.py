"""A copy of the checkout in a temporary folder, of which one file at a time is another one, and the tests in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from tests.support.server_process import ROOT

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
COLLECTED_NOTHING = 5  # pytest's exit status
NO_TESTS = "no tests"


@frozen
class Outcome:
    """Of a run of tests: whether they passed, how long it took, and which one failed first or what else ended it."""

    passed: bool
    seconds: float
    by: str = ""


class Copy:
    """The checkout as it is, also what is not committed, without what is ignored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._no_bytecode = ""

    def run(self, tests: Sequence[str], limit_s: float) -> Outcome:
        """Run these files, in this order, to the first failure; one that takes longer is a failure."""
        if not tests:  # without any pytest runs all that there are
            return Outcome(passed=True, seconds=0, by=NO_TESTS)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        began = time.monotonic()
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PKGREPO_HYPOTHESIS": "landing"}
        environment |= {"PYTHONDONTWRITEBYTECODE": self._no_bytecode, "PYTHONPYCACHEPREFIX": ""}
        process = subprocess.Popen(
            [*command, *tests],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return Outcome(passed=False, seconds=limit_s, by="the limit of time")
        finally:
            _end(process)
        seconds = time.monotonic() - began
        if process.returncode == 0:
            return Outcome(passed=True, seconds=seconds)
        if process.returncode == COLLECTED_NOTHING:
            return Outcome(passed=True, seconds=seconds, by=NO_TESTS)
        found = FAILED.search(output)
        return Outcome(passed=False, seconds=seconds, by=found.group(1) if found else output.strip()[-400:])

    @contextmanager
    def changed(self, file: str, content: bytes) -> Iterator[None]:
        """
        Have another content of a file meanwhile.

        It is not kept compiled: two slips of the same second may have the same size, by which Python knows a file.
        """
        place = self.folder / file
        original = place.read_bytes()
        compiled = place.parent / "__pycache__"
        for each in compiled.glob(f"{place.stem}.*.pyc"):
            each.unlink()
        place.write_bytes(content)
        self._no_bytecode = "1"
        try:
            yield
        finally:
            self._no_bytecode = ""
            place.write_bytes(original)


@contextmanager
def copied(root: Path = ROOT) -> Iterator[Copy]:
    """A copy, which is gone afterwards. Programs of clients are not copied but linked."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="pkgrepo-slips-") as name:
        folder = Path(name)
        for each in sorted({*listing.stdout.decode().split("\0")} - {""}):
            source, target = root / each, folder / each
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        if (clients := root / ".cache" / "clients").is_dir():
            (folder / ".cache").mkdir()
            (folder / ".cache" / "clients").symlink_to(clients)
        yield Copy(folder)


def _end(process: subprocess.Popen[str]) -> None:
    """End all that the tests started: it is a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
