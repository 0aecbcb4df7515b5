"""The programs of this machine: whether they are there, and what they print."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen

SHORT_S: Final = 20.0  # for a question about a program itself
LONG_S: Final = 120.0  # for a program that asks a server


@frozen
class Outcome:
    """The exit code of a program, None if it did not end in time, and the last lines that it printed."""

    status: int | None
    text: str


@frozen
class Programs:
    """Finds and runs programs in an environment."""

    environ: Mapping[str, str]
    _outputs: dict[tuple[str, ...], str] = field(factory=dict, repr=False, eq=False)

    def find(self, name: str) -> str | None:
        """The path of a program, None if there is none."""
        return shutil.which(name, path=self.environ.get("PATH", os.defpath))

    def output(self, name: str, *arguments: str) -> str:
        """What a program prints, which is asked once; empty if it is missing, or fails."""
        command = (name, *arguments)
        if command not in self._outputs:
            done = self.run(command, SHORT_S) if self.find(name) else Outcome(127, "")
            self._outputs[command] = done.text if done.status == 0 else ""
        return self._outputs[command]

    def run(self, command: Sequence[str], seconds: float = LONG_S, folder: Path | None = None) -> Outcome:
        """Run a program until it ends; it has no standard input. Blocks."""
        found = self.find(command[0]) or command[0]
        try:
            done = subprocess.run(  # noqa: S603 - a tool that the user has named, or its check
                [found, *command[1:]],
                env=dict(self.environ),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, f"it has not ended within {seconds:g} seconds")
        except OSError as error:
            return Outcome(127, error.strerror or "it cannot be run")
        return Outcome(done.returncode, done.stdout.decode("utf-8", "replace").strip())
