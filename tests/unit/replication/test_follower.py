"""What a follower does with answers that do not say what they seem to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import Factory, define
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import UpstreamFailed, UpstreamUnavailable
from pkgrepo.model import Repository
from pkgrepo.replication.follower import Follower
from pkgrepo.replication.source import RemoteVersion
from tests.support.upstreams.server import ScriptedUpstream
from tests.unit.replication.test_source import make_source

HERE: Any = SimpleNamespace(id=1, path="main/a", format="npm")


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


class Connecting(Follower):
    """One whose steps wait for a connection, whose cancellation looks like an upstream that does not answer."""

    async def _listen(self) -> None:
        try:
            await Deferred()
        except CancelledError:
            raise UpstreamUnavailable("there", "the connection was not made") from None

    _work = _listen


async def test_a_follower_ends_while_it_connects() -> None:
    async def write(*_: Any, **__: Any) -> None:
        pass

    unused: Any = SimpleNamespace(name="there")
    follower = Connecting(
        repository=HERE,
        source=unused,
        copies=Noting(),
        package_key=str,
        catalog=cast("Any", SimpleNamespace(write=write)),
        clock=cast("Any", SimpleNamespace(now_ms=lambda: 0)),
        reactor=Clock(),
        settle=unused,
        mark_old=unused,
    )
    running = Deferred.fromCoroutine(follower.run())
    assert not running.called
    follower.end()
    running.cancel()
    assert running.called, "it goes on for ever, and the server does not stop"
