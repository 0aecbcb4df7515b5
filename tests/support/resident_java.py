"""Processes that run one command of a build tool after another: a warm JVM takes a fifth of the processor time."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.client_programs import ROOT, client_environment, program
from tests.support.java_programs import OPTIONS, compiled, joined
from tests.support.timeouts import TIMEOUT_S

PROGRAMS = ROOT / "tests" / "clients" / "java"


class ResidentProgram:
    """
    A process for the commands of a program of one Java file, see Resident.java.

    It uses the archives ``classes``. Its last argument is the file for answers, after ``arguments``; ``options`` are of
    the JVM.
    """

    def __init__(
        self, source: Path, classes: Sequence[Path], *arguments: str | Path, options: Sequence[str] = ()
    ) -> None:
        jar = compiled(source, classes)
        read_end, write_end = os.pipe()
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self._process = subprocess.Popen(
            [
                *(program("java"), f"-Duser.home={folder}", *OPTIONS, "-Xmx512m", *options),
                *("-cp", joined([jar, *classes]), source.stem, *arguments, f"/dev/fd/{write_end}"),
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
        """Run a command in a folder, and return its exit status and output. A process that hangs fails the test."""
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


_running: dict[Path, ResidentProgram] = {}


def resident_maven(program: Path) -> ResidentProgram:
    """Return the process of a Maven, started if need be; ``program`` is the path of ``mvn``."""
    home = program.resolve().parents[1]

    def start() -> ResidentProgram:
        return ResidentProgram(PROGRAMS / "Maven.java", sorted((home / "boot").glob("plexus-classworlds*.jar")), home)

    return _resident(home, start)


def resident_gradle(home: Path) -> ResidentProgram:
    """Return the process of the Gradle whose archives are in a folder, started if need be."""
    options = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
    source, classes = PROGRAMS / "Gradle.java", sorted(home.glob("*.jar"))
    return _resident(home, lambda: ResidentProgram(source, classes, options=options))


def _resident(home: Path, start: Callable[[], ResidentProgram]) -> ResidentProgram:
    if home in _running and not _running[home].alive:
        _running.pop(home).stop()  # so that its end fails one test only
    if home not in _running:
        _running[home] = start()
    return _running[home]


def stop_all() -> None:
    """End all processes."""
    while _running:
        _running.popitem()[1].stop()
