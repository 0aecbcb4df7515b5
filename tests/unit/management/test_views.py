"""Views of days that are past: how long clients may keep their documents."""

from __future__ import annotations

from typing import Any

from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.usage_counts import DAY_MS
from tests.support.memory_server import Stack


async def move_back(stack: Stack, days: int) -> None:
    """Have all that was published be so many days older."""

    def move(tx: Any) -> None:
        tx.execute("UPDATE version SET published_at = published_at - ?", (days * DAY_MS,))
        tx.execute("UPDATE file SET created_at = created_at - ?", (days * DAY_MS,))
        tx.execute("UPDATE event SET at = at - ?", (days * DAY_MS,))

    await stack.assembly.core.catalog.write(move)


async def day(stack: Stack, ago: int) -> str:
    def read(reader: Any) -> str:
        sql = "SELECT published_at FROM version ORDER BY id LIMIT 1"
        return f"{from_ms(reader.one(sql)[0] - ago * DAY_MS):%Y-%m-%d}"

    found: str = await stack.assembly.core.catalog.look(read)
    return found


async def test_documents_of_a_day_that_is_past_are_kept_for_ever(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("secret", visibility="private")
    for name in ("py", "secret"):
        await stack.publish(f"main/{name}", "demo", "1.0")
    await move_back(stack, 3)
    for name in ("py", "secret"):
        await stack.publish(f"main/{name}", "demo", "2.0")
    then = await day(stack, 0)
    for name, scope in (("py", "public"), ("secret", "private")):
        for _ in range(2):  # also from memory
            found = await stack.call("GET", f"/repositories/main/{name}@{then}/simple/demo/")
            assert found.headers["cache-control"] == f"{scope}, max-age=31536000, immutable"
            assert (b"demo-1.0" in found.body, b"demo-2.0" in found.body) == (True, False)
        before = await day(stack, 1)
        gone = await stack.call("GET", f"/repositories/main/{name}@{before}/simple/demo/")
        assert (gone.status, gone.headers["cache-control"]) == (404, "no-store")
        live = await stack.call("GET", f"/repositories/main/{name}/simple/demo/")
        assert "immutable" not in live.headers["cache-control"]
    listed = await stack.call("GET", f"/repositories/main/py@{before}/simple/")
    assert b"demo" not in listed.body
