"""Documents of the compact index as answers."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from pkgrepo.formats.rubygems.index.requests import text_document_answer
from pkgrepo.http.answers import Content
from pkgrepo.model import Document
from tests.support.repositories import started_pools

TEXT = b"---\n" + b"1.0.0 |checksum:0\n" * 20_000


class Sink:
    """A consumer that takes everything."""

    def __init__(self) -> None:
        self.data = b""

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Nothing is ever paused."""

    def unregisterProducer(self) -> None:
        """Nothing is kept."""

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self.data += data


class Asking:
    """A request with one field."""

    def __init__(self, coding: bytes | None) -> None:
        self._coding = coding

    def header(self, _name: bytes) -> bytes | None:
        return self._coding


class Public:
    """A repository that everybody reads."""

    is_private = False


def answer(document: Document, coding: bytes | None, cpu: Any) -> Any:
    request: Any = Asking(coding)
    repository: Any = Public()
    return text_document_answer(request, repository, document, cpu)


@pytest.fixture
def large() -> Document:
    """A document that is kept in its compressed form only."""
    digests = {"sha256": "00" * 32, "md5": "11" * 16}
    return Document("text/plain", b"", '"e"', 1, gzip=gzip.compress(TEXT), digests=digests, size=len(TEXT))


async def test_a_large_document_is_unpacked_for_clients_without_gzip(large: Document) -> None:
    pools = started_pools()
    try:
        found = answer(large, None, pools.cpu)
        assert (found.size, found.ranges) == (len(TEXT), True)
        assert isinstance(found.body, Content)
        deliver: Any = found.body.deliver
        whole, part = Sink(), Sink()
        await deliver(whole, 0, len(TEXT))
        await deliver(part, 1000, 200_000)
    finally:
        await pools.stop()
    assert whole.data == TEXT
    assert part.data == TEXT[1000:200_000]


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, deflate"])
def test_a_large_document_is_sent_compressed_to_clients_with_gzip(large: Document, coding: bytes) -> None:
    found = answer(large, coding, None)
    assert gzip.decompress(found.body) == TEXT
    assert (b"Content-Encoding", b"gzip") in found.headers
