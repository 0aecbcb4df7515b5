import fcntl
import resource
import signal
from contextlib import contextmanager

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import NotFound, StorageFailed, StorageFull
from pkgrepo.storage.catalog.engine import commands, writer
from pkgrepo.storage.catalog.engine.commands import Batch, Command
from pkgrepo.storage.catalog.engine.connections import SqliteTransaction
from pkgrepo.storage.catalog.engine.generation import WriteLock, lock_path
from pkgrepo.storage.catalog.engine.writer import CHECKPOINT_BUSY, SqliteBatches
from pkgrepo.storage.catalog.server import settings
from tests.support.catalogs import SqliteCase
from tests.support.timeouts import TIMEOUT_S


@pytest.fixture
def case(tmp_path):
    return SqliteCase(tmp_path)


@pytest_twisted.async_yield_fixture
async def catalog(case):
    yield await case.another()
    await case.stop()


@pytest.fixture
def commits(monkeypatch):
    """Grows by one entry with every commit of any writer."""
    seen, execute = [], SqliteTransaction.execute

    def counting(self, sql, parameters=()):
        changed = execute(self, sql, parameters)
        if sql == "COMMIT":
            seen.append(sql)
        return changed

    monkeypatch.setattr(SqliteTransaction, "execute", counting)
    return seen


@contextmanager
def somebody_elses_turn(case):
    """Hold up the writers, so that commands gather before them."""
    lock = WriteLock(case.path)
    with lock.hold():
        yield
    lock.close()


@contextmanager
def no_room():
    """No file of this process grows: what the log needs beyond its length fails in the middle of a commit."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


async def failures(writes):
    found = []
    for write in writes:
        try:
            await write
        except Exception as error:  # noqa: BLE001 - whatever it is, the test names it
            found.append(type(error))
        else:
            found.append(None)
    return found


def refuse(tx):
    settings.put(tx, "refused", "x")
    raise NotFound("thing", "x")


def fill_up(tx):
    tx.one(f"PRAGMA max_page_count = {tx.one('PRAGMA page_count')[0]}")
    settings.put(tx, "much", "x" * 1_000_000)


async def test_commands_that_wait_share_a_commit(case, catalog, commits, monkeypatch):
    monkeypatch.setattr(commands, "BATCH_S", TIMEOUT_S)  # however slowly the thread comes to run
    with somebody_elses_turn(case):
        writes = [catalog.write(settings.increment, "serial") for _ in range(100)]
    assert await gatherResults(writes) == list(range(1, 101))
    assert len(commits) == 1


async def test_a_batch_is_bounded(case, catalog, commits):
    with somebody_elses_turn(case):
        writes = [catalog.write(settings.increment, "serial") for _ in range(1000)]
    await gatherResults(writes)
    assert len(commits) >= 4


async def test_a_commit_that_fails_fails_every_command_in_it_and_the_next_succeeds(case, catalog):
    assert await catalog.write(settings.increment, "serial") == 1
    with no_room():
        with somebody_elses_turn(case):
            writes = [catalog.write(settings.put, f"{n}", "x" * 20_000) for n in range(5)]
            writes.insert(2, catalog.write(refuse))
        found = await failures(writes)
    assert found[:2] == found[3:5] == [StorageFailed] * 2
    assert found[5] is StorageFailed
    assert found[2] is NotFound
    assert catalog.peek(settings.get, "0") is None
    assert await catalog.write(settings.increment, "serial") == 2
    assert catalog.peek(settings.get, "0") is None


async def test_a_full_disk_in_the_middle_of_a_batch_undoes_the_batch_and_says_so(case, catalog):
    with somebody_elses_turn(case):
        writes = [catalog.write(settings.increment, "serial"), catalog.write(fill_up)]
    found = await failures(writes)
    assert found[1] is StorageFull
    assert found[0] in (StorageFull, None)  # None when the batch was cut between the two
    expected = 1 if found[0] is StorageFull else 2
    assert catalog.peek(settings.get, "much") is None
    assert await catalog.write(settings.increment, "serial") == expected


async def test_an_error_of_sql_is_the_commands_own(case, catalog):
    with somebody_elses_turn(case):
        writes = [
            catalog.write(settings.increment, "serial"),
            catalog.write(lambda tx: tx.execute("INSERT INTO setting (key) VALUES ('no value')")),
            catalog.write(lambda tx: tx.execute("INSERT INTO nowhere VALUES (1)")),
            catalog.write(settings.increment, "serial"),
        ]
    found = await failures(writes)
    assert (found[0], found[3]) == (None, None)
    assert found[1].__name__ == "ConstraintError"
    assert found[2].__name__ == "SQLError"
    assert catalog.peek(settings.get, "serial") == "2"


async def test_another_process_may_write_before_commands_are_answered(case, catalog):
    free = []

    def answer(_commands):
        with lock_path(case.path).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free.append(False)
            else:
                free.append(True)

    batches = SqliteBatches(case.path)
    batches.run(Batch(Command(lambda tx: settings.increment(tx, "serial"), Deferred()), lambda: None, answer))
    batches.close()
    assert free == [True]
    assert catalog.peek(settings.get, "serial") == "1"


async def test_a_long_log_is_checkpointed(case, catalog):
    log = case.path.with_name("pkgrepo.db-wal")
    for n in range(CHECKPOINT_BUSY // 100 + 20):
        # Pages whose bytes do not change are not written, so no two values may be alike.
        await catalog.write(settings.put, f"{n % 5}", chr(33 + n) * 8000 * 100)
    # Once copied back, the log is written from its beginning again.
    assert log.stat().st_size < (CHECKPOINT_BUSY + 1000) * 8300


async def test_the_last_one_to_stop_leaves_one_whole_file(case):
    first, second = await case.another(), await case.another()
    await first.write(settings.increment, "serial")
    await second.write(settings.increment, "serial")
    await case.stop()
    assert {each.name for each in case.path.parent.iterdir()} == {
        "pkgrepo.db",
        "pkgrepo.db-reserve",
        "pkgrepo.db-turns",
    }


async def test_a_fault_of_the_writer_fails_its_commands_and_the_next_ones_succeed(catalog, monkeypatch):
    pending, begin = [RuntimeError("unexpected")], SqliteTransaction.begin_command

    def faulty(tx):
        if pending:
            raise pending.pop()
        begin(tx)

    monkeypatch.setattr(SqliteTransaction, "begin_command", faulty)
    with pytest.raises(StorageFailed) as refused:
        await catalog.write(settings.put, "lost", "x")
    assert isinstance(refused.value.__cause__, RuntimeError)
    assert await catalog.write(settings.increment, "serial") == 1
    assert await catalog.look(settings.get, "lost") is None


async def test_a_fault_after_the_commit_is_no_failure_of_its_commands(catalog, monkeypatch):
    monkeypatch.setattr(SqliteBatches, "_checkpoint", lambda _batches: 1 / 0)
    monkeypatch.setattr(writer, "CHECKPOINT_BUSY", 0)
    assert await catalog.write(settings.increment, "serial") == 1
    assert await catalog.write(settings.increment, "serial") == 2
