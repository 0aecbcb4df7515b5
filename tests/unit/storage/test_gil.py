"""Long work that lets others run."""

from __future__ import annotations

import pytest

from pkgrepo.storage import gil
from pkgrepo.storage.gil import PAUSE_S, WORK_S, GilReleaser


def test_others_get_a_turn_when_it_was_kept_for_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], list[float]()
    monkeypatch.setattr(gil.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(gil.time, "sleep", pauses.append)
    work = GilReleaser()
    for _ in range(10):
        now[0] += WORK_S / 4
        work.release_if_due()
    assert pauses == [PAUSE_S] * 2
