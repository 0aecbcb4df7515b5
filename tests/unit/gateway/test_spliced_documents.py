"""Documents in the cache, and which of their forms stay there."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.gateway import spliced_documents
from pkgrepo.gateway.spliced_documents import SplicedDocuments
from pkgrepo.proxy.resolving.package_state import PackageState
from pkgrepo.repositories.publish.splicing import Spliced

FORM = "form"
URL = "http://h"
POOLS: Any = None  # small documents need no thread


class Package:
    """A package whose document has so many bytes; ``loads`` counts how often its parts were read."""

    def __init__(self, size: int) -> None:
        self.loads = 0
        self._size = size

    @property
    def state(self) -> PackageState:
        repository: Any = SimpleNamespace(id=1)

        async def load(_form: str) -> tuple[Spliced, PackageState]:
            self.loads += 1
            return Spliced(b"{", [b"x" * self._size], b"}"), self.state

        return PackageState(repository, "x", "x", 1, 1, None, 0, lambda _: True, load)


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> SplicedDocuments:
    monkeypatch.setattr(spliced_documents, "LARGE", 5000)
    return SplicedDocuments({FORM: "text/plain"}, cache_size=1_000_000)


@pytest_twisted.ensureDeferred
async def test_document_is_rendered_once(documents: SplicedDocuments) -> None:
    package = Package(2000)
    first = await documents.get(POOLS, package.state, FORM, URL)
    assert (await documents.get(POOLS, package.state, FORM, URL)).document is first.document
    assert documents.ready(package.state, FORM, URL) is first.document
    assert package.loads == 1


@pytest_twisted.ensureDeferred
async def test_large_document_is_kept_compressed_alone(documents: SplicedDocuments) -> None:
    package = Package(8000)
    first = (await documents.get(POOLS, package.state, FORM, URL)).document
    assert len(first.body) == 8002
    kept = (await documents.get(POOLS, package.state, FORM, URL, packed=True)).document
    assert (kept.body, kept.gzip, kept.etag) == (b"", first.gzip, first.etag)
    assert documents.ready(package.state, FORM, URL, packed=True) is kept
    assert documents.ready(package.state, FORM, URL) is None
    assert package.loads == 1
    assert (await documents.get(POOLS, package.state, FORM, URL)).document == first
    assert package.loads == 2


@pytest_twisted.ensureDeferred
async def test_documents_have_the_digests_that_their_format_sends() -> None:
    documents = SplicedDocuments({FORM: "text/plain"}, cache_size=1_000_000, algorithms=("md5", "sha256"))
    document = (await documents.get(POOLS, Package(2000).state, FORM, URL)).document
    assert document.digests == {
        "md5": hashlib.md5(document.body).hexdigest(),
        "sha256": hashlib.sha256(document.body).hexdigest(),
    }
