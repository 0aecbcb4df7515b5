"""
Types answers at a terminal: ``python -m tests.clients.book.typed COMMAND ANSWER...``.

Each answer is typed when the command has printed the beginning of a line and waits. The exit status is the command's.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

WAITS_S: Final = 0.5  # without output


def main(command: str, answers: Sequence[str]) -> int:
    """Run a command of the shell, print what it prints, and return its exit status."""
    left = list(answers)
    master, end = pty.openpty()
    with subprocess.Popen(["bash", "-c", command], stdin=end, stdout=end, stderr=end, start_new_session=True) as ran:
        os.close(end)
        last = b"\n"
        while True:
            ready, _, _ = select.select([master], [], [], WAITS_S)
            if ready:
                try:
                    data = os.read(master, 4096)
                except OSError:  # the other end is closed
                    break
                if not data:
                    break
                last = data
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
            elif left and not last.endswith(b"\n"):
                os.write(master, left.pop(0).encode() + b"\n")
                last = b"\n"
        return ran.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
