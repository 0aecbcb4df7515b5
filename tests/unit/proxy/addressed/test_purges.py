"""Files that may change, and are purged as soon as they are recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.repositories.publish.publisher import Publisher
from tests.support.memory_server import running_stacks
from tests.support.upstreams.maven import MavenUpstream

JAR = "com/example/lit/1.0-SNAPSHOT/lit-1.0-SNAPSHOT.jar"


async def test_file_that_is_purged_at_once_is_served_and_not_remembered_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Publisher.change_with_blobs
    with MavenUpstream() as upstream:
        path = upstream.add(JAR, b"PK\x03\x04 lit")
        async with running_stacks(tmp_path) as make:
            stack = await make(proxy__allow_private=["127.0.0.1"])
            config = {"type": "Proxy", "proxy": {"routes": [upstream.url]}}
            made = await stack.add_repository("mirror", format="maven", config=config)

            async def then_purge(self: Publisher, *args: Any) -> Any:
                result: Any = await change(self, *args)
                await stack.ok("POST", f"/repository/{made['id']}/cache/purge", {})
                return result

            monkeypatch.setattr(Publisher, "change_with_blobs", then_purge)
            for _ in range(2):
                reply = await stack.call("GET", f"/repositories/main/mirror{path}.sha1")
                assert (reply.status, len(reply.body)) == (200, 40)
