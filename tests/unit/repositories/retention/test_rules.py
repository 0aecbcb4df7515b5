"""Which units rules select, where the server tests of retention cannot tell."""

from __future__ import annotations

from pkgrepo.formats.container.names import RANGES
from pkgrepo.repositories.configuration import Retention, RetentionKeep, RetentionRule
from pkgrepo.repositories.retention.rules import DAY_MS, Rules, Unit

TODAY = 20_000  # days since the epoch


def test_imported_downloads_are_none_of_the_last_days_however_many_these_are() -> None:
    keep = RetentionKeep(downloaded_within_days=2 * TODAY)
    rules = Rules(Retention(rules=[RetentionRule(name="unused", keep=keep)]), None, TODAY * DAY_MS, ranges=RANGES)
    assert rules.used_since_day == 0
    units = [Unit(1, "imported", 0, used_day=-1), Unit(2, "never", 0), Unit(3, "long ago", 0, used_day=0)]
    assert [units[each.index].text for each in rules.select("demo", units)] == ["imported", "never"]
