"""Running out of file descriptors: how an error is recognised as that, and one log line a minute about it."""

from __future__ import annotations

import errno
import resource
import time

from twisted.logger import Logger

LOG_EVERY_S = 60.0

_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})
_log = Logger()
_logged_at: float | None = None


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
