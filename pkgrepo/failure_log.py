"""Log lines about failures: the first and the last of a series, and running out of file descriptors."""

from __future__ import annotations

import errno
import resource
import time
from collections.abc import Callable

from twisted.logger import Logger
from twisted.python.failure import Failure

QUIET_S = 30.0  # seconds without a failure until it works again: on a full disk small writes succeed now and then
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

LOG_EVERY_S = 60.0
_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})
_log = Logger()
_logged_at: float | None = None


class FailureLog:
    """
    Logs the first of several failures and the recovery; ``what`` is a sentence: "the catalog cannot be written".

    It may be used from any thread, by one at a time.
    """

    def __init__(self, log: Logger, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._failed_at: float | None = None

    def failed(self, error: Exception, *, full: bool = False, reason: str = "") -> None:
        """
        Note a failed attempt. With ``full``, or an error that says so, the disk is full: that has no traceback, like a
        failure with a ``reason``, a clause that is logged instead.
        """
        first, self._failed_at = self._failed_at is None, self._clock()
        if not first:
            return
        if full or (isinstance(error, OSError) and error.errno in _FULL):
            self._log.error("{what}: its disk has no room left", what=self._what)
        elif reason:
            self._log.error("{what}: {reason}", what=self._what, reason=reason)
        else:
            self._log.failure("{what}", failure=Failure(error), what=self._what)

    def succeeded(self) -> None:
        """Note an attempt that worked."""
        if self._failed_at is not None and self._clock() - self._failed_at >= QUIET_S:
            self._failed_at = None
            self._log.info("no longer: {what}", what=self._what)


def is_out_of_descriptors(error: BaseException | None) -> bool:
    """
    Whether ``error`` says that the process, or the machine, has no file descriptor left.

    If so, that is logged, at most once in ``LOG_EVERY_S`` seconds: everything that opens a file fails at such a time.
    It may be called from any thread.
    """
    if not isinstance(error, OSError) or error.errno not in _ERRNOS:
        return False
    global _logged_at  # noqa: PLW0603 - descriptors belong to the process, and so does the log line about them
    now = time.monotonic()
    if _logged_at is None or now - _logged_at >= LOG_EVERY_S:
        _logged_at = now
        _log.error(
            "out of file descriptors ({reason}; the limit of this process is {limit}): requests that need one are "
            "answered with 503; raise LimitNOFILE= of the unit, or ulimit -n",
            reason=error.strerror,
            limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
    return True
