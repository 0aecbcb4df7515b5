"""Being out of file descriptors: how to recognise it, and one line in the log for all who meet it."""

from __future__ import annotations

import errno
import resource
import time

from twisted.logger import Logger

TELL_EVERY_S = 60.0
SENTENCE = "the server has too many files open; try again in a moment"  # for clients

_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})
_log = Logger()
_told_at: float | None = None


def is_out_of_descriptors(error: BaseException | None) -> bool:
    """
    Whether the process, or the machine, has no file descriptor left for what failed with ``error``.

    When it is so, the log says it, once in ``TELL_EVERY_S`` seconds: everything that opens a file fails at such a time.
    It may be called from any thread.
    """
    if not isinstance(error, OSError) or error.errno not in _ERRNOS:
        return False
    global _told_at  # noqa: PLW0603 - descriptors belong to the process, and so does the line about them
    now = time.monotonic()
    if _told_at is None or now - _told_at >= TELL_EVERY_S:
        _told_at = now
        _log.error(
            "out of file descriptors ({reason}; the limit of this process is {limit}): requests that need one are "
            "answered with 503; raise LimitNOFILE= of the unit, or ulimit -n",
            reason=error.strerror,
            limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
    return True
