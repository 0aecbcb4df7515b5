"""What asks formats in the reactor's thread has them loaded in another one: requests to the API, and the layout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest_twisted

from pkgrepo.composition.used_formats import UsedFormats
from pkgrepo.gateway.format import LateFormat
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Repository, RepositoryType, Visibility
from pkgrepo.storage.catalog.server import repositories
from tests.support.inprocess_server import until
from tests.support.memory_server import WITHOUT_CONDA, Stack


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path, monkeypatch: Any) -> AsyncIterator[Stack]:
    """A server with a Python repository; ``stack.kept_waiting`` are the formats whose load the reactor waited for."""
    stack: Any = Stack(tmp_path)
    stack.kept_waiting = kept_waiting = list[str]()
    await stack.start()
    await stack.ok("GET", "/users")
    await stack.add_repository(config=WITHOUT_CONDA)
    await stack.publish("main/py", "demo", "1.0")
    reactor_thread, get = current_thread(), LateFormat.__getattr__

    def note(format_: LateFormat, name: str) -> Any:
        if current_thread() is reactor_thread and not format_.is_loaded:
            kept_waiting.append(format_.name)
        return get(format_, name)

    monkeypatch.setattr(LateFormat, "__getattr__", note)
    yield stack
    await stack.stop()


async def test_counts_of_rules(stack: Any) -> None:
    assert await stack.ok("GET", "/policy/counts") == []
    assert not stack.kept_waiting


async def test_an_explanation_needs_the_format_of_the_repository_alone(stack: Any) -> None:
    before = stack.assembly.core.loaded_formats()
    found = await stack.ok("GET", "/explain?repository=main/py&package=demo&version=1.0")
    assert found["version"]["version"] == "1.0"
    assert not stack.kept_waiting
    assert stack.assembly.core.loaded_formats() == before


async def test_the_readable_layout_of_a_repository_that_another_process_has_added(stack: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(UsedFormats, "_begin", lambda _: None)  # what it loads may be late for the layout
    core = stack.assembly.core
    storage_id = core.registry.storages()[0].id

    def add(tx: Transaction) -> Repository:
        return repositories.add_repository(
            tx,
            storage_id=storage_id,
            format="raw",
            name="files",
            type=RepositoryType.HOSTED,
            visibility=Visibility.PUBLIC,
            config={"type": "Hosted"},
            settings={},
            now_ms=0,
        )

    repository = await core.catalog.write(add)
    core.follow(repository)
    await until(lambda: core.formats["raw"].is_loaded)
    assert not stack.kept_waiting
