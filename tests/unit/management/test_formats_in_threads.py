"""No request to the API loads a format in the reactor's thread, which would keep all others waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest_twisted

from pkgrepo.gateway.format import LateFormat
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
