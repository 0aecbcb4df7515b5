"""The file with a copy of the audit log."""

from __future__ import annotations

from pathlib import Path

from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog, is_out_of_descriptors
from pkgrepo.storage.private_files import private_opener, tighten

log = Logger()


class AuditFile:
    """
    Appends lines to a file that is opened for each line, so that log rotation may rename it at any time.

    A line is written to the page cache, which takes microseconds, without fsync. A line that cannot be written is lost
    and the failure is logged: the catalog has the row.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = FailureLog(log, f"lines cannot be written to {path}")

    def restrict_permissions(self) -> None:
        """Restrict an existing file to its owner; earlier releases created it with wider permissions."""
        tighten(self._path)

    def append(self, line: bytes) -> None:
        """Append one line, which ends with a line feed."""
        try:
            with open(self._path, "ab", opener=private_opener) as file:
                file.write(line)
        except OSError as error:
            if not is_out_of_descriptors(error):
                self._failures.failed(error)
        else:
            self._failures.succeeded()
