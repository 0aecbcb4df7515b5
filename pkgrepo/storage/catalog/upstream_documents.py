"""
What the upstreams of a proxy repository said: one row for each question.

A question is named by its key. Its present answer is either normalised and kept as a blob, or short and kept in
``meta``, or that no upstream has it (an empty ``route``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.rows import dump, every, find, load, put, rows


@frozen(kw_only=True)
class UpstreamDocument:
    """
    The present answer to one question. Times are in milliseconds since the epoch.

    ``route`` is the name of the route that answered, empty if no route has it. ``source`` is the sha256 (hex) of the
    answer as it was sent. ``locator`` and ``size`` are those of the blob of the normalised answer, with the ``sha256``;
    all are empty if there is none. ``fetched_ms`` grows with each change of the content.
    """

    key: str
    package_key: str = ""
    route: str = ""
    url: str = ""
    etag: str | None = None
    last_modified: str | None = None
    source: str = ""
    sha256: str = ""
    storage_id: int = 0
    locator: str = ""
    size: int = 0
    meta: Mapping[str, Any] = Factory(dict)
    trace: Sequence[Mapping[str, Any]] = ()
    fetched_ms: int
    checked_ms: int
    fresh_until_ms: int

    @property
    def found(self) -> bool:
        """Whether an upstream has it."""
        return bool(self.route)


@frozen
class DocumentFigures:
    """What is kept of a route (empty: that no route has something): answers, their bytes, the last confirmation."""

    route: str
    count: int
    size: int
    checked_ms: int


@frozen
class Stored:
    """
    The result of storing an answer: ``surplus`` are locators of copies that the catalog does not use.

    ``locator`` is that of its blob; empty without one, and for several answers.
    """

    surplus: tuple[str, ...] = ()
    locator: str = ""


def _hex(value: bytes | None) -> str:
    return "" if value is None else value.hex()


_SELECT, _document = rows(
    UpstreamDocument,
    "upstream_document d LEFT JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256",
    of="d",
    source=_hex,
    sha256=_hex,
    storage_id="COALESCE(d.storage_id, 0)",
    locator="CASE b.state WHEN 'live' THEN b.locator ELSE '' END",
    size="COALESCE(b.size, 0)",
    trace=load,
    fetched_ms="d.fetched_at",
    checked_ms="d.checked_at",
    fresh_until_ms="d.fresh_until",
)


def find_document(r: Reader, repository_id: int, key: str) -> UpstreamDocument | None:
    """The present answer to a question, or None if it was not asked."""
    return find(r, _document, f"{_SELECT} WHERE d.repository_id = ? AND d.key = ?", (repository_id, key))


def fetched_at(r: Reader, repository_id: int, key: str) -> int | None:
    """When the present answer was fetched (ms); another value means another content. None if there is no answer."""
    row = r.one("SELECT fetched_at FROM upstream_document WHERE repository_id = ? AND key = ?", (repository_id, key))
    return None if row is None else row[0]


def latest_fetched_at(r: Reader, repository_id: int, keys: tuple[str, str]) -> int:
    """When the newest of two answers that upstreams have was fetched (ms); 0 if there is none."""
    row = r.one(
        "SELECT MAX(fetched_at) FROM upstream_document WHERE repository_id = ? AND key IN (?, ?) AND route <> ''",
        (repository_id, *keys),
    )
    return 0 if row is None or row[0] is None else row[0]


def documents_of_package(r: Reader, repository_id: int, package_key: str) -> list[UpstreamDocument]:
    """All answers about a package, by key."""
    return every(
        r,
        _document,
        f"{_SELECT} WHERE d.repository_id = ? AND d.package_key = ? ORDER BY d.key",
        (repository_id, package_key),
    )


def list_documents(r: Reader, repository_id: int, *, after: str = "", limit: int = 100) -> list[UpstreamDocument]:
    """A page of answers after a key, ordered by key."""
    return every(
        r,
        _document,
        f"{_SELECT} WHERE d.repository_id = ? AND d.key > ? ORDER BY d.key LIMIT ?",
        (repository_id, after, limit),
    )


def document_figures(r: Reader, repository_id: int) -> list[DocumentFigures]:
    """What is kept of each route. Reads all answers of the repository: call it on a reader thread."""
    return every(
        r,
        lambda row: DocumentFigures(*row),
        """
        SELECT d.route, COUNT(*), COALESCE(SUM(b.size), 0), MAX(d.checked_at)
        FROM upstream_document d LEFT JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256
        WHERE d.repository_id = ? GROUP BY d.route ORDER BY d.route
        """,
        (repository_id,),
    )


def put_document(
    tx: Transaction, repository: Repository, document: UpstreamDocument, blob: BlobInfo | None, now_ms: int
) -> Stored:
    """Store the answer to a question in place of the one before; ``blob`` is the normalised one, which is durable."""
    claimed = None if blob is None else blobs.claim_blob(tx, repository.storage_id, blob, now_ms)
    put(
        tx,
        "upstream_document",
        "repository_id, key",
        repository_id=repository.id,
        key=document.key,
        package_key=document.package_key,
        route=document.route,
        url=document.url,
        etag=document.etag,
        last_modified=document.last_modified,
        source=bytes.fromhex(document.source) or None,
        storage_id=None if claimed is None else repository.storage_id,
        sha256=None if claimed is None else bytes.fromhex(claimed.sha256),
        meta=dump(document.meta),
        trace=dump(document.trace),
        fetched_at=document.fetched_ms,
        checked_at=document.checked_ms,
        fresh_until=document.fresh_until_ms,
    )
    if claimed is None or blob is None:
        return Stored()
    return Stored(() if claimed.locator == blob.locator else (blob.locator,), claimed.locator)


def put_documents(
    tx: Transaction, repository: Repository, items: Sequence[tuple[UpstreamDocument, BlobInfo]], now_ms: int
) -> Stored:
    """Store several responses with blobs, in order."""
    stored = [put_document(tx, repository, document, blob, now_ms) for document, blob in items]
    return Stored(tuple(locator for each in stored for locator in each.surplus))


def renew_document(tx: Transaction, repository: Repository, document: UpstreamDocument, _now_ms: int) -> None:
    """Store that an upstream has confirmed an answer: its times, validators and trace."""
    tx.execute(
        """
        UPDATE upstream_document SET checked_at = ?, fresh_until = ?, etag = ?, last_modified = ?, trace = ?
        WHERE repository_id = ? AND key = ? AND fetched_at = ?
        """,
        (
            document.checked_ms,
            document.fresh_until_ms,
            document.etag,
            document.last_modified,
            dump(document.trace),
            repository.id,
            document.key,
            document.fetched_ms,
        ),
    )


def remove_document(tx: Transaction, repository: Repository, key: str) -> None:
    """Forget the answer to a question, if there is one."""
    tx.execute("DELETE FROM upstream_document WHERE repository_id = ? AND key = ?", (repository.id, key))


def remove_documents(tx: Transaction, repository: Repository, keys: Sequence[str], _now_ms: int) -> None:
    """Forget the answers to some questions."""
    for key in keys:
        remove_document(tx, repository, key)


def remove_unused_documents(tx: Transaction, repository: Repository, before_ms: int, limit: int, _now_ms: int) -> int:
    """
    Forget answers last confirmed before a time, about packages of which nothing else is kept. Returns how many.

    At most ``limit`` are removed. The others are needed to serve what is kept while an upstream fails.
    """
    return tx.execute(
        """
        DELETE FROM upstream_document WHERE id IN (
            SELECT d.id FROM upstream_document d
            WHERE d.repository_id = ? AND d.checked_at < ? AND d.package_key <> '' AND NOT EXISTS (
                SELECT 1 FROM package p WHERE p.repository_id = d.repository_id AND p.key = d.package_key
            )
            ORDER BY d.checked_at LIMIT ?
        )
        """,
        (repository.id, before_ms, limit),
    )
