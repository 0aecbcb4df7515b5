"""
Cron texts: when periodic work is due, in UTC.

Five fields, as in crontab(5): minute, hour, day of the month, month, day of the week (0 and 7 are Sunday). A field is
``*`` or a list of numbers, ranges and names (``jan``, ``mon``), each with a step after a slash if wanted. If both
fields of days are restricted, a day has to match one of them. Macros such as ``@daily`` stand for a whole text.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid

_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
# The name of each field, its least and greatest number, and the names of its numbers from the least on.
_FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of the month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
FURTHEST: Final = timedelta(days=8 * 366)  # 29 February comes after eight years at the latest


@frozen
class Cron:
    """The numbers of each field; ``any_day`` if a day has to match only one of its two fields."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool

    def next_after(self, moment: datetime) -> datetime:
        """
        The first minute after a moment (aware) that the text names, in UTC.

        :raises Invalid: there is none in the next years, such as 30 February
        """
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last = found + FURTHEST
        while found < last:
            if found.month not in self.months or not self._is_day(found):
                found = found.replace(hour=0, minute=0) + timedelta(days=1)
            elif found.hour not in self.hours:
                found = found.replace(minute=0) + timedelta(hours=1)
            elif found.minute not in self.minutes:
                found += timedelta(minutes=1)
            else:
                return found
        raise Invalid("the schedule names a day that never comes", "/schedule")

    def _is_day(self, moment: datetime) -> bool:
        of_month, of_week = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.any_day else of_month and of_week


def parse_cron(text: str) -> Cron:
    """The schedule in a text. :raises Invalid: the text is no schedule, with the wrong field"""
    parts = _MACROS.get(text.strip().lower(), text).split()
    if len(parts) != len(_FIELDS):
        raise Invalid(f"a schedule has five fields, such as 15 3 * * *, and {text!r} has {len(parts)}", "/schedule")
    minutes, hours, days, months, weekdays = map(_parse_field, parts, _FIELDS)
    cron = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(each % 7 for each in weekdays),
        any_day=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )
    cron.next_after(datetime(2000, 1, 1, tzinfo=UTC))
    return cron


def _parse_field(text: str, field: tuple[str, int, int, list[str]]) -> frozenset[int]:
    name, least, most, _ = field
    found: set[int] = set()
    for part in text.lower().split(","):
        span, slash, step_text = part.partition("/")
        first, dash, last = span.partition("-")
        begin = least if span == "*" else _number(first, field)
        end = most if span == "*" or (slash and not dash) else _number(last, field) if dash else begin
        step = _whole(step_text) if slash else 1
        if step is None or step < 1 or begin > end:
            raise Invalid(f"{part!r} is no {name} of a schedule ({least} to {most})", "/schedule")
        found.update(range(begin, end + 1, step))
    return frozenset(found)


def _number(text: str, field: tuple[str, int, int, list[str]]) -> int:
    name, least, most, names = field
    found = least + names.index(text) if text in names else _whole(text)
    if found is None or not least <= found <= most:
        raise Invalid(f"{text!r} is no {name} of a schedule ({least} to {most})", "/schedule")
    return found


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None
