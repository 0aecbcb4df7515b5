"""What a follower does with answers that do not say what they seem to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import Factory, define

from pkgrepo.errors import UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.replication.follower import Follower
from pkgrepo.replication.source import RemoteVersion
from tests.support.upstreams.server import ScriptedUpstream
from tests.unit.replication.test_source import make_source

HERE: Any = SimpleNamespace(path="main/a", format="npm")


@define
class Noting:
    """Copies that note what is to be evicted."""

    dropped: list[str] = Factory(list)

    async def kept(self, repository: Repository, package: str) -> Sequence[str]:
        return ["1.0"]

    async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
        raise AssertionError("nothing is there")

    async def drop(self, repository: Repository, package: str, version: str) -> None:
        self.dropped.append(version)

    async def renew(self, repository: Repository, package: str) -> None:
        pass


async def test_what_is_kept_stays_while_the_repository_there_may_not_be_read() -> None:
    unused, copies = Any, Noting()
    with ScriptedUpstream() as server:  # whose answers are 404, as those of one who may not read it
        follower = Follower(
            repository=HERE,
            source=make_source(server),
            copies=copies,
            package_key=str,
            catalog=unused,
            clock=unused,
            reactor=unused,
            settle=unused,
            mark_old=unused,
        )
        for work in (follower._apply_version("demo", "1.0"), follower._apply_all("demo")):
            with pytest.raises(UpstreamFailed, match="none that may be read"):
                await work
        assert copies.dropped == []
        server.serve("/api/repository/main%2Fb", json.dumps({"type": "Hosted", "format": "npm"}).encode())
        await follower._apply_version("demo", "1.0")
        await follower._apply_all("demo")
        assert copies.dropped == ["1.0", "1.0"]
