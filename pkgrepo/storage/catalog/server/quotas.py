"""
Quotas: limits of the server, of storages, repositories, projects and users, and what is used of them.

What a repository uses is counted in its row by every change of its content. A storage uses what its repositories use
together, and the server what its storages use; removed repositories count until they are purged. What projects and
users use is added up when it is asked for, see L{pkgrepo.repositories.publish.owner_quotas}. The limits are checked in
the transaction of the change, and writers are one at a time, so that parallel publishes cannot exceed them.

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

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from attrs import evolve, fields_dict, frozen

from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM, Actor, RepositoryType
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import (
    batches,
    column,
    every,
    exists,
    find,
    number,
    only_row,
    placeholders,
    put,
    rows,
    scalar,
)

from .settings import bump_config_serial

WARNED_AT: Final = 0.8  # of a limit
WARNING: Final = "quota.warning"  # the kind of the event; its data: kind and name of the subject, what, used, limit
EXCEEDED: Final = "quota.exceeded"  # the kind of the event of a refusal; its data: name, what, used, limit


class QuotaKind(StrEnum):
    """What a quota is of."""

    SERVER = "server"
    STORAGE = "storage"
    REPOSITORY = "repository"
    PROJECT = "project"
    USER = "user"


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

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.bytes + other.bytes, self.packages + other.packages, self.versions + other.versions)


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
COUNTED_IN: Final = {
    QuotaKind.SERVER: "? = 0",
    QuotaKind.STORAGE: "storage_id = ?",
    QuotaKind.REPOSITORY: "? IN (id, CASE WHEN stage IS NOT NULL AND deleted_at IS NULL THEN parent_id END)",
}


def any_limits(r: Reader) -> bool:
    """Whether there is any quota."""
    return exists(r, "SELECT 1 FROM quota LIMIT 1")


def kinds_of_limits(r: Reader) -> set[str]:
    """Of what there are quotas."""
    return set(column(r, "SELECT DISTINCT kind FROM quota"))


def limits_of(r: Reader, kind: QuotaKind, subject_id: int) -> Limits:
    """The limits of a subject; 0 stands for the server."""
    return find(r, _limits, f"{_LIMITS} WHERE kind = ? AND subject_id = ?", (kind, subject_id)) or Limits()


def usage_of(r: Reader, kind: QuotaKind, subject_id: int) -> Usage:
    """What the server (0), a storage or a repository uses; of a user see L{usage_of_user}."""
    return Usage(*map(int, only_row(r, f"{_USED} FROM repository WHERE {COUNTED_IN[kind]}", (subject_id,))))


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
    """Remove the limits of a subject that is removed."""
    tx.execute("DELETE FROM quota WHERE kind = ? AND subject_id = ?", (kind, subject_id))


def quotas_of_repository(r: Reader, repository_id: int) -> list[tuple[Quota, Usage]]:
    """The quotas that bound what a repository stores, with what is used of each."""
    row = r.one(f"SELECT {_OWNER}, storage_id FROM repository WHERE id = ?", (repository_id,))
    owner_id, storage_id = row or (0, 0)
    return [(each, usage_of(r, each.kind, each.subject_id)) for each in _quotas(r, owner_id, storage_id)]


def quotas_of_kind(r: Reader, kind: QuotaKind) -> list[Quota]:
    """The quotas of all subjects of a kind that have one."""
    return every(r, _quota, f"{_QUOTA} WHERE kind = ? ORDER BY subject_id", (kind,))


def counted_quotas(r: Reader) -> list[tuple[Quota, str, Usage]]:
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
        name = subject_name(tx, quota)
        check_limits(tx, owner_id, quota, name, used, added, now_ms, refuses=type_ != RepositoryType.PROXY)


def check_limits(
    tx: Transaction,
    repository_id: int,
    quota: Quota,
    name: str,
    used: Usage,
    added: Usage,
    now_ms: int,
    *,
    refuses: bool = True,
) -> None:
    """
    Check one quota, of which ``used`` includes what was ``added``; a warning is an event of the repository.

    :raises QuotaExceeded: a limit is exceeded, unless it only counts
    """
    for what in fields_dict(Usage):
        limit, grown, now = getattr(quota, what), getattr(added, what), getattr(used, what)
        if limit is None or grown <= 0:
            continue
        if refuses and now > limit:
            raise QuotaExceeded(name, what, limit, now - grown, grown)
        if now - grown < limit * WARNED_AT <= now:
            data = {"kind": quota.kind, "name": name, "what": what, "used": now, "limit": limit}
            append_repository_event(tx, repository_id, WARNING, data, SYSTEM, now_ms)


def record_refusal(tx: Transaction, repository_id: int, error: QuotaExceeded, actor: Actor, now_ms: int) -> None:
    """Record by an event that an upload to a repository was refused."""
    data = {"name": error.subject, "what": error.what, "used": error.used, "limit": error.limit}
    append_repository_event(tx, repository_id, EXCEEDED, data, actor, now_ms)


def usage_of_packages(r: Reader, repository_id: int, keys: Sequence[str]) -> Usage:
    """What packages of a repository use. Their bytes include what is in the trash of them."""
    total = Usage()
    for some in batches(keys):
        of = f"p.repository_id = ? AND p.key IN ({placeholders(len(some))})"
        given: list[Value] = [repository_id, *some]
        counts = r.one(
            f"""
            SELECT COUNT(*), COALESCE(SUM((SELECT COUNT(*) FROM version v WHERE v.package_id = p.id)
                                          + (SELECT COUNT(*) FROM manifest m WHERE m.package_id = p.id)), 0)
            FROM package p WHERE {of}
            """,
            given,
        )
        packages, versions = counts or (0, 0)
        size = number(r, f"SELECT SUM(f.size) FROM file f JOIN package p ON p.id = f.package_id WHERE {of}", given)
        size += number(r, f"SELECT SUM(m.size) FROM manifest m JOIN package p ON p.id = m.package_id WHERE {of}", given)
        size += number(
            r,
            f"""
            SELECT SUM((SELECT b.size FROM blob b WHERE b.storage_id = r.storage_id AND b.sha256 = x.sha256))
            FROM package_blob x JOIN package p ON p.id = x.package_id JOIN repository r ON r.id = p.repository_id
            WHERE {of}
            """,
            given,
        )
        sql = f"SELECT SUM(size) FROM trash WHERE repository_id = ? AND package_key IN ({placeholders(len(some))})"
        size += number(r, sql, given)
        total = total + Usage(size, int(packages), int(versions))
    return total


_STANDS: Final = (
    "r.type = 'Hosted' AND r.deleted_at IS NULL AND (r.parent_id IS NULL OR (r.stage IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM repository of WHERE of.id = r.parent_id AND of.stage IS NOT NULL)))"
)


def usage_of_user(r: Reader, user_id: int) -> Usage:
    """
    What a user has published, and what stands: files of versions, manifests, and layers added to images.

    It is counted in hosted repositories, for the one who published the version or manifest, or added the layer first.
    What is staged counts as well; what is in the trash, and what is made of other packages, does not.
    """
    join = "JOIN package p ON p.id = x.package_id JOIN repository r ON r.id = p.repository_id"
    where = f"WHERE x.publisher_id = ? AND {_STANDS}"
    counted = "SELECT COUNT(*), COUNT(DISTINCT x.package_id)"
    versions, packages = only_row(r, f"{counted} FROM version x {join} {where}", (user_id,))
    manifests, images = only_row(r, f"{counted} FROM manifest x {join} {where}", (user_id,))
    size = number(r, f"SELECT SUM(f.size) FROM version x JOIN file f ON f.version_id = x.id {join} {where}", (user_id,))
    size += number(r, f"SELECT SUM(x.size) FROM manifest x {join} {where}", (user_id,))
    blob = "SELECT b.size FROM blob b WHERE b.storage_id = r.storage_id AND b.sha256 = x.sha256"
    size += number(r, f"SELECT SUM(({blob})) FROM package_blob x {join} {where}", (user_id,))
    return Usage(size, packages + images, versions + manifests)


def versions_by_user(r: Reader, repository_id: int, package_key: str, user_id: int) -> int:
    """How many versions and manifests of a package a user has published."""
    sql = """
        SELECT (SELECT COUNT(*) FROM version v WHERE v.package_id = p.id AND v.publisher_id = ?)
               + (SELECT COUNT(*) FROM manifest m WHERE m.package_id = p.id AND m.publisher_id = ?)
        FROM package p WHERE p.repository_id = ? AND p.key = ?
    """
    return number(r, sql, (user_id, user_id, repository_id, package_key))


def nearly_used(limits: Limits, used: Usage) -> list[str]:
    """The limits of which 80 % or more are used."""
    return [
        what
        for what in fields_dict(Usage)
        if (limit := getattr(limits, what)) is not None and getattr(used, what) >= limit * WARNED_AT
    ]


def _quotas(r: Reader, repository_id: int, storage_id: int) -> Iterable[Quota]:
    """The quotas of a repository, the narrowest first."""
    found = r.all(
        f"{_QUOTA} WHERE (kind, subject_id) IN (VALUES ('repository', ?), ('storage', ?), ('server', 0))",
        (repository_id, storage_id),
    )
    return sorted(map(_quota, found), key=lambda each: list(QuotaKind).index(each.kind), reverse=True)
