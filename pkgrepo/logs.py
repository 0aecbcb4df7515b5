"""Where log events go: one line each, as text or as JSON, from a level on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import IO, Any

import msgspec
from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
    textFileLogObserver,
)
from zope.interface import implementer

LEVELS = {level.name: level for level in LogLevel.iterconstants()}


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


def make_observer(file: IO[str], *, style: str, level: str) -> ILogObserver:
    """An observer that writes events of ``level`` and above to the file, in the ``text`` or ``json`` style."""
    observer = JsonLines(file) if style == "json" else textFileLogObserver(file)
    filtered: ILogObserver = FilteringLogObserver(observer, [LogLevelFilterPredicate(LEVELS[level])])
    return filtered
