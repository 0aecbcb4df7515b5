"""Processes that run one Maven command after another: a JVM that is warm takes a fifth of the processor time."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.support.client_programs import ROOT, client_environment, program
from tests.support.java_programs import OPTIONS, compiled, joined
from tests.support.timeouts import TIMEOUT_S

PROGRAM = ROOT / "tests" / "clients" / "java" / "Maven.java"


class ResidentMaven:
    """A process for the commands of the Maven at ``home``; see Maven.java."""

    def __init__(self, home: Path) -> None:
        [classes] = (home / "boot").glob("plexus-classworlds*.jar")
        jar = compiled(PROGRAM, [classes])
        read_end, write_end = os.pipe()
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self._process = subprocess.Popen(
            [
                *(program("java"), f"-Duser.home={folder}", *OPTIONS, "-Xmx512m"),
                *("-cp", joined([jar, classes]), PROGRAM.stem, home, f"/dev/fd/{write_end}"),
            ],
            env=client_environment(folder),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[write_end],
        )
        os.close(write_end)
        self._answers = open(read_end, "rb")  # noqa: SIM115 - closed by stop

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def run(self, folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
        """Run Maven in a folder, and return its exit status and output. A process that hangs fails the test."""
        words = [word.encode() for word in (str(folder), *arguments)]
        request = b"".join(struct.pack(">H", len(word)) + word for word in words)
        limit = threading.Timer(TIMEOUT_S, self._process.kill)
        limit.start()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(struct.pack(">i", len(words)) + request)
            self._process.stdin.flush()
            status, size = struct.unpack(">ii", self._answers.read(8))
            return status, self._answers.read(size).decode("utf-8", "replace")
        finally:
            limit.cancel()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._answers.close()
        self._folder.cleanup()


_running: dict[Path, ResidentMaven] = {}


def resident_maven(program: Path) -> ResidentMaven:
    """Return the process of a Maven, started if need be; ``program`` is the path of ``mvn``."""
    home = program.resolve().parents[1]
    if home in _running and not _running[home].alive:
        _running.pop(home).stop()  # so that its end fails one test only
    if home not in _running:
        _running[home] = ResidentMaven(home)
    return _running[home]


def stop_all() -> None:
    """End all processes."""
    while _running:
        _running.popitem()[1].stop()
