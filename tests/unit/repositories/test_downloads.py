"""Downloads are collected in memory and written to the catalog by a flush."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.model import ANONYMOUS
from pkgrepo.repositories.downloads import FLUSH_S, DownloadRecorder, ImagePull
from tests.support.catalog import HeldCatalog
from tests.support.repositories import FixedClock

PULL = ImagePull(id=1, repository_id=1, package_id=1, path="x")


@pytest.fixture
def catalog():
    return HeldCatalog()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(catalog, clock):
    return DownloadRecorder(catalog=catalog, clock=FixedClock(), reactor=clock)


def counted(catalog):
    return catalog.peek(lambda reader: reader.one("SELECT COALESCE(SUM(count), 0) FROM download_count"))[0]


def test_downloads_are_written_periodically_and_at_the_stop(recorder, catalog, clock):
    recorder.startService()
    recorder.record(PULL, ANONYMOUS)
    assert counted(catalog) == 0
    clock.advance(FLUSH_S)
    assert counted(catalog) == 1
    recorder.record(PULL, ANONYMOUS)
    assert recorder.stopService().called
    assert counted(catalog) == 2
    assert clock.getDelayedCalls() == []


def test_a_flush_waits_for_a_running_flush(recorder, catalog):
    catalog.holds = True
    recorder.record(PULL, ANONYMOUS)
    first, second = Deferred.fromCoroutine(recorder.flush()), Deferred.fromCoroutine(recorder.flush())
    assert not second.called
    catalog.release()
    assert first.called
    assert second.called
    assert counted(catalog) == 1
