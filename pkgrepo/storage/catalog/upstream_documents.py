"""
What proxy repositories keep of upstreams: documents, a row for each question; and the units of all that is kept.

A question is named by its key. Its present response is either normalised and kept as a blob, or short and kept in
``meta``, or that no upstream has it (an empty ``route``).

A unit is what is removed from a cache as a whole:

========  =========================================  ============================================================
kind      name                                       used last
========  =========================================  ============================================================
version   the key of a version of a package          when a file of it was fetched, or the end of the day (UTC)
                                                     of the last download of one
manifest  the digest of a manifest of an image       the same; pulls count as downloads
document  the key of a question to upstreams         when an upstream last confirmed the response, or the end of the day
                                                     of the last download of the package, which counts while
                                                     upstreams fail
========  =========================================  ============================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.rows import LAST_CHARACTER, column, dump, every, find, load, number, put, rows, scalar

Kind = Literal["version", "manifest", "document"]
Position = tuple[int, str, str, str]
START: Position = (-1, "", "", "")
LACKING: Final = "lacking"  # in ``meta``: what a response lists and cannot be had, identities by path
MOST_LACKING: Final = 1000  # of one response
_UNITS = """
    SELECT kind, package, name, files, size, fetched, used FROM (
        SELECT 'version' AS kind, f.package AS package, f.name AS name, COUNT(*) AS files,
            CAST(SUM(f.size) AS BIGINT) AS size, MAX(f.created_at) AS fetched,
            MAX(CASE WHEN f.created_at > f.downloaded THEN f.created_at ELSE f.downloaded END) AS used
        FROM (
            SELECT p.key AS package, v.key AS name, x.version_id, x.size, x.created_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(d.day) FROM download_count d WHERE d.kind = 'file' AND d.item_id = x.id), -1
            )) AS downloaded
            FROM package p JOIN version v ON v.package_id = p.id JOIN file x ON x.version_id = v.id
            WHERE p.repository_id = ? AND p.key BETWEEN ? AND ?
        ) f GROUP BY f.version_id, f.package, f.name
        UNION ALL
        SELECT 'manifest', m.package, m.digest, 1, m.size, m.created_at,
            CASE WHEN m.created_at > m.downloaded THEN m.created_at ELSE m.downloaded END
        FROM (
            SELECT p.key AS package, x.digest, x.size, x.created_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(d.day) FROM download_count d WHERE d.kind = 'manifest' AND d.item_id = x.id), -1
            )) AS downloaded
            FROM package p JOIN manifest x ON x.package_id = p.id
            WHERE p.repository_id = ? AND p.key BETWEEN ? AND ?
        ) m
        UNION ALL
        SELECT 'document', x.package_key, x.key, 1, x.size, x.checked_at,
            CASE WHEN x.checked_at > x.downloaded THEN x.checked_at ELSE x.downloaded END
        FROM (
            SELECT d.package_key, d.key, COALESCE(b.size, 0) AS size, d.checked_at, 86400000 * (1 + COALESCE(
                (SELECT MAX(c.day) FROM package p JOIN package_download c ON c.package_id = p.id
                 WHERE p.repository_id = d.repository_id AND p.key = d.package_key), -1
            )) AS downloaded
            FROM upstream_document d LEFT JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256
            WHERE d.repository_id = ? AND d.package_key BETWEEN ? AND ?
        ) x
    ) u
"""


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


@frozen
class CachedUnit:
    """
    One unit; ``size`` in bytes, of a manifest without its blobs. Times are in milliseconds since the epoch.

    ``fetched_ms`` is when its content was last fetched, of a document when it was last confirmed.
    """

    kind: Kind
    package_key: str
    name: str
    files: int
    size: int
    fetched_ms: int
    used_ms: int

    @property
    def position(self) -> Position:
        """The place in the order from those that were not used for longest."""
        return self.used_ms, self.kind, self.package_key, self.name


def units_of_package(r: Reader, repository_id: int, package_key: str) -> list[CachedUnit]:
    """All units of a package, those that were not used for longest first."""
    place = (repository_id, package_key, package_key)
    return every(r, _unit, f"{_UNITS} ORDER BY used, kind, name", place * 3)


def oldest_units(r: Reader, repository_id: int, *, after: Position = START, limit: int) -> list[CachedUnit]:
    """
    A page of the units of a repository, those that were not used for longest first.

    Reads what the repository keeps as a whole: call it on a reader thread.
    """
    place = (repository_id, "", LAST_CHARACTER)
    sql = f"{_UNITS} WHERE (used, kind, package, name) > (?, ?, ?, ?) ORDER BY used, kind, package, name LIMIT ?"
    return every(r, _unit, sql, (*place * 3, *after, limit))


def cached_packages(r: Reader, repository_id: int, *, after: str, limit: int) -> list[str]:
    """A page of the keys of packages of which anything is kept, after a key."""
    return column(
        r,
        """
        SELECT key FROM (
            SELECT key FROM package WHERE repository_id = ? AND key > ? ORDER BY key LIMIT ?
        ) p UNION SELECT package_key FROM (
            SELECT DISTINCT package_key FROM upstream_document
            WHERE repository_id = ? AND package_key > ? ORDER BY package_key LIMIT ?
        ) d ORDER BY 1 LIMIT ?
        """,
        (repository_id, after, limit, repository_id, after, limit, limit),
    )


def cached_size(r: Reader, repository_id: int) -> int:
    """The bytes of everything that a repository keeps. Reads all documents: call it on a reader thread."""
    files = number(r, "SELECT bytes_used FROM repository WHERE id = ?", (repository_id,))
    documents = number(
        r,
        """
        SELECT SUM(b.size) FROM upstream_document d JOIN blob b ON b.storage_id = d.storage_id AND b.sha256 = d.sha256
        WHERE d.repository_id = ?
        """,
        (repository_id,),
    )
    return files + documents


def sizes_with_blobs(
    r: Reader, storage_id: int, repository_id: int, package_key: str, digests: Sequence[str]
) -> list[tuple[int, int]]:
    """
    For manifests that are removed from an image in this order, the objects and bytes that the image then loses with it.

    These are the manifest, and the blobs that no remaining manifest refers to.
    """
    package_id = number(r, "SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, package_key))
    blobs: dict[str, tuple[bytes, int]] = {}
    for sha256, sha512, size in r.all(
        """
        SELECT x.sha256, x.sha512, b.size FROM package_blob x CROSS JOIN blob b
        WHERE x.package_id = ? AND b.storage_id = ? AND b.sha256 = x.sha256
        """,
        (package_id, storage_id),
    ):
        blobs[f"sha256:{sha256.hex()}"] = sha256, size
        if sha512 is not None:
            blobs[f"sha512:{sha512.hex()}"] = sha256, size
    sizes: dict[str, int] = dict(r.all("SELECT digest, size FROM manifest WHERE package_id = ?", (package_id,)))
    needed: dict[str, dict[bytes, int]] = {}
    for digest, named in r.all(
        "SELECT m.digest, f.digest FROM manifest m JOIN manifest_ref f ON f.manifest_id = m.id WHERE m.package_id = ?",
        (package_id,),
    ):
        if named in blobs:
            sha256, size = blobs[named]
            needed.setdefault(digest, {})[sha256] = size
    references = Counter(sha256 for each in needed.values() for sha256 in each)
    found = []
    for digest in digests:
        files, total = 1, sizes.get(digest, 0)
        for sha256, size in needed.pop(digest, {}).items():
            references[sha256] -= 1
            if not references[sha256]:
                files, total = files + 1, total + size
        found.append((files, total))
    return found


def _unit(row: Row) -> CachedUnit:
    kind, key, name, *counts = row
    return CachedUnit(kind, key, name, *map(int, counts))
