"""
Versions of a package: queries and write commands, for one version and for many. The format of the package defines their
order (``sort``).

Each statement for many versions handles some hundred rows. With one statement per row, a package with thousands of
versions would block other writers, and other threads of the process, for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, Fragment, Package, Version, VersionState
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.packages.files import UPSERT
from pkgrepo.storage.catalog.rows import batches, column, dump, every, find, number, placeholders, rows, scalar

MOST_LOOKED_AT: Final = 100
VERSION, to_version = rows(Version, "version")
_HIGHEST = "ORDER BY sort DESC, key DESC LIMIT 1"


_SORT_AND_KEY = "(CAST(? AS BLOB), ?)"  # the cast tells PostgreSQL the type of the placeholder


def find_version(r: Reader, package_id: int, key: str) -> Version | None:
    """The version with this key, or None."""
    return find(r, to_version, f"{VERSION} WHERE package_id = ? AND key = ?", (package_id, key))


def find_by_keys(r: Reader, repository_id: int, package_key: str, key: str) -> Version | None:
    """Return a version of a package, both by key; None if one of them is absent."""
    package = packages.find_package(r, repository_id, package_key)
    return None if package is None else find_version(r, package.id, key)


def list_versions(r: Reader, package_id: int) -> list[Version]:
    """All versions in the format's order; versions with the same ``sort`` are ordered by key."""
    return every(r, to_version, f"{VERSION} WHERE package_id = ? ORDER BY sort, key", (package_id,))


def published_until(r: Reader, repository_id: int, at_ms: int) -> set[tuple[str, str]]:
    """The versions of a repository that were published until a time, by the keys of package and version."""
    sql = """
        SELECT p.key, v.key FROM package p JOIN version v ON v.package_id = p.id
        WHERE p.repository_id = ? AND v.published_at <= ?
    """
    return {(package, version) for package, version in r.all(sql, (repository_id, at_ms))}


def versions_by_id(r: Reader, ids: Sequence[int]) -> list[Version]:
    """The versions with these ids, in the order of the ids."""
    found = {each.id: each for some in batches(ids) for each in _with_ids(r, some)}
    return [found[id_] for id_ in ids if id_ in found]


def newest_keys(r: Reader, package_id: int, state: VersionState, limit: int) -> list[str]:
    """The keys of the highest versions in a state, at most ``limit``, the highest first."""
    return column(
        r,
        "SELECT key FROM version WHERE package_id = ? AND state = ? ORDER BY sort DESC, key DESC LIMIT ?",
        (package_id, state, limit),
    )


def highest_live(r: Reader, package_id: int, known: Version | None) -> Version | None:
    """The highest live version of a package, which may be ``known``, as it is now; it is not read again then."""
    keys = newest_keys(r, package_id, VersionState.LIVE, 1)
    if known is not None and keys == [known.key]:
        return known
    return find_version(r, package_id, keys[0]) if keys else None


def first_publisher(r: Reader, package_id: int) -> str:
    """The name of the publisher of the version that was published first; empty if there is none."""
    return (
        scalar(r, "SELECT publisher FROM version WHERE package_id = ? ORDER BY published_at, id LIMIT 1", (package_id,))
        or ""
    )


def version_keys(r: Reader, package_id: int) -> list[str]:
    """The keys of all versions, in the format's order."""
    return column(r, "SELECT key FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def newest_live(
    r: Reader, package_id: int, is_prerelease: Callable[[str], bool], hidden: Container[str] = ()
) -> Version | None:
    """The highest live release, or else prerelease, whose text is not hidden, of the ``MOST_LOOKED_AT`` highest."""
    found: Version | None = None
    for key in newest_keys(r, package_id, VersionState.LIVE, MOST_LOOKED_AT):
        if found is None or not is_prerelease(key):
            version = find_version(r, package_id, key)
            if version is not None and version.text not in hidden:
                found = version
                if not is_prerelease(key):
                    break
    return found


def sorted_texts(r: Reader, package_id: int) -> list[tuple[bytes, str]]:
    """The versions' ``sort`` and text, in the format's order."""
    return r.all("SELECT sort, text FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def version_texts(r: Reader, package_id: int) -> list[str]:
    """The texts of all versions (as the publisher wrote them), in the format's order."""
    return column(r, "SELECT text FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def find_highest(r: Reader, package_id: int) -> Version | None:
    """The highest version that is not yanked, or if all are yanked the highest; None if there is no version."""
    found = find(r, to_version, f"{VERSION} WHERE package_id = ? AND state <> 'yanked' {_HIGHEST}", (package_id,))
    return found or find(r, to_version, f"{VERSION} WHERE package_id = ? {_HIGHEST}", (package_id,))


def count_versions(r: Reader, package_id: int) -> int:
    """The number of versions of a package."""
    return number(r, "SELECT COUNT(*) FROM version WHERE package_id = ?", (package_id,))


def texts_of_sort(r: Reader, package_id: int, sort: bytes) -> list[str]:
    """The texts of the versions with this ``sort``, which the format takes for equal."""
    return column(r, "SELECT text FROM version WHERE package_id = ? AND sort = ? ORDER BY key", (package_id, sort))


def set_state(tx: Transaction, version_id: int, state: VersionState, reason: str) -> None:
    """Yank, deprecate or restore a version; the reason is free text for users."""
    tx.send("UPDATE version SET state = ?, reason = ? WHERE id = ?", (state, reason, version_id))


def set_meta(tx: Transaction, version_id: int, meta: Mapping[str, Any]) -> None:
    """Replace the metadata that the format stores for a version."""
    tx.send("UPDATE version SET meta = ? WHERE id = ?", (dump(meta), version_id))


def set_published_at(tx: Transaction, version_id: int, published_ms: int) -> None:
    """Set the publication time of a version that was restored, to the one that it had before."""
    tx.send("UPDATE version SET published_at = ? WHERE id = ?", (published_ms, version_id))


def remove_version(tx: Transaction, version_id: int) -> None:
    """Remove a version with its files and tags."""
    tx.send("DELETE FROM version WHERE id = ?", (version_id,))


@frozen
class VersionRow:
    """A version without its ``meta``, publisher and time."""

    id: int
    key: str
    text: str
    sort: bytes
    state: VersionState
    reason: str


_ROW, _to_row = rows(VersionRow, "version")


def version_rows(r: Reader, package_id: int, keys: Iterable[str]) -> list[VersionRow]:
    """The versions with these keys that exist; in the format's order if the keys are in that order."""
    found: list[VersionRow] = []
    for some in batches(list(keys)):
        sql = f"{_ROW} WHERE package_id = ? AND key IN ({placeholders(len(some))}) ORDER BY sort, key"
        found += every(r, _to_row, sql, (package_id, *some))
    return found


def set_states(tx: Transaction, rows: Iterable[VersionRow]) -> None:
    """Write the state and the reason of each row to its version."""
    ids_by_state: dict[tuple[VersionState, str], list[int]] = {}
    for row in rows:
        ids_by_state.setdefault((row.state, row.reason), []).append(row.id)
    for (state, reason), ids in ids_by_state.items():
        for some in batches(ids):
            tx.send(
                f"UPDATE version SET state = ?, reason = ? WHERE id IN ({placeholders(len(some))})",
                (state, reason, *some),
            )


def paths_and_sizes(r: Reader, rows: Iterable[VersionRow]) -> dict[int, list[tuple[str, int]]]:
    """Path and size of each file, by version id and ordered by path; versions without files are left out."""
    found: dict[int, list[tuple[str, int]]] = {}
    for some in batches([row.id for row in rows]):
        sql = f"SELECT version_id, path, size FROM file WHERE version_id IN ({placeholders(len(some))}) ORDER BY path"
        for version_id, path, size in r.all(sql, some):
            found.setdefault(version_id, []).append((path, size))
    return found


def add_tombstones(tx: Transaction, package_key: str, rows: Iterable[VersionRow], actor: Actor, now_ms: int) -> None:
    """Add tombstones for the paths of all files of these versions."""
    for some in batches([row.id for row in rows]):
        tx.send(
            f"""
            INSERT INTO tombstone (repository_id, path, package_key, sha256, deleted_at, actor)
            SELECT repository_id, path, ?, sha256, ?, ? FROM file WHERE version_id IN ({placeholders(len(some))})
            {UPSERT}
            """,
            (package_key, now_ms, actor.name, *some),
        )


def remove_versions(tx: Transaction, rows: Iterable[VersionRow]) -> None:
    """Remove versions with their files and tags. Their fragments are removed separately, by key."""
    for some in batches([row.id for row in rows]):
        tx.send(f"DELETE FROM version WHERE id IN ({placeholders(len(some))})", some)


def find_fragments(r: Reader, package_id: int, kind: str, rows: Iterable[VersionRow]) -> dict[str, bytes]:
    """The fragments of one kind of these versions, by version key."""
    found: dict[str, bytes] = {}
    for some in batches(list(rows)):
        found |= r.all(
            f"""
            SELECT key, body FROM fragment
            WHERE package_id = ? AND kind = ? AND (sort, key) IN (VALUES {placeholders(len(some), _SORT_AND_KEY)})
            """,
            (package_id, kind, *_sort_and_key(some)),
        )
    return found


def put_fragments(tx: Transaction, package_id: int, kind: str, bodies: Iterable[tuple[VersionRow, bytes]]) -> None:
    """Upsert the fragment of one kind of each version."""
    new = [(kind, Fragment(row.sort, row.key, body)) for row, body in bodies]
    index_documents.put_fragments(tx, package_id, new)


def remove_fragments(tx: Transaction, package_id: int, kind: str, rows: Iterable[VersionRow]) -> None:
    """Remove the fragments of one kind of these versions, where they exist."""
    for some in batches(list(rows)):
        tx.send(
            f"""
            DELETE FROM fragment
            WHERE package_id = ? AND kind = ? AND (sort, key) IN (VALUES {placeholders(len(some), _SORT_AND_KEY)})
            """,
            (package_id, kind, *_sort_and_key(some)),
        )


def append_events(
    tx: Transaction,
    package: Package,
    entries: Iterable[tuple[VersionRow, str, Mapping[str, Any]]],
    actor: Actor,
    now_ms: int,
) -> None:
    """Append one event for each entry (version, event kind, data); the version's text is added to the data."""
    new = (
        events.NewEvent(package.repository_id, package.id, package.key, row.key, kind, {"version": row.text, **data})
        for row, kind, data in entries
    )
    events.append_events(tx, new, actor, now_ms)


def _with_ids(r: Reader, some: Sequence[int]) -> list[Version]:
    return every(r, to_version, f"{VERSION} WHERE id IN ({placeholders(len(some))})", some)


def _sort_and_key(rows: Iterable[VersionRow]) -> Iterator[Value]:
    for row in rows:
        yield row.sort
        yield row.key
