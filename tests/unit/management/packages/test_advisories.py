"""Known vulnerabilities of versions, as the API says them."""

from __future__ import annotations

import pytest

from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish

NOTHING = {"items": [], "total": 0, "checked": False}


@pytest.mark.parametrize("format_", ["python", "npm"])
async def test_without_data_nothing_is_said_of_a_version(stack: Stack, format_: str) -> None:
    await stack.add_repository("r", format=format_)
    if format_ == "python":
        await stack.publish("main/r", "app", "1.0.0")
    else:
        path, headers = "/repositories/main/r/app", {"Content-Type": "application/json"}
        assert (await stack.call("PUT", path, raw=make_publish("app", "1.0.0"), headers=headers)).status == 201
    assert await stack.ok("GET", "/package/main%2Fr/app/versions/1.0.0/advisories") == NOTHING
