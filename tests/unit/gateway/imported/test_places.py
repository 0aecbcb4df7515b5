"""What is asked of the place that packages are taken from, and how much is read there."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.composition.upstreams import upstream_settings
from pkgrepo.config import Config
from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.gateway.imported.places import Folder, Site
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from tests.support.inprocess_server import reactor
from tests.support.repositories import InlinePools
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream

SETTINGS = evolve(upstream_settings(Config().proxy, proxies={}), allow_private=("127.0.0.1",))


POOLS: Any = InlinePools()


@pytest.mark.parametrize(("more", "said"), [({}, "application/json"), ({"body_type": "text/plain"}, "text/plain")])
async def test_a_question_says_of_what_kind_it_is(more: dict[str, str], said: str) -> None:
    with ScriptedUpstream() as there:
        there.serve("/api/search", b'{"results": []}')
        upstreams = Upstreams(SETTINGS, reactor, authorize=lambda _: None)
        site = Site(upstreams, 1, Route("there", parse_url(there.url)), POOLS, reactor=reactor, largest=100)
        assert await site.json("api/search", body=b"items.find()", **more) == {"results": []}
        with pytest.raises(NotFound):
            await site.json("api/other", body=b"items.find()", **more)
        with pytest.raises(UpstreamFailed):
            await site.json("api/search", largest=14)
        await upstreams.close()
        first = there.requests("/api/search")[0]
    assert (first.method, first.fields["content-type"], first.body) == ("POST", said, b"items.find()")


async def test_a_document_may_be_sent_compressed() -> None:
    with ScriptedUpstream() as there:
        there.serve("/list.json", Answer(200, gzip.compress(b"[1]"), {"Content-Encoding": "gzip"}))
        upstreams = Upstreams(SETTINGS, reactor, authorize=lambda _: None)
        site = Site(upstreams, 1, Route("there", parse_url(there.url)), POOLS, reactor=reactor, largest=100)
        assert await site.json("list.json") == [1]
        await upstreams.close()


async def test_a_small_file_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_bytes(b"[12]")
    folder = Folder(str(tmp_path), POOLS)
    assert await folder.json("list.json", 4) == [12]
    with pytest.raises(Invalid, match=r"list\.json has more than 3 bytes"):
        await folder.json("list.json", 3)
    with pytest.raises(NotFound):
        await folder.read("other.json", 3)
