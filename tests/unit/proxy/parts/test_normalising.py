"""Documents are normalised in a thread or in a worker process, with the same result."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, ensureDeferred, gatherResults

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.proxy.parts.normalising import SMALL
from pkgrepo.proxy.parts.supervisor import HIGH_WATER
from pkgrepo.proxy.parts.values import Context
from tests.support.blob_stores import open_descriptors
from tests.support.inprocess_server import assert_reactor_rests, until, watched
from tests.support.normalisers import MODULE
from tests.support.parts import URL, NormaliserCase, packument


@pytest.fixture
def place() -> str:
    """Where documents of any size are normalised; those of a usual size in a thread."""
    return "thread"


@pytest_twisted.async_yield_fixture
async def make_case(tmp_path: Path, place: str) -> Any:
    before = watched()
    cases: list[NormaliserCase] = []

    async def make(**limits: Any) -> NormaliserCase:
        case = NormaliserCase(tmp_path / str(len(cases)), small=0 if place == "worker" else SMALL, **limits)
        cases.append(case)
        await case.start()
        return case

    yield make
    for case in cases:
        await case.stop()
    await assert_reactor_rests(before)
    assert not open_descriptors()


Make = Callable[..., Any]
EVERYWHERE = pytest.mark.parametrize("place", ["thread", "worker"])


@EVERYWHERE
async def test_a_document_becomes_a_parts_file(make_case: Make, place: str) -> None:
    case = await make_case()
    document = packument(300, time={"7.0.0": 1234})
    outcome = await case.run(document)
    assert len(case.supervisor.pids) == (place == "worker")
    assert outcome.sha256 == hashlib.sha256(document).hexdigest()
    with PartsFile(case.descriptor(outcome)) as parts:
        assert parts.top == {"name": "p", "url": URL}
        assert parts.count == 300
        found, source = parts.find_path("p/-/p-7.0.0.tgz") or pytest.fail("the path is missing")
    assert found.published_ms == 1234
    assert source.url == f"{URL}/-/p-7.0.0.tgz"


async def test_large_documents_go_to_one_worker(make_case: Make) -> None:
    case = await make_case()
    document = packument(1, pad=SMALL)
    small = document.replace(b"x" * (len(document) - SMALL), b"", 1)
    assert len(small) == SMALL
    await case.run(small)
    assert case.supervisor.pids == []
    await case.run(small + b" ")
    pids = case.supervisor.pids
    assert len(pids) == 1
    await gatherResults([ensureDeferred(case.run(packument(each, pad=SMALL))) for each in range(1, 5)])
    assert case.supervisor.pids == pids


async def test_a_parts_file_of_several_buffers_is_complete(make_case: Make) -> None:
    case = await make_case()
    noise = os.urandom(8 * HIGH_WATER).hex().encode()
    outcome = await case.run(packument(1, pad=10).replace(b"x" * 10, noise))
    assert outcome.parts.size > 4 * HIGH_WATER
    (entry,) = case.entries(outcome)
    assert noise in entry.fragments["full"]


@EVERYWHERE
async def test_a_known_document_is_not_normalised_again(make_case: Make, place: str) -> None:
    case = await make_case()
    document = packument(3)
    sha256 = hashlib.sha256(document).hexdigest()
    outcome = await case.run(document, "broken", known_sha256=sha256)
    assert (outcome.sha256, outcome.parts) == (sha256, None)


@EVERYWHERE
async def test_entries_keep_the_time_of_their_first_sight(make_case: Make, place: str) -> None:
    case = await make_case()
    first = await case.run(packument(3, time={"0.0.0": 5}), now_ms=100)
    assert [(each.published_ms, each.first_seen) for each in case.entries(first)] == [
        (5, False),
        (100, True),
        (100, True),
    ]
    previous = case.descriptor(first)
    # The upstream no longer says the time of the first one, now says that of the second one, and has two new ones.
    second = await case.run(packument(5, time={"1.0.0": 6, "4.0.0": 7}), now_ms=200, previous=previous)
    os.close(previous)
    assert [(each.published_ms, each.first_seen) for each in case.entries(second)] == [
        (5, False),
        (6, False),
        (100, True),
        (200, True),
        (7, False),
    ]


@EVERYWHERE
async def test_a_damaged_previous_file_does_not_matter(make_case: Make, place: str, tmp_path: Path) -> None:
    case = await make_case()
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no parts file")
    previous = os.open(damaged, os.O_RDONLY)
    outcome = await case.run(packument(1), now_ms=9, previous=previous)
    os.close(previous)
    assert [(each.published_ms, each.first_seen) for each in case.entries(outcome)] == [(9, True)]


@EVERYWHERE
async def test_a_document_that_cannot_be_used_is_invalid(make_case: Make, place: str) -> None:
    case = await make_case()
    with pytest.raises(Invalid, match="p is not a packument") as caught:
        await case.run(b"[]")
    assert caught.value.pointer == "/versions"
    with pytest.raises(NormalisingFailed) as failed:
        await case.run(b"{}", "broken")
    assert "KeyError: 'p'" in failed.value.reason
    with pytest.raises(NormalisingFailed) as failed:
        await case.run(b"{}", "absent")
    assert "AttributeError" in failed.value.reason
    pids = case.supervisor.pids
    assert len(case.entries(await case.run(packument(2)))) == 2
    assert case.supervisor.pids == pids


async def test_an_idle_worker_ends(make_case: Make) -> None:
    case = await make_case(idle_s=0)
    await case.run(packument(1, pad=SMALL))
    await until(lambda: not case.supervisor.pids)
    await case.run(packument(1, pad=SMALL))


async def test_a_worker_ends_that_holds_much_memory(make_case: Make) -> None:
    case = await make_case(kept_memory=1024 * 1024)
    await case.run(packument(1, pad=SMALL))
    await until(lambda: not case.supervisor.pids)


async def test_a_cancelled_job_leaves_nothing(make_case: Make, tmp_path: Path) -> None:
    case = await make_case()
    began = tmp_path / "began"
    job = ensureDeferred(case.run(packument(1, pad=SMALL), "hang", name=str(began)))
    await until(began.exists)
    pids = case.supervisor.pids
    waiting = ensureDeferred(case.run(packument(1, pad=SMALL)))
    job.cancel()
    with pytest.raises(CancelledError):
        await job
    assert len(case.entries(await waiting)) == 1
    assert case.supervisor.pids != pids


async def test_a_stop_ends_jobs_and_waiters(make_case: Make, tmp_path: Path) -> None:
    case = await make_case()
    began = tmp_path / "began"
    jobs = [ensureDeferred(case.run(packument(1, pad=SMALL), "hang", name=str(began))) for _ in range(3)]
    await until(began.exists)
    await case.supervisor.stop()
    for job in jobs:
        with pytest.raises(NormalisingFailed):
            await job
    assert case.supervisor.pids == []


async def test_too_many_waiting_jobs_are_refused(make_case: Make, tmp_path: Path) -> None:
    case = await make_case(most_waiting=1)
    began = tmp_path / "began"
    jobs = [ensureDeferred(case.run(packument(1, pad=SMALL), "hang", name=str(began))) for _ in range(2)]
    await until(lambda: began.exists() and case.supervisor._turns.waiting)
    with pytest.raises(NormalisingFailed) as refused:
        await case.run(packument(1, pad=SMALL))
    assert "wait for a worker" in refused.value.reason
    for job in jobs:
        job.cancel()
        with pytest.raises(CancelledError):
            await job


@EVERYWHERE
async def test_a_broken_connection_to_the_upstream_leaves_nothing(make_case: Make, place: str) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield packument(1, pad=100)
        raise ConnectionError

    case = await make_case()
    with pytest.raises(ConnectionError):
        await case.normaliser.run(broken(), f"{MODULE}:packument", Context("p", URL), case.staged, now_ms=1)
    assert case.supervisor.pids == []
