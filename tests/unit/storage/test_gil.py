"""Long work that lets others run."""

from __future__ import annotations

import pytest

from pkgrepo.storage import gil as yielding
from pkgrepo.storage.gil import PAUSE_S, WORK_S, Yielding


def test_others_get_a_turn_when_it_was_kept_for_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], list[float]()
    monkeypatch.setattr(yielding.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(yielding.time, "sleep", pauses.append)
    work = Yielding()
    for _ in range(10):
        now[0] += WORK_S / 4
        work.now_and_then()
    assert pauses == [PAUSE_S] * 2
