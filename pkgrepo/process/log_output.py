"""Log output: one line per event, as text or JSON, from a level on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

import msgspec
from twisted.logger import (
    FilteringLogObserver,
    ILogFilterPredicate,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    PredicateResult,
    formatEvent,
    textFileLogObserver,
)
from zope.interface import implementer

from pkgrepo.failure_log import LOG_EVERY_S

# Beginnings of the log formats of twisted.internet.tcp._accept and of its reserve descriptor.
ACCEPT_ERRORS = ("EMFILE ", "Re-reserving EMFILE", "Could not re-reserve", "Could not reserve", "Could not accept")
LEVELS = {level.name: level for level in LogLevel.iterconstants()}


@implementer(ILogFilterPredicate)
class AcceptErrorFilter:
    """
    Passes Twisted's log lines about failed accepts (no file descriptors) once a minute.

    Twisted logs three lines for each, and while its reserve descriptor is gone some thousand a second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at: float | None = None

    def __call__(self, event: LogEvent) -> Any:
        """Whether to pass an event, as Twisted's constant."""
        if event.get("log_namespace") != "twisted.internet.tcp.Port":
            return PredicateResult.maybe
        if not str(event.get("log_format")).startswith(ACCEPT_ERRORS):
            return PredicateResult.maybe
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < LOG_EVERY_S:
            return PredicateResult.no
        self._logged_at = now
        return PredicateResult.maybe


@implementer(ILogObserver)
class JsonLines:
    """
    Writes each event as one JSON object: ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, the scalar
    fields of the event below ``fields``, and ``traceback`` when there is one.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, event: LogEvent) -> None:
        """Write one event."""
        level = event.get("log_level")
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(event["log_time"], UTC).isoformat(timespec="milliseconds"),
            "level": level.name if level else "info",
            "logger": event.get("log_namespace", ""),
            "message": formatEvent(event),
        }
        fields = {
            name: value
            for name, value in event.items()
            if not name.startswith("log_") and isinstance(value, str | int | float | bool | None)
        }
        if fields:
            line["fields"] = fields
        if "log_failure" in event:
            line["traceback"] = event["log_failure"].getTraceback()
        self._file.write(msgspec.json.encode(line).decode() + "\n")
        self._file.flush()


def make_observer(file: IO[str], *, style: str, level: str, one_of_several: bool = False) -> ILogObserver:
    """
    An observer that writes events of ``level`` and above to the file, in the ``text`` or ``json`` style.

    Of ``one_of_several`` processes that do the same, it leaves out what Twisted says of ports and of its main loop.
    """
    observer = JsonLines(file) if style == "json" else textFileLogObserver(file)
    levels = LogLevelFilterPredicate(LEVELS[level])
    if one_of_several:
        for namespace in ("log_legacy", "twisted.internet.base"):
            levels.setLogLevelForNamespace(namespace, max(LEVELS[level], LogLevel.warn))
    filtered: ILogObserver = FilteringLogObserver(observer, [AcceptErrorFilter(), levels])
    return filtered
