"""
Quotas of the server, of storages and of repositories: limits, and what is used of them.

What a repository uses is counted in its row by every change of its content. A storage uses what its repositories use
together, and the server what its storages use; removed repositories count until they are purged. The limits are
checked in the transaction of the change, and writers are one at a time, so that parallel publishes cannot exceed them.

What is staged counts as used by the repository that it is for.

===========  ===========================================================================================
limit        counts
===========  ===========================================================================================
bytes        the sizes of all files, manifests and layers, also of those that are stored only once
packages     packages, images
versions     versions of packages; of images, manifests
file_size    the bytes of a single file; it is checked while a file is received
===========  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from attrs import evolve, fields_dict, frozen

from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM, Actor, RepositoryType
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import batches, every, find, number, only_row, placeholders, put, rows, scalar

from .settings import bump_config_serial

WARNED_AT: Final = 0.8  # of a limit
WARNING: Final = "quota.warning"  # the kind of the event; its data: kind and name of the subject, what, used, limit
EXCEEDED: Final = "quota.exceeded"  # the kind of the event of a refusal; its data: name, what, used, limit


class QuotaKind(StrEnum):
    """What a quota is of."""

    SERVER = "server"
    STORAGE = "storage"
    REPOSITORY = "repository"


@frozen
class Limits:
    """The limits of a quota; None: there is no limit."""

    bytes: int | None = None
    packages: int | None = None
    versions: int | None = None
    file_size: int | None = None


@frozen
class Usage:
    """What is used, or what a change adds."""

    bytes: int = 0
    packages: int = 0
    versions: int = 0


@frozen
class Quota:
    """The limits of one subject, whose catalog key is ``subject_id`` (0: the server)."""

    kind: QuotaKind
    subject_id: int
    bytes: int | None
    packages: int | None
    versions: int | None
    file_size: int | None

    @property
    def limits(self) -> Limits:
        """The limits without the subject."""
        return Limits(self.bytes, self.packages, self.versions, self.file_size)


_QUOTA, _quota = rows(Quota, "quota")
_LIMITS, _limits = rows(Limits, "quota")
_USED: Final = "SELECT COALESCE(SUM(bytes_used), 0), COALESCE(SUM(package_count), 0), COALESCE(SUM(version_count), 0)"
_OWNER: Final = "CASE WHEN stage IS NULL THEN id ELSE parent_id END"  # of which the quota counts
_OF: Final = {
    QuotaKind.SERVER: "? = 0",
    QuotaKind.STORAGE: "storage_id = ?",
    QuotaKind.REPOSITORY: "? IN (id, CASE WHEN stage IS NOT NULL AND deleted_at IS NULL THEN parent_id END)",
}


def limits_of(r: Reader, kind: QuotaKind, subject_id: int) -> Limits:
    """The limits of the server (0), a storage or a repository."""
    return find(r, _limits, f"{_LIMITS} WHERE kind = ? AND subject_id = ?", (kind, subject_id)) or Limits()


def usage_of(r: Reader, kind: QuotaKind, subject_id: int) -> Usage:
    """What the server (0), a storage or a repository uses."""
    return Usage(*map(int, only_row(r, f"{_USED} FROM repository WHERE {_OF[kind]}", (subject_id,))))


def change_limits(tx: Transaction, kind: QuotaKind, subject_id: int, changes: Mapping[str, int | None]) -> None:
    """Change the given limits. Usage may exceed them, which refuses only what adds to it."""
    limits = evolve(limits_of(tx, kind, subject_id), **changes)
    if limits == Limits():
        tx.execute("DELETE FROM quota WHERE kind = ? AND subject_id = ?", (kind, subject_id))
    else:
        put(
            tx,
            "quota",
            "kind, subject_id",
            kind=kind,
            subject_id=subject_id,
            bytes=limits.bytes,
            packages=limits.packages,
            versions=limits.versions,
            file_size=limits.file_size,
        )
    bump_config_serial(tx)


def remove_limits(tx: Transaction, kind: QuotaKind, subject_id: int) -> None:
    """Remove the limits of a storage or repository that is removed."""
    tx.execute("DELETE FROM quota WHERE kind = ? AND subject_id = ?", (kind, subject_id))


def quotas_of_repository(r: Reader, repository_id: int) -> list[tuple[Quota, Usage]]:
    """The quotas that bound what a repository stores, with what is used of each."""
    row = r.one(f"SELECT {_OWNER}, storage_id FROM repository WHERE id = ?", (repository_id,))
    owner_id, storage_id = row or (0, 0)
    return [(each, usage_of(r, each.kind, each.subject_id)) for each in _quotas(r, owner_id, storage_id)]


def all_quotas(r: Reader) -> list[tuple[Quota, str, Usage]]:
    """The quotas of the server and of every storage, and those of repositories, with their names and what is used."""
    found = {(each.kind, each.subject_id): each for each in every(r, _quota, _QUOTA)}
    subjects = [(QuotaKind.SERVER, 0, "")]
    subjects += [(QuotaKind.STORAGE, key, name) for key, name in r.all("SELECT id, name FROM storage ORDER BY key")]
    sql = """
        SELECT r.id, s.name || '/' || r.name FROM repository r JOIN storage s ON s.id = r.storage_id
        JOIN quota q ON q.kind = 'repository' AND q.subject_id = r.id WHERE r.deleted_at IS NULL ORDER BY s.key, r.key
        """
    subjects += [(QuotaKind.REPOSITORY, key, name) for key, name in r.all(sql)]
    return [
        (found.get((kind, key)) or Quota(kind, key, None, None, None, None), name, usage_of(r, kind, key))
        for kind, key, name in subjects
    ]


def subject_name(r: Reader, quota: Quota) -> str:
    """The subject of a quota in a sentence."""
    if quota.kind is QuotaKind.SERVER:
        return "this server"
    if quota.kind is QuotaKind.STORAGE:
        return f"storage {scalar(r, 'SELECT name FROM storage WHERE id = ?', (quota.subject_id,))}"
    sql = "SELECT s.name || '/' || r.name FROM repository r JOIN storage s ON s.id = r.storage_id WHERE r.id = ?"
    return f"repository {scalar(r, sql, (quota.subject_id,))}"


def check_growth(tx: Transaction, repository_id: int, added: Usage, now_ms: int) -> None:
    """
    Check what a change has added to a repository, after it was counted, and warn at 80 % of a limit by an event.

    What proxies keep is counted and not refused: they serve clients who wait, and their ``cache.max_bytes`` bounds it.

    :raises QuotaExceeded: a limit is exceeded, so that the transaction must not be committed
    """
    sql = f"SELECT {_OWNER}, storage_id, type FROM repository WHERE id = ?"
    owner_id, storage_id, type_ = only_row(tx, sql, (repository_id,))
    for quota in _quotas(tx, owner_id, storage_id):
        used = usage_of(tx, quota.kind, quota.subject_id)
        for what, limit in _limited(quota):
            grown, now = getattr(added, what), getattr(used, what)
            if grown <= 0:
                continue
            if now > limit and type_ != RepositoryType.PROXY:
                raise QuotaExceeded(subject_name(tx, quota), what, limit, now - grown, grown)
            if now - grown < limit * WARNED_AT <= now:
                name = subject_name(tx, quota)
                data = {"kind": quota.kind, "name": name, "what": what, "used": now, "limit": limit}
                append_repository_event(tx, owner_id, WARNING, data, SYSTEM, now_ms)


def record_refusal(tx: Transaction, repository_id: int, error: QuotaExceeded, actor: Actor, now_ms: int) -> None:
    """Record by an event that an upload to a repository was refused."""
    data = {"name": error.subject, "what": error.what, "used": error.used, "limit": error.limit}
    append_repository_event(tx, repository_id, EXCEEDED, data, actor, now_ms)


def bytes_of_packages(r: Reader, repository_id: int, keys: Sequence[str]) -> int:
    """The bytes of packages of a repository, and of what is in the trash of them."""
    total = 0
    for some in batches(keys):
        of = f"p.repository_id = ? AND p.key IN ({placeholders(len(some))})"
        given: list[Value] = [repository_id, *some]
        total += number(r, f"SELECT SUM(f.size) FROM file f JOIN package p ON p.id = f.package_id WHERE {of}", given)
        total += number(
            r, f"SELECT SUM(m.size) FROM manifest m JOIN package p ON p.id = m.package_id WHERE {of}", given
        )
        total += number(
            r,
            f"""
            SELECT SUM((SELECT b.size FROM blob b WHERE b.storage_id = r.storage_id AND b.sha256 = x.sha256))
            FROM package_blob x JOIN package p ON p.id = x.package_id JOIN repository r ON r.id = p.repository_id
            WHERE {of}
            """,
            given,
        )
        sql = f"SELECT SUM(size) FROM trash WHERE repository_id = ? AND package_key IN ({placeholders(len(some))})"
        total += number(r, sql, given)
    return total


def nearly_used(limits: Limits, used: Usage) -> list[str]:
    """The limits of which 80 % or more are used."""
    return [
        what
        for what in fields_dict(Usage)
        if (limit := getattr(limits, what)) is not None and getattr(used, what) >= limit * WARNED_AT
    ]


def _limited(quota: Quota) -> Iterator[tuple[str, int]]:
    for what in fields_dict(Usage):
        limit = getattr(quota, what)
        if limit is not None:
            yield what, limit


def _quotas(r: Reader, repository_id: int, storage_id: int) -> Iterable[Quota]:
    """The quotas of a repository, the narrowest first."""
    found = r.all(
        f"{_QUOTA} WHERE (kind, subject_id) IN (VALUES ('repository', ?), ('storage', ?), ('server', 0))",
        (repository_id, storage_id),
    )
    return sorted(map(_quota, found), key=lambda each: list(QuotaKind).index(each.kind), reverse=True)
