"""Downloads are collected in memory and written to the catalog by a flush."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import NOT_NOW
from pkgrepo.model import ANONYMOUS, Identity, Pipeline
from pkgrepo.repositories import downloads
from pkgrepo.repositories.downloads import FLUSH_S, CachedBlob, DownloadRecorder, ImagePull, prefix_of
from tests.support.catalog import HeldCatalog, MemoryCatalog
from tests.support.catalogs import add_repository, publish
from tests.support.repositories import FixedClock

PULL = ImagePull(id=1, repository_id=1, package_id=1, path="x")


class FailingCatalog(HeldCatalog):
    """A catalog whose writes fail with an error, if it is given one."""

    fails = None

    async def write(self, command, /, *args, **kwargs):
        if self.fails is not None:
            raise self.fails
        return await super().write(command, *args, **kwargs)


@pytest.fixture
def catalog():
    return FailingCatalog()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(catalog, clock):
    return DownloadRecorder(catalog=catalog, clock=FixedClock(), reactor=clock, addressed=True)


def counted(catalog):
    return catalog.peek(lambda reader: reader.one("SELECT COALESCE(SUM(count), 0) FROM download_count"))[0]


def test_downloads_are_written_periodically_and_at_the_stop(recorder, catalog, clock):
    recorder.startService()
    recorder.record(PULL, ANONYMOUS, "")
    assert counted(catalog) == 0
    clock.advance(FLUSH_S)
    assert counted(catalog) == 1
    recorder.record(PULL, ANONYMOUS, "")
    assert recorder.stopService().called
    assert counted(catalog) == 2
    assert clock.getDelayedCalls() == []


def test_a_flush_waits_for_a_running_flush(recorder, catalog):
    catalog.holds = True
    recorder.record(PULL, ANONYMOUS, "")
    first, second = Deferred.fromCoroutine(recorder.flush()), Deferred.fromCoroutine(recorder.flush())
    assert not second.called
    catalog.release()
    assert first.called
    assert second.called
    assert counted(catalog) == 1


def logged(catalog):
    columns = "i.reference, l.client_id, l.address, l.count"
    sql = f"SELECT {columns} FROM download_log l JOIN download_item i ON i.id = l.item_id"
    return catalog.peek(lambda reader: sorted(reader.all(sql)))


def flush(recorder):
    assert Deferred.fromCoroutine(recorder.flush()).called


def test_downloads_of_one_client_are_one_row(recorder, catalog):
    alice = Identity(user_id=1, username="alice", token_id=2, via="token")
    for address in ("192.0.2.1", "192.0.2.77", "198.51.100.1"):
        recorder.record(PULL, alice, address)
    recorder.record(PULL, ANONYMOUS, "192.0.2.1")
    flush(recorder)
    recorder.record(PULL, alice, "192.0.2.5")
    flush(recorder)
    assert logged(catalog) == [("", 0, "192.0.2.0/24", 1), ("", 1, "192.0.2.0/24", 3), ("", 1, "198.51.100.0/24", 1)]
    assert counted(catalog) == 5


def test_what_is_not_counted_is_logged_and_blobs_of_images_are_neither(recorder, catalog):
    recorder.record(PULL, ANONYMOUS, "", whole=False)
    recorder.record(ImagePull(1, 1, 1, "x", reference="sha256:1", part=True), ANONYMOUS, "")
    recorder.record(CachedBlob(1, 1, "x@sha256:2", 9), ANONYMOUS, "")
    flush(recorder)
    assert logged(catalog) == [("", 0, "", 1), ("sha256:1", 0, "", 1)]
    assert counted(catalog) == 0


def test_all_runs_of_a_pipeline_are_one_client(recorder, catalog):
    pipeline = Pipeline("acme/app", "github", "repo:acme/app", frozenset())
    for token_id in range(3):
        recorder.record(PULL, Identity(user_id=7, token_id=token_id, pipeline=pipeline), "")
    flush(recorder)
    assert logged(catalog) == [("", 1, "", 3)]


def test_a_flood_of_addresses_is_one_row_without_address(recorder, catalog, monkeypatch):
    monkeypatch.setattr(downloads, "MAX_ADDRESSED", 3)
    for number in range(9):
        recorder.record(PULL, ANONYMOUS, f"10.0.{number}.1")
    recorder.record(PULL, ANONYMOUS, "10.0.1.2")  # one that is known already
    flush(recorder)
    expected = [("", 0, "", 6), ("", 0, "10.0.0.0/24", 1), ("", 0, "10.0.1.0/24", 2), ("", 0, "10.0.2.0/24", 1)]
    assert logged(catalog) == expected
    recorder.record(PULL, ANONYMOUS, "10.0.8.1")
    flush(recorder)
    assert ("", 0, "", 7) in logged(catalog)


def test_memory_is_bounded_and_what_cannot_be_written_is_kept(recorder, catalog, monkeypatch):
    monkeypatch.setattr(downloads, "MAX_PENDING", 2)
    catalog.fails = StorageFull("disk")
    for number in range(3):
        recorder.record(ImagePull(number, 1, 1, "x"), ANONYMOUS, "")
    flush(recorder)
    recorder.record(ImagePull(0, 1, 1, "x"), ANONYMOUS, "")
    catalog.fails = None
    flush(recorder)
    assert counted(catalog) == 3


def test_nothing_is_logged_if_that_is_off(catalog, clock):
    recorder = DownloadRecorder(catalog=catalog, clock=FixedClock(), reactor=clock, log_days=0, addressed=True)
    recorder.record(PULL, ANONYMOUS, "192.0.2.1")
    flush(recorder)
    assert (counted(catalog), logged(catalog)) == (1, [])


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("203.0.113.9", "203.0.113.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("::ffff:203.0.113.9", "203.0.113.0/24"),
        ("fe80::1%eth0", "fe80::/48"),
        ("", ""),
        ("unknown", ""),
    ],
)
def test_networks_of_addresses(address, prefix):
    assert prefix_of(address) == prefix


class WaitingCatalog(MemoryCatalog):
    """One that answers no question at once, and fails while it is ``down``."""

    down = False

    def peek(self, query, /, *args, **kwargs):
        return NOT_NOW

    async def look(self, query, /, *args, **kwargs):
        if self.down:
            raise StorageFailed("main")
        return super().peek(query, *args, **kwargs)


@pytest.mark.parametrize("kind", [MemoryCatalog, WaitingCatalog])
def test_what_is_removed_before_it_is_written_is_logged_as_it_was_called(kind, clock):
    catalog = kind()
    repository = catalog.do(add_repository)
    file = catalog.do(publish, repository, "demo.whl", version="1.0")
    recorder = DownloadRecorder(catalog=catalog, clock=FixedClock(), reactor=clock)
    recorder.startService()
    recorder.record(file, ANONYMOUS, "")
    recorder.record(file, Identity(user_id=7, username="ada"), "")
    catalog.do(lambda tx: tx.execute("DELETE FROM file"))
    clock.advance(FLUSH_S)
    recorder.record(file, ANONYMOUS, "")
    clock.advance(FLUSH_S)
    sql = "SELECT repository_id, repository, format, package_key, version, path, sha256 FROM download_item"
    named = (repository.id, "main/py", "python", "demo", "1.0", "demo.whl", bytes.fromhex(file.sha256))
    assert catalog.tx.all(sql) == [named]
    assert catalog.tx.all("SELECT SUM(count) FROM download_log") == [(3,)]


def test_what_is_staged_is_logged_for_the_repository_that_it_is_for(catalog, clock, recorder):
    target = catalog.do(add_repository)
    staged = catalog.do(add_repository, "py-stage")
    catalog.do(
        lambda tx: tx.execute("UPDATE repository SET parent_id = ?, stage = 'x' WHERE id = ?", (target.id, staged.id))
    )
    recorder.startService()
    recorder.record(catalog.do(publish, staged, "demo.whl", version="1.0"), ANONYMOUS, "")
    clock.advance(FLUSH_S)
    sql = "SELECT repository_id, repository, version FROM download_item"
    assert catalog.tx.all(sql) == [(target.id, "main/py", "1.0")]


def test_a_request_is_answered_and_recorded_while_the_catalog_gives_no_names(clock):
    catalog = WaitingCatalog()
    file = catalog.do(publish, catalog.do(add_repository), "demo.whl", version="1.0")
    recorder = DownloadRecorder(catalog=catalog, clock=FixedClock(), reactor=clock)
    recorder.startService()
    catalog.down = True
    recorder.record(file, ANONYMOUS, "")
    clock.advance(FLUSH_S)
    assert catalog.tx.all("SELECT version FROM download_item") == [("1.0",)]
