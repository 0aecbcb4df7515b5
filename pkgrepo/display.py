"""How pages and terminals write sizes, numbers and times, and what of a value people are shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_AGES: Final = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))
# Most browsers also name those whose pages they want to be given, so that the order matters.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def size(count: int | None) -> str:
    """A number of bytes with a unit: ``1.5 MiB``."""
    if count is None:
        return "–"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} {'byte' if count == 1 else 'bytes'}" if unit == 0 else f"{_rounded(value)} {_UNITS[unit]}"


def number(count: int | None) -> str:
    """A number with thin spaces between groups of three digits."""
    return "–" if count is None else f"{count:,}".replace(",", "\u202f")


def plural(count: int, one: str, many: str = "") -> str:
    """A number and its noun: ``1 file``, ``2 files``."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def age(at: datetime, now: datetime) -> str:
    """How long ago a time was, or how long until it comes."""
    count, unit, is_past = since(at, now)
    if not count:
        return "just now" if is_past else "in a moment"
    text = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{text} ago" if is_past else f"in {text}"


def since(at: datetime, now: datetime) -> tuple[int, str, bool]:
    """How many of the largest unit are between two times, and whether ``at`` is not later; 0 for less than a minute."""
    seconds = (now - at).total_seconds()
    for unit_s, name in _AGES:
        if count := int(abs(seconds) // unit_s):
            return count, name, seconds > 0
    return 0, "minute", seconds >= 0


def duration(length: timedelta) -> str:
    """How long something took: ``250 ms``, ``12.5 s``, ``3 min 20 s``, ``2 h 5 min``."""
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{_rounded(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def lasting(seconds: float) -> str:
    """How long something lasts that may be for weeks: ``4 h 12 min``, and whole days from two on: ``49 days``."""
    days = int(seconds // 86400)
    return plural(days, "day") if days > 1 else duration(timedelta(seconds=seconds))


def latency(seconds: float | None) -> str:
    """A measured time in seconds, with parts of milliseconds: ``0.42 ms``, ``250 ms``, ``2.5 s``."""
    if seconds is None:
        return "–"
    return f"{_rounded(seconds * 1000)} ms" if seconds < 1 else duration(timedelta(seconds=seconds))


def browser(agent: str) -> str:
    """The program and the system in a User-Agent field, as far as they are known; else its beginning."""
    program = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    return " on ".join(filter(None, (program, system))) or agent[:60]


def without_blanks(value: Any) -> Any:
    """A JSON value without the fields that are null or empty, so that people see what is set."""
    if not isinstance(value, dict):
        return [without_blanks(each) for each in value] if isinstance(value, list) else value
    kept = {name: without_blanks(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if each is not None and each not in ("", [], {})}


def _rounded(value: float) -> str:
    """Three digits, and all of those before the point: never an exponent."""
    return f"{value:.3g}" if 0.001 <= value < 999.5 else f"{value:.0f}"
