"""The refresh of advisories: what of an export is stored, kept and removed, and when it is too old."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Invalid, UpstreamFailed
from pkgrepo.repositories.advisories import exports
from pkgrepo.repositories.advisories.known import KnownAdvisories
from pkgrepo.repositories.advisories.refresh import KIND, RETRY_MS, AdvisoryRefresh, Downloaded, RefreshSchedule
from pkgrepo.repositories.upkeep.jobs import Jobs, NoProgress
from pkgrepo.storage.catalog import advisories
from tests.support.osv_records import (
    MINIMIST,
    REQUESTS,
    REQUESTS_PYSEC,
    SAMPLES,
    affected,
    record,
    since,
    write_folder,
    write_zip,
)
from tests.unit.repositories.upkeep.test_gc import StillClock

DAY_S = 24 * 3600
NOW_MS = 1_800_000_000_000


class Scene:
    """A world with a source, whose files have the present time of a clock that stands still."""

    def __init__(self, world: Any, source: str) -> None:
        self.clock = StillClock(NOW_MS)
        self.catalog = world.catalog
        self.context = evolve(world.context, clock=self.clock, formats=make_formats(Config()))
        self.downloads: list[Downloaded | Exception | None] = []
        self.asked: list[str] = []
        self.at(source)

    def at(self, source: str) -> None:
        self.refresh = AdvisoryRefresh(self.context, source, self.download)
        self.known = KnownAdvisories(self.catalog, self.clock, source=source, max_age_s=7 * DAY_S)

    async def download(self, _url: str, validator: str) -> Downloaded | None:
        self.asked.append(validator)
        found = self.downloads.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def run(self) -> Any:
        return await self.refresh.run(NoProgress())

    async def ids(self, ecosystem: str, package: str) -> list[str]:
        found = await self.known.on_package(ecosystem, package)
        return [] if found is None else sorted(each.id for each in found.advisories)


def dated(path: Path, ms: int = NOW_MS) -> Path:
    for each in [path, *path.rglob("*.json")] if path.is_dir() else [path]:
        os.utime(each, ns=(ms * 1_000_000, ms * 1_000_000))
    return path


async def test_an_export_is_loaded_from_a_folder_and_from_a_zip(world: Any, tmp_path: Path) -> None:
    for source in (dated(write_folder(tmp_path / "osv")), dated(write_zip(tmp_path / "all.zip"))):
        scene = Scene(world, str(source))
        done = await scene.run()
        assert (done["removed"], done["unreadable"]) == (0, 0)
        assert done["records"] == {"Maven": 1, "PyPI": 3, "RubyGems": 2, "npm": 1}
        assert await scene.ids("PyPI", "requests") == ["GHSA-j8r2-6x86-q33q", "PYSEC-2023-74"]
        assert await scene.ids("PyPI", "py") == ["PYSEC-2022-42969"]
        assert (await scene.known.knowledge("npm")).complete


async def test_only_what_changed_is_stored_again(world: Any, tmp_path: Path) -> None:
    source = dated(write_folder(tmp_path / "osv"))
    scene = Scene(world, str(source))
    assert (await scene.run())["changed"] == len(SAMPLES) - 1  # one of them was withdrawn
    assert (await scene.run())["changed"] == 0
    later = {**MINIMIST, "modified": "2026-02-01T00:00:00Z", "summary": "Worse"}
    write_folder(source, [later, {**REQUESTS, "withdrawn": "2026-02-01T00:00:00Z"}])
    (source / "PyPI" / "PYSEC-2023-74.json").unlink()
    (source / "npm" / "odd.json").write_text("{")
    (source / "RubyGems" / "GHSA-wq4h-7r42-5hrr.json").write_text("{")  # what was read of it stays
    done = await scene.run()
    assert (done["changed"], done["removed"], done["unreadable"]) == (2, 1, 2)
    (found,) = (await scene.known.of("npm", ["minimist"]))["minimist"]
    assert found.title == "Worse"
    assert await scene.ids("PyPI", "requests") == []
    assert await scene.ids("RubyGems", "rack") == ["GHSA-wq4h-7r42-5hrr"]


async def test_a_vulnerability_of_two_databases_is_shown_once(world: Any, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "osv", [REQUESTS_PYSEC])
    scene = Scene(world, str(source))
    sort = scene.refresh.ecosystems["PyPI"].sort("2.28.1")
    await scene.run()
    before = await scene.known.on_package("PyPI", "requests")
    assert before is not None
    assert [(each.id, each.severity) for each in before.affecting(sort)] == [("PYSEC-2023-74", "unknown")]
    write_folder(source, [REQUESTS])
    await scene.run()
    after = await scene.known.on_package("PyPI", "requests")
    assert after is not None
    assert [(each.id, each.severity) for each in after.affecting(sort)] == [("GHSA-j8r2-6x86-q33q", "moderate")]
    # Only one of the two may say that a version is affected: it has the severity of the other.
    listed = record(
        "PYSEC-2023-74", affected("PyPI", "requests", versions=["2.1"]), aliases=["CVE-2023-32681"], modified="2027"
    )
    write_folder(source, [listed])
    await scene.run()
    other = await scene.known.on_package("PyPI", "requests")
    assert other is not None
    found = other.affecting(scene.refresh.ecosystems["PyPI"].sort("2.1"))
    assert [(each.id, each.severity) for each in found] == [("PYSEC-2023-74", "moderate")]


@pytest.mark.parametrize("content", [None, b"this is no zip", b""])
async def test_an_export_that_cannot_be_read_removes_nothing(world: Any, tmp_path: Path, content: bytes | None) -> None:
    source = write_zip(tmp_path / "all.zip")
    scene = Scene(world, str(source))
    await scene.run()
    source.unlink()
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(Invalid):
        await scene.run()
    assert await scene.ids("npm", "minimist") == ["GHSA-vh95-rmgr-6w4m"]


@pytest.mark.parametrize("cut", [200, 1500])
async def test_a_truncated_zip_removes_nothing(world: Any, tmp_path: Path, cut: int) -> None:
    source = write_zip(tmp_path / "all.zip")
    scene = Scene(world, str(source))
    await scene.run()
    data = source.read_bytes()
    source.write_bytes(data[:cut])
    with pytest.raises(Invalid):
        await scene.run()
    source.write_bytes(data[:cut] + b"\0" * 4 + data[cut + 4 :])
    with pytest.raises(Invalid):
        await scene.run()
    assert (await scene.catalog.look(advisories.count_records))["PyPI"] == 3


async def test_an_empty_folder_removes_nothing(world: Any, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "osv", [MINIMIST])
    scene = Scene(world, str(source))
    await scene.run()
    (source / "npm" / f"{MINIMIST['id']}.json").unlink()
    with pytest.raises(Invalid, match="no OSV records"):
        await scene.run()
    assert await scene.ids("npm", "minimist") == [MINIMIST["id"]]


async def test_records_are_read_and_stored_in_batches(world: Any, tmp_path: Path) -> None:
    records = [record(f"GHSA-{n:03}", affected("npm", f"p{n % 100}", *since("0"))) for n in range(450)]
    source = write_zip(tmp_path / "all.zip", records)
    scene = Scene(world, str(source))
    assert (await scene.run())["records"] == {"npm": 450}
    assert await scene.ids("npm", "p1") == ["GHSA-001", "GHSA-101", "GHSA-201", "GHSA-301", "GHSA-401"]
    read = exports.read_batches(source, scene.refresh.ecosystems, size=200)
    assert [len(each.records) for each in read] == [200, 200, 50]
    with pytest.raises(Invalid, match="more than 449 records"):
        list(exports.read_batches(source, scene.refresh.ecosystems, most=449))


async def test_a_mirror_is_asked_with_the_validator_of_the_last_download(world: Any, tmp_path: Path) -> None:
    scene = Scene(world, "https://mirror.example/all.zip")
    first = Downloaded(write_zip(tmp_path / "one.zip"), NOW_MS - 1000, "etag")
    scene.downloads = [first, None, UpstreamFailed("advisories.source", "it answers 500")]
    await scene.run()
    assert not first.path.exists()
    scene.clock.ms += 1000
    assert (await scene.run())["changed"] == 0
    with pytest.raises(UpstreamFailed):
        await scene.run()
    assert scene.asked == ["", "etag", "etag"]
    state = await scene.known.knowledge()
    assert state.loaded_at is not None
    assert state.exported_at is not None
    assert (state.loaded_at.timestamp() * 1000, state.exported_at.timestamp() * 1000) == (NOW_MS + 1000, NOW_MS - 1000)


async def test_nothing_found_means_something_only_with_young_data_of_the_ecosystem(world: Any, tmp_path: Path) -> None:
    source = dated(write_folder(tmp_path / "osv", [MINIMIST]))
    scene = Scene(world, str(source))

    async def problem(ecosystem: str = "npm") -> str:
        return (await scene.known.knowledge(ecosystem)).problem

    assert "have not been loaded yet" in await problem()
    assert await scene.known.on_package("npm", "minimist") is None
    await scene.run()
    assert await problem() == ""
    assert await problem("PyPI") == "the advisories of this server have no record of PyPI"
    assert await scene.known.on_package("PyPI", "requests") is None
    scene.clock.ms += (7 * DAY_S + 1) * 1000
    assert "are 7 days old" in await problem()
    old = await scene.known.on_package("npm", "minimist")
    assert old is not None
    assert (len(old.advisories), old.complete) == (1, False)
    dated(source, scene.clock.ms)
    await scene.run()
    assert await problem() == ""
    scene.at(str(tmp_path / "elsewhere"))
    assert "have not been loaded yet" in await problem()
    scene.at("")
    assert "was given no advisories" in await problem()


async def test_a_schedule_begins_a_job_when_one_is_due(world: Any, tmp_path: Path) -> None:
    source = dated(write_zip(tmp_path / "all.zip", [MINIMIST]))
    scene = Scene(world, str(source))
    jobs = Jobs(catalog=scene.catalog, clock=scene.clock, reactor=ReactorClock())
    schedule = RefreshSchedule(scene.context, refresh=scene.refresh, jobs=jobs, every_s=3600, reactor=ReactorClock())

    async def last() -> Any:
        await schedule.run_once()
        return await jobs.last(KIND, KIND)

    first = await last()
    assert (first.state, first.result["changed"]) == ("done", 1)
    assert (await last()).uid == first.uid
    dated(write_zip(source, [MINIMIST, REQUESTS]), NOW_MS + 5)  # a new file is loaded at once
    second = await last()
    assert (second.uid != first.uid, second.result["changed"]) == (True, 1)
    scene.clock.ms += 3600 * 1000
    third = await last()
    assert (third.uid != second.uid, third.result["changed"]) == (True, 0)
    source.write_bytes(b"no zip")
    failed = await last()
    assert failed.state == "failed"
    scene.clock.ms += RETRY_MS - 1
    assert (await last()).uid == failed.uid
    scene.clock.ms += 1
    assert (await last()).uid != failed.uid


async def test_records_without_a_time_of_change_are_always_stored(world: Any, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "osv", [{**MINIMIST, "modified": ""}])
    scene = Scene(world, str(source))
    assert [(await scene.run())["changed"] for _ in range(2)] == [1, 1]
    text = json.dumps({**MINIMIST, "modified": "", "affected": []})
    (source / "npm" / f"{MINIMIST['id']}.json").write_text(text)
    assert (await scene.run())["changed"] == 1
    assert await scene.ids("npm", "minimist") == []


async def test_malware_of_an_export_comes_first_and_of_that_the_latest_ids(world: Any, tmp_path: Path) -> None:
    hostile = [record(f"MAL-2026-{number}", affected("npm", f"evil-{number}", *since("0"))) for number in (1, 2)]
    every = [*SAMPLES, *hostile]
    for source in (write_folder(tmp_path / "osv", every), write_zip(tmp_path / "all.zip", every)):
        ecosystems = Scene(world, str(source)).refresh.ecosystems
        names = [each.id for batch in exports.read_batches(source, ecosystems) for each in batch.records]
        assert [each for each in names if each.startswith("MAL-")] == ["MAL-2026-2", "MAL-2026-1"]
        assert source.suffix != ".zip" or names[:2] == ["MAL-2026-2", "MAL-2026-1"]
