"""Clients that ask questions in a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess

from tests.support.client_programs import client
from tests.support.npm_clients import NodeBench
from tests.support.timeouts import TIMEOUT_S


class Terminal:
    """Runs a client in a pseudo-terminal, reads its output, and answers its questions."""

    def __init__(self, bench: NodeBench, name: str, *command: str) -> None:
        self._master, end = pty.openpty()
        self._process = subprocess.Popen(
            [str(client(name)), *command],
            env=bench.environ_of(name),
            cwd=bench.folder,
            stdin=end,
            stdout=end,
            stderr=end,
        )
        os.close(end)
        self.output = ""

    def read_until(self, pattern: str) -> re.Match[str]:
        """Wait until the output matches a pattern, and return the match."""
        while (found := re.search(pattern, self.output)) is None:
            self.output += self._read()
        return found

    def answer(self, pattern: str, text: str) -> None:
        """Type a line when the output matches the pattern of a question."""
        end = self.read_until(pattern).end()
        self.output = self.output[end:]
        os.write(self._master, text.encode() + b"\n")

    def wait(self) -> int:
        """Wait until the client exits, and return its exit status."""
        while self._process.poll() is None:
            try:
                self.output += self._read()
            except AssertionError:
                break
        os.close(self._master)
        return self._process.wait(TIMEOUT_S)

    def _read(self) -> str:
        try:
            data = os.read(self._master, 4096)
        except OSError:  # the client has closed the terminal
            data = b""
        assert data, f"it ended: {self.output}"
        return data.decode("utf-8", "replace")
