"""
The documents that proxy repositories keep of upstreams, a row for each question.

A question is named by its key. Its present response is either normalised and kept as a blob, or short and kept in
``meta``, or that no upstream has it (an empty ``route``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.rows import dump, every, find, load, number, put, rows, scalar

LACKING: Final = "lacking"  # in ``meta``: what a response lists and cannot be had, identities by path
MOST_LACKING: Final = 1000  # of one response


@frozen(kw_only=True)
class UpstreamDocument:
    """
    The present response to one question. Times are in milliseconds since the epoch.

    ``route`` is the name of the route that had it, empty if no route has it. ``source`` is the sha256 (hex) of the
    response as it was sent. ``locator``, ``size`` and ``sha256`` are those of the blob of the normalised response, and
    empty without one. ``fetched_ms`` grows with each change of the content.
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
    """What is kept of a route (empty: that no route has something): responses, their bytes, the last confirmation."""

    route: str
    count: int
    size: int
    checked_ms: int


@frozen
class Stored:
    """
    The result of storing a response: ``surplus`` are locators of copies that the catalog does not use.

    ``locator`` is that of its blob; empty without one, and for several responses.
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
    """The present response to a question, or None if it was not asked."""
    return find(r, _document, f"{_SELECT} WHERE d.repository_id = ? AND d.key = ?", (repository_id, key))


def fetched_at(r: Reader, repository_id: int, key: str) -> int | None:
    """When the present response was fetched (ms); another value means another content. None if there is no response."""
    sql = "SELECT fetched_at FROM upstream_document WHERE repository_id = ? AND key = ?"
    return scalar(r, sql, (repository_id, key))


def latest_fetched_at(r: Reader, repository_id: int, keys: tuple[str, str]) -> int:
    """When the newest of two responses that upstreams have was fetched (ms); 0 if there is none."""
    sql = "SELECT MAX(fetched_at) FROM upstream_document WHERE repository_id = ? AND key IN (?, ?) AND route <> ''"
    return number(r, sql, (repository_id, *keys))


def documents_of_package(r: Reader, repository_id: int, package_key: str) -> list[UpstreamDocument]:
    """All responses about a package, by key."""
    sql = f"{_SELECT} WHERE d.repository_id = ? AND d.package_key = ? ORDER BY d.key"
    return every(r, _document, sql, (repository_id, package_key))


def list_documents(r: Reader, repository_id: int, *, after: str = "", limit: int = 100) -> list[UpstreamDocument]:
    """A page of responses after a key, ordered by key."""
    sql = f"{_SELECT} WHERE d.repository_id = ? AND d.key > ? ORDER BY d.key LIMIT ?"
    return every(r, _document, sql, (repository_id, after, limit))


def document_figures(r: Reader, repository_id: int) -> list[DocumentFigures]:
    """What is kept of each route. Reads all responses of the repository: call it on a reader thread."""
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
    """Store the response to a question in place of the one before; ``blob`` is the normalised one, which is durable."""
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
        meta=document.meta,
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
    """Store what an upstream said of a response that stays: its times, validators, ``meta`` and trace."""
    tx.execute(
        """
        UPDATE upstream_document
        SET checked_at = ?, fresh_until = ?, etag = ?, last_modified = ?, meta = ?, trace = ?
        WHERE repository_id = ? AND key = ? AND fetched_at = ?
        """,
        (
            document.checked_ms,
            document.fresh_until_ms,
            document.etag,
            document.last_modified,
            dump(document.meta),
            dump(document.trace),
            repository.id,
            document.key,
            document.fetched_ms,
        ),
    )


def note_lacking(tx: Transaction, repository: Repository, key: str, lacking: Mapping[str, str], now_ms: int) -> bool:
    """
    Note that files which a response lists cannot be had: their identities by path. It is another content from then on.

    Returns False if that is noted already, or the response is not there any more.
    """
    document = find_document(tx, repository.id, key)
    if document is None or not document.found:
        return False
    noted = {**document.meta.get(LACKING, {}), **lacking}
    if noted == document.meta.get(LACKING):
        return False
    noted = dict(list(noted.items())[-MOST_LACKING:])
    tx.execute(
        "UPDATE upstream_document SET meta = ?, fetched_at = ? WHERE repository_id = ? AND key = ?",
        (dump({**document.meta, LACKING: noted}), max(now_ms, document.fetched_ms + 1), repository.id, key),
    )
    return True


def remove_document(tx: Transaction, repository: Repository, key: str) -> None:
    """Forget the response to a question, if there is one."""
    tx.execute("DELETE FROM upstream_document WHERE repository_id = ? AND key = ?", (repository.id, key))


def remove_earlier(tx: Transaction, repository: Repository, key: str, before_ms: int | None, _now_ms: int) -> bool:
    """
    Forget the response to a question if it was confirmed before a time (None: always). Returns False if it was not.

    Another process may have stored it since it was read.
    """
    if not _is_earlier(tx, repository, key, before_ms):
        return False
    remove_document(tx, repository, key)
    return True


def put_absence(
    tx: Transaction, repository: Repository, document: UpstreamDocument, before_ms: int, now_ms: int
) -> bool:
    """The same, and store in its place that no upstream has it."""
    if not _is_earlier(tx, repository, document.key, before_ms):
        return False
    put_document(tx, repository, document, None, now_ms)
    return True


def _is_earlier(r: Reader, repository: Repository, key: str, before_ms: int | None) -> bool:
    if before_ms is None:
        return True
    sql = "SELECT 1 FROM upstream_document WHERE repository_id = ? AND key = ? AND checked_at >= ?"
    return scalar(r, sql, (repository.id, key, before_ms)) is None


def remove_documents(tx: Transaction, repository: Repository, keys: Sequence[str], _now_ms: int) -> None:
    """Forget the responses to some questions."""
    for key in keys:
        remove_document(tx, repository, key)


def remove_unused_documents(tx: Transaction, repository: Repository, before_ms: int, limit: int, _now_ms: int) -> int:
    """
    Forget responses last confirmed before a time, about packages of which nothing else is kept. Returns how many.

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
