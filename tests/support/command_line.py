"""Runs ``pkgrepo`` as a child process, as people and scripts do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.support.forked_programs import run_pkgrepo
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import clean_environment
from tests.support.timeouts import TIMEOUT_S

PROGRAM = str(Path(sys.executable).with_name("pkgrepo"))


@frozen
class Program:
    """Runs ``pkgrepo`` with its profiles below ``folder``, which is its working directory too."""

    folder: Path
    url: str

    def run(self, *arguments: str | Path, told: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run it until it exits."""
        result = run_pkgrepo(*arguments, environ=self.environ(**variables), folder=self.folder, told=told)
        assert "Traceback" not in result.stderr, result.stderr
        return result

    def __call__(self, *arguments: str | Path, told: str = "", **variables: str) -> str:
        """Run it; return its standard output. Another exit code than 0 fails the test."""
        result = self.run(*arguments, told=told, **variables)
        assert result.returncode == 0, result
        return result.stdout

    def json(self, *arguments: str | Path, **variables: str) -> Any:
        """Run it with ``--json``; return the decoded output."""
        return json.loads(self(*arguments, "--json", **variables))

    def refused(self, code: int, *arguments: str | Path, told: str = "", **variables: str) -> str:
        """Run it; it must end with this exit code and print nothing but one line of an error, which is returned."""
        result = self.run(*arguments, told=told, **variables)
        assert (result.returncode, result.stdout) == (code, ""), result
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        return lines[0]

    def interrupted(self, *arguments: str | Path, begun: Callable[[], object] | None = None) -> tuple[int, str]:
        """
        Run it, press Ctrl-C when ``begun`` returns, and return the exit code and the standard error.

        Without ``begun``, Ctrl-C is pressed when the program has printed its first line.
        """
        process = subprocess.Popen(
            [
                "/usr/bin/env",
                "--default-signal=INT",
                PROGRAM,
                *map(str, arguments),
            ],  # shells ignore it in the background
            env=self.environ(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            (begun or process.stdout.readline)()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        assert "Traceback" not in errors, errors
        return process.returncode, errors

    def environ(self, **variables: str) -> dict[str, str]:
        """The environment that it runs in."""
        return clean_environment(
            XDG_CONFIG_HOME=str(self.folder / "config"), HOME=str(self.folder), COLUMNS="100", **variables
        )

    def log_in(self, *options: str, user: str = USER, password: str = PASSWORD) -> str:
        """Log in with a password from standard input; return what is printed."""
        return self("login", self.url, "-u", user, "--password-file", "-", *options, told=password + "\n")
