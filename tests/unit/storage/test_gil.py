"""Long computations release the GIL."""

from __future__ import annotations

import pytest

from pkgrepo.storage import gil
from pkgrepo.storage.gil import PAUSE_S, WORK_S, GilReleaser


def test_the_gil_is_released_after_work_s(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], list[float]()
    monkeypatch.setattr(gil.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(gil.time, "sleep", pauses.append)
    work = GilReleaser()
    for _ in range(10):
        now[0] += WORK_S / 4
        work.release_if_due()
    assert pauses == [PAUSE_S] * 2
