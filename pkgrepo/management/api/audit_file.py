"""A file that lines are appended to."""

from __future__ import annotations

from pathlib import Path

from twisted.logger import Logger

from pkgrepo.diagnostics.descriptors import is_out_of_descriptors
from pkgrepo.diagnostics.failure_log import FailureLog
from pkgrepo.storage.private_files import private_opener, tighten

log = Logger()


class AuditFile:
    """
    Appends to a file that is opened anew for each line, so that it may be moved away at any time.

    A line goes to the page cache, which takes microseconds. What cannot be written is logged and given up: the catalog
    has it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = FailureLog(log, f"lines cannot be written to {path}")

    def close_to_others(self) -> None:
        """Let only the owner read what an earlier release wrote; new files are made so."""
        tighten(self._path)

    def append(self, line: bytes) -> None:
        """Write one line, with its end."""
        try:
            with open(self._path, "ab", opener=private_opener) as file:
                file.write(line)
        except OSError as error:
            if not is_out_of_descriptors(error):
                self._failures.failed(error)
        else:
            self._failures.succeeded()
