"""Documents that only grow, and lists that name other documents: lists of versions of gems, with ``/info`` of these."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.formats.rubygems.proxied.normaliser import read_pieces
from pkgrepo.formats.rubygems.proxied.upstream import info_question, versions_question
from pkgrepo.model import Repository
from pkgrepo.proxy.caching import asking
from pkgrepo.proxy.caching.questions import Held
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from tests.support.proxy_world import ProxyWorld
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.rubygems import RubyUpstream


class Mirror:
    """A gem server, and a proxy of it, whose answers are fresh for a minute."""

    def __init__(self, world: ProxyWorld, upstream: RubyUpstream, proxy: Repository) -> None:
        self.world = world
        self.upstream = upstream
        self.proxy = proxy

    async def ask(self, question: Any) -> Held:
        return await self.world.documents.get(self.proxy, question, Trace())

    async def versions(self) -> bytes:
        """The list as it is served now."""

        def join(*parts: PartsFile) -> bytes:
            return b"".join(piece for each in parts for piece in read_pieces(each))

        held = await self.ask(versions_question())
        return await self.world.documents.read(self.proxy, versions_question(), held, join)

    async def later(self) -> bytes:
        """The same when it is asked for again."""
        await self.world.settle()
        self.world.clock.advance(61)
        self.upstream.forget()
        return await self.versions()

    async def info(self, name: str) -> Held:
        return await self.ask(info_question(name))

    @property
    def asked(self) -> list[tuple[str | None, int]]:
        """The ranges of the requests for the list, and the statuses of the answers."""
        found = self.upstream.exchanges_of("/versions")
        return [(each.request.fields.get("range"), each.status) for each in found]


@pytest_twisted.async_yield_fixture
async def mirror(world: ProxyWorld) -> AsyncIterator[Mirror]:
    with RubyUpstream() as upstream:
        for name in ("left", "right", "up"):
            upstream.add(name)
        yield Mirror(world, upstream, await world.proxy("mirror", upstream, cache_ttl=60))


def without_digests(answer: Answer) -> Answer:
    return Answer(body=answer.body, fields={"ETag": '"weekly"'})


async def test_what_was_appended_is_asked_for_and_kept(mirror: Mirror) -> None:
    first = await mirror.versions()
    assert first == mirror.upstream.versions
    for name in ("new", "newer"):
        size = len(mirror.upstream.versions)
        mirror.upstream.add(name)
        assert await mirror.later() == mirror.upstream.versions
        assert mirror.asked == [(f"bytes={size - 1}-", 206)]
    assert await mirror.later() == mirror.upstream.versions
    assert [status for _, status in mirror.asked] == [304]
    await mirror.world.restart()
    mirror.upstream.misbehave("/versions", failing(), repeat=True)
    assert await mirror.later() == mirror.upstream.versions
    mirror.upstream.behave()
    mirror.upstream.add("newest")
    mirror.world.clock.advance(61)
    assert await mirror.later() == mirror.upstream.versions
    assert [status for _, status in mirror.asked] == [206]


@pytest.mark.parametrize("repr_digest", [":{}:", '"{}"', "{}"])
async def test_digests_have_several_forms(mirror: Mirror, repr_digest: str) -> None:
    def resign(answer: Answer) -> Answer:
        digest = base64.b64encode(hashlib.sha256(answer.body).digest()).decode()
        text = f"sha-512=:AAAA:, sha-256={repr_digest.format(digest)}"
        return Answer(body=answer.body, fields={"ETag": '"weekly"', "Digest": text})

    await mirror.versions()
    mirror.upstream.add("new")
    mirror.upstream.misbehave("/versions", resign)
    assert await mirror.later() == mirror.upstream.versions
    assert [status for _, status in mirror.asked] == [206]


@pytest.mark.parametrize("change", ["rewritten", "shorter", "without digests", "too long", "ignored"])
async def test_what_does_not_continue_the_list_is_fetched_whole(
    mirror: Mirror, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mirror.versions()
    upstream = mirror.upstream
    expected = {"rewritten": [206, 200], "shorter": [416, 200], "ignored": [200]}.get(change, [206, 200])
    if change == "shorter":
        del upstream.lines[0]
    else:
        upstream.add("new")
    if change == "rewritten":
        upstream.lines.reverse()
    elif change == "without digests":
        upstream.misbehave("/versions", without_digests, without_digests)
    elif change == "too long":
        monkeypatch.setattr(asking, "MOST_TAIL", 10)
    elif change == "ignored":
        upstream.misbehave("/versions", lambda answer: Answer(body=answer.body, fields=answer.fields, ranges=False))
    assert await mirror.later() == upstream.versions
    assert [status for _, status in mirror.asked] == expected
    assert await mirror.later() == upstream.versions


async def test_an_end_that_was_cut_off_leaves_the_list_as_it_was(mirror: Mirror) -> None:
    before = await mirror.versions()
    mirror.upstream.add("new")
    mirror.upstream.misbehave("/versions", Fault(cut_at=10), repeat=True)
    assert await mirror.later() == before
    mirror.upstream.behave()
    assert await mirror.later() == mirror.upstream.versions


async def test_a_document_that_the_list_names_otherwise_is_asked_for_at_once(mirror: Mirror) -> None:
    await mirror.versions()
    first = await mirror.info("left")
    mirror.upstream.add("left", "1.1.0")
    await mirror.later()
    await mirror.info("right")
    mirror.world.clock.advance(1)
    again = await mirror.info("left")
    assert not again.is_of(first)
    for _ in range(2):
        assert (await mirror.info("left")).is_of(again)
    assert mirror.upstream.count("/info/left") == 1


async def test_a_document_that_the_list_names_is_not_asked_for(mirror: Mirror) -> None:
    await mirror.versions()
    first = await mirror.info("left")
    mirror.upstream.add("new")
    await mirror.later()
    again = await mirror.info("left")
    assert again.is_of(first)
    assert again.document.fresh_until_ms > mirror.world.clock.ms
    assert mirror.upstream.count("/info/left") == 0


async def test_a_document_that_lags_behind_its_list_is_asked_for_once(mirror: Mirror) -> None:
    await mirror.versions()
    first = await mirror.info("left")
    old = mirror.upstream.info("left")
    mirror.upstream.add("left", "1.1.0")
    mirror.upstream.misbehave("/info/left", lambda _: Answer(body=old, fields={}), repeat=True)
    await mirror.later()
    for _ in range(3):
        mirror.world.clock.advance(1)
        assert (await mirror.info("left")).is_of(first)
    assert mirror.upstream.count("/info/left") == 1
