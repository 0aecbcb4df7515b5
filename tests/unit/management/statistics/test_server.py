"""How the server was used by day, and its state."""

from __future__ import annotations

from pkgrepo.management.api.services import Histogram
from tests.support.memory_server import Stack


async def test_downloads_and_uploads_are_counted_by_day(stack: Stack) -> None:
    await stack.add_repository("py")
    filename = await stack.publish("main/py", "demo", "1.0")
    for _ in range(2):
        await stack.call("GET", f"/repositories/main/py/demo/1.0/{filename}", who=None)
    await stack.assembly.core.downloads.flush()
    found = await stack.ok("GET", "/statistics?days=3")
    assert [(each["downloads"], each["uploads"], each["hit_ratio"]) for each in found["days"]] == [
        (0, 0, None),
        (0, 0, None),
        (2, 1, None),
    ]
    assert [each["count"] for each in found["times"] if each["name"] == "python"] == [2]
    assert (await stack.api("GET", "/statistics?days=0")).status == 422
    await stack.add_user("ada")
    for path in ("/statistics", "/server/state"):
        assert [(await stack.api("GET", path, who=who)).status for who in ("ada", None)] == [403, 401]


async def test_the_state_has_the_checks_and_the_versions(stack: Stack) -> None:
    found = await stack.ok("GET", "/server/state")
    assert found["status"] == "ok"
    assert {each["name"]: each["status"] for each in found["checks"]} == dict.fromkeys(
        ("catalog", "database", "storage main", "readable layout"), "ok"
    )
    assert {"pkgrepo", "Python", "Twisted", "SQLite"} == set(found["versions"])


def test_quantiles_are_bounds_of_classes() -> None:
    assert Histogram((0.1, 1.0), [0, 0, 0]).quantile(0.5) is None
    counted = Histogram((0.1, 1.0), [5, 4, 1])
    assert [counted.quantile(part) for part in (0.5, 0.9, 1.0)] == [0.1, 1.0, 1.0]
    assert (counted + counted).total == 20
