"""Files that belong to no version, through virtual repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.memory_server import Stack, running_stacks
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.server
NOTES = "/com/acme/lib/1.0/notes.txt"


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    async with running_stacks(tmp_path) as make:
        yield await make(proxy__allow_private=["127.0.0.1"])


async def test_what_is_put_through_a_virtual_repository_is_served_there(stack: Stack) -> None:
    with ScriptedUpstream() as upstream:
        java = {"format": "maven"}
        await stack.add_repository("own", config={"type": "Hosted"}, **java)
        route = {"url": upstream.url, "name": "up"}
        await stack.add_repository("mirror", config={"type": "Proxy", "proxy": {"routes": [route]}}, **java)
        members = ["main/own", "main/mirror"]
        config = {"type": "Virtual", "members": members, "publish_to": "main/own"}
        await stack.add_repository("all", config=config, **java)
        for path, data in ((NOTES, b"of one version"), ("/tool.txt", b"of none")):
            assert (await stack.call("PUT", f"/repositories/main/all{path}", raw=data)).status == 201
            found = await stack.call("GET", f"/repositories/main/all{path}", who=None)
            assert (found.status, found.body) == (200, data)
            assert (await stack.call("GET", f"/repositories/main/all{path}.sha1", who=None)).status == 200
            assert (await stack.call("HEAD", f"/repositories/main/mirror{path}", who=None)).status == 404
        listed = await stack.call("GET", "/repositories/main/all/com/acme/lib/1.0/", who=None)
        assert b"notes.txt" in listed.body
        assert upstream.count() == 0
