"""What gathers in memory is in the catalog, or the log, once the server has stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest_twisted
from twisted.internet.defer import Deferred

from pkgrepo.composition.core import Core
from pkgrepo.formats.container import facts as container
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Repository, RepositoryType, Visibility
from pkgrepo.repositories.images.quarantine import QuarantineExpiry
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.blobs import uploads
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.audit import Entry, append_entry, list_audit
from tests.support.inprocess_server import no_failures, until
from tests.support.memory_server import Stack


@pytest_twisted.async_yield_fixture
async def stopped(tmp_path: Path) -> Any:
    """The database of a server that was used a little and then stopped, before anything was due to be written."""
    with no_failures():
        stack = Stack(tmp_path)
        await stack.start()
        try:
            token = await stack.token(scopes=["users"])
            for _ in range(3):
                await stack.ok("GET", "/users", who=token)
            await stack.api("GET", "/users", who=None, headers={"Authorization": "Bearer aaa.bbb.ccc"})
            await stack.ok("GET", "/auth/token")
            await stack.add_repository()
            name = await stack.publish("main/py", "demo", "1.0")
            assert (await stack.call("GET", f"/repositories/main/py/packages/{name}")).status == 200
        finally:
            await stack.stop()
    connection = apsw.Connection(str(next(tmp_path.rglob("pkgrepo.db"))))
    yield connection
    connection.close()


async def test_uses_of_tokens_are_written_at_the_stop(stopped: Any) -> None:
    assert stopped.execute("SELECT uses FROM token").get == 3


async def test_rows_of_the_audit_log_are_written_at_the_stop(stopped: Any) -> None:
    found = stopped.execute("SELECT actor, outcome FROM audit WHERE action = 'login' ORDER BY outcome").fetchall()
    assert found == [("admin", "ok"), ("anonymous", "refused")]


async def test_downloads_are_written_at_the_stop(stopped: Any) -> None:
    assert stopped.execute("SELECT SUM(count) FROM download_count").get == 1


async def test_lines_of_the_access_log_are_written_at_the_stop(tmp_path: Path, capfdbinary: Any) -> None:
    stack = Stack(tmp_path, log__access=True)
    await stack.start()
    reply = await stack.call("GET", "/healthz", who=None)
    await stack.stop()
    (line,) = (line for line in capfdbinary.readouterr().out.splitlines() if b"/healthz" in line)
    assert reply.headers["x-request-id"].encode() in line


async def test_pings_of_clients_with_known_credentials_are_answered_from_memory(
    tmp_path: Path, capfdbinary: Any
) -> None:
    stack = Stack(tmp_path, log__access=True)
    await stack.start()
    try:
        await stack.add_repository("images", format="docker")
        for _ in range(3):
            assert (await stack.call("GET", "/v2/")).status == 200
    finally:
        await stack.stop()
    lines = [line for line in capfdbinary.readouterr().out.splitlines() if b"/v2/" in line]
    assert b"hot" in lines[-1]


async def test_a_start_removes_the_rows_of_the_audit_log_that_are_too_old(tmp_path: Path) -> None:
    days = 86_400_000  # milliseconds
    first = Stack(tmp_path)
    await first.start()
    core = first.assembly.core
    for age in (8, 6):
        at_ms = core.clock.now_ms() - age * days
        await core.catalog.write(append_entry, Entry(SYSTEM, f"{age} days ago"), at_ms)
    await first.stop()
    second = Stack(tmp_path, audit__retention_days=7)
    await second.start()
    try:
        catalog = second.assembly.core.catalog
        await until(lambda: not catalog.peek(list_audit, action="8 days ago"))
        assert catalog.peek(list_audit, action="6 days ago")
    finally:
        await second.stop()


async def test_a_start_that_is_alone_releases_what_killed_processes_worked_on(tmp_path: Path) -> None:
    first = Stack(tmp_path)
    await first.start()
    await first.add_repository("images", format="docker")
    await first.add_repository("java", format="maven")
    core = first.assembly.core
    images, java = (core.registry.find("main", name) for name in ("images", "java"))
    now_ms = core.clock.now_ms()
    place = {"repository_id": images.id, "storage_id": images.storage_id, "package_key": "app"}
    await core.catalog.write(uploads.add_upload, uid="u", user_id=None, state=b"", now_ms=now_ms, **place)
    await core.catalog.write(uploads.lease_upload, "u", "killed", now_ms + 20_000, now_ms)
    await core.catalog.write(add_bundle, java.id, now_ms + 20_000)
    await first.stop()
    second = Stack(tmp_path)
    await second.start()
    try:
        catalog = second.assembly.core.catalog
        assert not catalog.peek(uploads.find_upload, "u", now_ms).leased
        assert catalog.peek(lambda r: r.one("SELECT lease_until FROM deployment WHERE uid = 'd'")) == (None,)
    finally:
        await second.stop()


def add_bundle(tx: Transaction, repository_id: int, until_ms: int) -> None:
    """Insert a deployment that waits for its user, as one is published by a process that holds its lease."""
    tx.send(
        """
        INSERT INTO deployment (uid, repository_id, name, state, automatic, actor, size, lease_until, created_at,
                                touched_at)
        VALUES ('d', ?, 'bundle', 'PUBLISHING', 0, '', 0, ?, ?, ?)
        """,
        (repository_id, until_ms, until_ms, until_ms),
    )


async def test_a_stop_breaks_off_jobs_and_notes_that(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    await stack.start()
    core = stack.assembly.core

    async def endless(_progress: Progress) -> dict[str, Any]:
        await Deferred()
        return {}

    uid = await core.jobs.begin("test", "key", {}, endless)
    await stack.stop()
    again = Stack(tmp_path)
    await again.start()
    try:
        job = await again.assembly.core.jobs.find(uid)
        assert job is not None
        assert job.state == "failed"
    finally:
        await again.stop()


async def add_elsewhere(core: Core) -> None:
    """Add a repository for images as another process does: nothing of this one has loaded the format for it."""
    values: dict[str, Any] = {"visibility": Visibility.PRIVATE, "config": {"type": "Hosted"}, "settings": {}}
    storage_id, format_ = core.registry.storages()[0].id, container.FACTS.name

    def add(tx: Transaction) -> Repository:
        own = {"name": "images", "type": RepositoryType.HOSTED, **values}
        return repositories.add_repository(tx, storage_id=storage_id, format=format_, now_ms=0, **own)

    await core.catalog.write(add)


async def test_what_a_format_runs_begins_where_another_process_adds_its_first_repository(
    tmp_path: Path, monkeypatch: Any
) -> None:
    runs: list[QuarantineExpiry] = []

    async def note(watch: QuarantineExpiry) -> None:
        runs.append(watch)

    monkeypatch.setattr(QuarantineExpiry, "run_once", note)
    # nor does the readable layout load it, which shows all repositories
    stack = Stack(tmp_path, bootstrap__storages=[{"name": "main", "readable_layout": False}])
    await stack.start()
    try:
        core = stack.assembly.core
        await add_elsewhere(core)
        await core.registry.refresh()  # as what runs in the background does again and again
        await until(lambda: bool(runs))
    finally:
        await stack.stop()


async def test_what_waits_for_signatures_is_looked_through_from_the_first_repository_on(
    tmp_path: Path, monkeypatch: Any
) -> None:
    runs: list[QuarantineExpiry] = []

    async def note(watch: QuarantineExpiry) -> None:
        runs.append(watch)

    monkeypatch.setattr(QuarantineExpiry, "run_once", note)
    stack = Stack(tmp_path)
    await stack.start()
    try:
        assert not runs
        repository = {"name": "images", "storage": "main", "format": "oci"}
        assert (await stack.api("POST", "/repository", repository)).status == 201
        await until(lambda: bool(runs))
    finally:
        await stack.stop()
    again = Stack(tmp_path)
    await again.start()
    try:
        await until(lambda: len(runs) == 2)
    finally:
        await again.stop()
    assert len(runs) == 2
