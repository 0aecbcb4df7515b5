"""Failures of something that is retried: one log line when it begins to fail, and one when it works again."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from twisted.logger import Logger
from twisted.python.failure import Failure

QUIET_S = 30.0  # seconds without a failure until it works again: on a full disk small writes succeed now and then

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


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

    def failed(self, error: Exception, *, full: bool = False) -> None:
        """Note a failed attempt. With ``full``, or an error that says so, the disk is full: that has no traceback."""
        first, self._failed_at = self._failed_at is None, self._clock()
        if not first:
            return
        if full or (isinstance(error, OSError) and error.errno in _FULL):
            self._log.error("{what}: its disk has no room left", what=self._what)
        else:
            self._log.failure("{what}", failure=Failure(error), what=self._what)

    def succeeded(self) -> None:
        """Note an attempt that worked."""
        if self._failed_at is not None and self._clock() - self._failed_at >= QUIET_S:
            self._failed_at = None
            self._log.info("no longer: {what}", what=self._what)
