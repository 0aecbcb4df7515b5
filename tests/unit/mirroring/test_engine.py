"""What a mirror reports of files that came and are not there."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.gateway.mirrored.locks import Lock, Wanted
from pkgrepo.gateway.mirrored.places import Place
from pkgrepo.mirroring.engine import MirrorRun, _Fetched, _why_not
from tests.support.lock_files import FORMATS

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

    monkeypatch.setattr(MirrorRun, "_fetch", fetch)
    services: Any = SimpleNamespace(
        proxy=SimpleNamespace(settle=settle, resolver=SimpleNamespace(flat_members=lambda _: [])),
        catalog=SimpleNamespace(scan=scan),
    )
    repository: Any = SimpleNamespace(format="maven")
    format_: Any = SimpleNamespace(keep_image=None, mirrored=evolve(FORMATS["maven"], places=find, needs=None))
    progress: Any = SimpleNamespace(begin=lambda *_: None, step=lambda *_: None, end=lambda: None)
    lock = Lock([Wanted(format="maven", name="a:b", file=each) for each in (KEPT, LOST)])
    found = await MirrorRun(services, repository, format_).run(lock, progress)
    assert (found["fetched"], found["fetched_bytes"], found["failed"]) == (1, 7, 1)
    assert [(each["package"], each["item"]) for each in found["problems"]] == [("a:b", "b-1-sources.jar")]


async def test_a_file_with_another_digest_differs_whether_or_not_its_bytes_are_read() -> None:
    run: Any = object.__new__(MirrorRun)
    wanted = Wanted(format="python", name="demo", digests=frozenset({("sha256", "a" * 64)}))
    known: Any = SimpleNamespace(storage_id=1, locator="x", size=1)
    assert await run._differs(wanted, _Fetched(known, 1, {"sha256": "b" * 64}, is_new=True)) is True
    assert await run._differs(wanted, _Fetched(known, 1, {"sha256": "a" * 64}, is_new=True)) is False
    assert await run._differs(wanted, _Fetched(None, 1, {}, is_new=True)) is False


def test_what_no_file_has_the_digest_of_is_not_called_a_version_that_does_not_exist() -> None:
    pinned = Wanted(format="python", name="demo", version="1.0", digests=frozenset({("sha256", "a" * 64)}))
    assert "no file of it has one of the digests" in _why_not(pinned)
    assert _why_not(Wanted(format="python", name="demo", version="1.0")) == "version or file '1.0' does not exist"
