"""Documents in the cache, and which of their forms stay there."""

from __future__ import annotations

import gzip
import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.pools import Pools
from pkgrepo.gateway.responses.content import document_response
from pkgrepo.gateway.responses.long_bodies import UNPACKED
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.responses.view_turns import ViewTurns
from pkgrepo.http.responses import Content
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.repositories.publish.splicing import Renderer, Spliced

FORM = "form"
URL = "http://h"
POOLS: Any = None  # small documents need no thread
TURNS = ViewTurns(Clock())


class Package:
    """A package whose document has so many bytes; ``loads`` counts how often its parts were read."""

    def __init__(self, size: int) -> None:
        self.loads = 0
        self._size = size

    @property
    def state(self) -> PackageState:
        repository: Any = SimpleNamespace(id=1, view=None)

        async def load(_form: str) -> tuple[Spliced, PackageState]:
            self.loads += 1
            return Spliced(b"{", [b"x" * self._size], b"}"), self.state

        return PackageState(repository, "x", "x", 1, 1, None, 0, lambda _: True, load)


@pytest.fixture
def documents() -> SplicedDocuments:
    return SplicedDocuments({FORM: "text/plain"}, cache_size=1_000_000, large=5000)


async def test_document_is_rendered_once(documents: SplicedDocuments) -> None:
    package = Package(2000)
    first = await documents.get(POOLS, TURNS, package.state, FORM, URL)
    assert (await documents.get(POOLS, TURNS, package.state, FORM, URL)).document is first.document
    assert documents.ready(package.state, FORM, URL) is first.document
    assert package.loads == 1


async def test_large_document_is_kept_compressed_alone(documents: SplicedDocuments) -> None:
    package = Package(8000)
    document = (await documents.get(POOLS, TURNS, package.state, FORM, URL)).document
    assert (document.body, document.size) == (b"", 8002)
    assert gzip.decompress(document.gzip or b"") == b"{" + b"x" * 8000 + b"}"
    assert documents.ready(package.state, FORM, URL) is document
    assert package.loads == 1


async def test_documents_have_the_digests_that_their_format_sends() -> None:
    documents = SplicedDocuments({FORM: "text/plain"}, cache_size=1_000_000, algorithms=("md5", "sha256"))
    document = (await documents.get(POOLS, TURNS, Package(2000).state, FORM, URL)).document
    assert document.digests == {
        "md5": hashlib.md5(document.body).hexdigest(),
        "sha256": hashlib.sha256(document.body).hexdigest(),
    }


async def test_large_document_is_unpacked_as_the_client_reads() -> None:
    spliced = Spliced(b"{", [b"%d" % number * 50 for number in range(9000)], b"}")
    plain = Renderer().render(spliced, "", content_type="text/plain", serial=1, zstd=True)
    large = Renderer(large=5000).render(spliced, "", content_type="text/plain", serial=1, zstd=True)
    assert (large.body, large.size, large.etag) == (b"", len(plain.body), plain.etag)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(large.zstd or b"") == plain.body
    pools = Pools(reactor, cpu_threads=2)
    pools.start()
    answers = [document_response(each, "identity", (), cpu=pools.cpu) for each in (plain, large)]
    assert (answers[0].size, answers[0].etag) == (answers[1].size, answers[1].etag)
    content = answers[1].body
    assert isinstance(content, Content)
    assert content.deliver is not None
    readers = [Reader() for _ in range(3)]
    works: list[Any] = [content.deliver(each, 10, content.size - 10) for each in readers]  # type: ignore[arg-type]
    deliveries = [Deferred.fromCoroutine(each) for each in works]
    while not all(each.called for each in deliveries):
        await pools.wait_idle()
        # Without an answer by the clients nothing more is unpacked.
        assert not await pools.wait_idle()
        for each in readers:
            assert len(each.received) - each.taken <= UNPACKED
            each.take()
    for each in deliveries:
        await each
    assert {each.received for each in readers} == {plain.body[10:-10]}
    await pools.stop()


async def test_document_is_not_unpacked_any_further_for_a_client_that_left() -> None:
    spliced = Spliced(b"{", [b"%d" % number * 50 for number in range(9000)], b"}")
    large = Renderer(large=5000).render(spliced, "", content_type="text/plain", serial=1)
    pools = Pools(reactor, cpu_threads=1)
    pools.start()
    content = document_response(large, "identity", (), cpu=pools.cpu).body
    assert isinstance(content, Content)
    assert content.deliver is not None
    reader = Reader()
    work: Any = content.deliver(reader, 0, content.size)  # type: ignore[arg-type]
    delivery: Deferred[None] = Deferred.fromCoroutine(work)
    delivery.addErrback(lambda failure: failure.trap(CancelledError))
    delivery.cancel()  # while the first piece is unpacked
    await delivery
    await pools.wait_idle()
    assert not reader.received
    assert reader.unregistered
    assert not await pools.wait_idle()
    await pools.stop()


class Reader:
    """A consumer that takes one piece at a time."""

    def __init__(self) -> None:
        self.received = b""
        self.taken = 0
        self.producer: Any = None
        self.unregistered = False

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.unregistered = True

    def write(self, data: bytes) -> None:
        self.received += data
        self.producer.pauseProducing()

    def take(self) -> None:
        self.taken = len(self.received)
        self.producer.resumeProducing()
