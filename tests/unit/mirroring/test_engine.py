"""What a mirror reports of files that came and are not there."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.mirroring import engine
from pkgrepo.mirroring.engine import MirrorRun, _Fetched
from pkgrepo.mirroring.locks.wanted import Lock, Wanted
from pkgrepo.mirroring.paths import Place

KEPT, LOST = "a/b/1/b-1.jar", "a/b/1/b-1-sources.jar"


async def test_what_came_and_could_not_be_recorded_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def settle() -> None:
        pass

    async def scan(*_: object) -> dict[str, int]:
        return {KEPT: 7}  # the disk is full before the other one is recorded

    async def find(_: object, __: object, wanted: Sequence[Wanted]) -> list[Place]:
        return [Place(wanted=each, key="a:b", path=each.file) for each in wanted]

    async def fetch(*_: object) -> _Fetched:
        return _Fetched(None, 0, {}, is_new=True)

    monkeypatch.setattr(engine, "find_places", find)
    monkeypatch.setattr(MirrorRun, "_fetch", fetch)
    services: Any = SimpleNamespace(
        proxy=SimpleNamespace(settle=settle, resolver=SimpleNamespace(flat_members=lambda _: [])),
        catalog=SimpleNamespace(scan=scan),
    )
    repository: Any = SimpleNamespace(format="maven")
    format_: Any = SimpleNamespace(keep_image=None, name="maven")
    progress: Any = SimpleNamespace(begin=lambda *_: None, step=lambda *_: None, end=lambda: None)
    lock = Lock([Wanted(format="maven", name="a:b", file=each) for each in (KEPT, LOST)])
    found = await MirrorRun(services, repository, format_).run(lock, progress)
    assert (found["fetched"], found["fetched_bytes"], found["failed"]) == (1, 7, 1)
    assert [(each["package"], each["item"]) for each in found["problems"]] == [("a:b", "b-1-sources.jar")]
