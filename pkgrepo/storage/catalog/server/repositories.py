"""
Repositories, and the serials that show changes to caches.

================  =========================================================  ==============================
serial            increases with                                             read by
================  =========================================================  ==============================
config serial     any change of a storage or repository                      the registry of every process
``serial``        any change of a repository's content                       documents, caches of responses
``names_serial``  a package that is added, removed or renamed                lists of all packages
================  =========================================================  ==============================
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from attrs import evolve

from pkgrepo.errors import AlreadyExists, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM, Actor, Repository, RepositoryType, Visibility
from pkgrepo.storage.catalog.packages.events import REPOSITORY_REMOVED, REPOSITORY_RESTORED, append_event
from pkgrepo.storage.catalog.rows import column, insert, number, rows, scalar, update

from .quotas import Usage, any_limits, check_growth
from .settings import CONFIG_SERIAL, bump_config_serial, get

# The last column is the id of the parent.
_SELECT, _repository = rows(
    Repository,
    "repository r JOIN storage s ON s.id = r.storage_id",
    of="r",
    storage_name="s.name",
    parent=("r.parent_id", lambda _: None),
    view=("r.parent_id", lambda _: None),
)
_REPOSITORY = f"{_SELECT} WHERE r.deleted_at IS NULL"


class RepositoryChanges(TypedDict, total=False):
    """What ``update_repository`` can change."""

    name: str
    type: RepositoryType
    visibility: Visibility
    active: bool
    description: str
    config: Mapping[str, Any]
    settings: Mapping[str, Any]


def repository_key(name: str) -> str:
    """The key of a repository name: two repositories of a storage cannot have the same key."""
    return name.casefold()


def config_serial(r: Reader) -> int:
    """A number that increases with every change of storages and repositories."""
    return int(get(r, CONFIG_SERIAL) or 0)


def all_repositories(r: Reader) -> list[Repository]:
    """All repositories, ordered by path."""
    return _read_all(r, f"{_REPOSITORY} ORDER BY s.key, r.key")


def repositories_of_type(r: Reader, type: RepositoryType) -> list[Repository]:
    """All repositories of a type, ordered by path."""
    return _read_all(r, f"{_REPOSITORY} AND r.type = ? ORDER BY s.key, r.key", (type,))


def companions_of(r: Reader, parent_id: int) -> list[Repository]:
    """The companion repositories of a repository, and those of its stages, ordered by path."""
    return _read_all(r, f"{_REPOSITORY} AND r.parent_id = ? ORDER BY r.key", (parent_id,))


def find_repository(r: Reader, uid: str) -> Repository | None:
    """The repository with this public id, or None."""
    return _read_one(r, f"{_REPOSITORY} AND r.uid = ?", (uid,))


def find_by_path(r: Reader, storage_key: str, key: str) -> Repository | None:
    """The repository with this key in the storage with that key, or None."""
    return _read_one(r, f"{_REPOSITORY} AND s.key = ? AND r.key = ?", (storage_key, key))


def get_repository(r: Reader, repository_id: int) -> Repository:
    """
    The repository with this catalog key.

    :raises NotFound: there is none
    """
    return existing(_read_one(r, f"{_REPOSITORY} AND r.id = ?", (repository_id,)), "repository", str(repository_id))


def get_state(r: Reader, repository_id: int) -> tuple[RepositoryType, bool]:
    """
    The type of a repository, and whether it is active; a companion is if its parent is.

    :raises NotFound: there is no such repository
    """
    sql = "SELECT type, active, parent_id FROM repository WHERE id = ? AND deleted_at IS NULL"
    type_, active, parent_id = existing(r.one(sql, (repository_id,)), "repository", str(repository_id))
    return RepositoryType(type_), bool(active) if parent_id is None else get_state(r, parent_id)[1]


def add_repository(
    tx: Transaction,
    *,
    storage_id: int,
    format: str,
    now_ms: int,
    created_ms: int | None = None,
    key: str | None = None,
    uid: str | None = None,
    parent_id: int | None = None,
    stage: str | None = None,
    **values: Unpack[RepositoryChanges],
) -> Repository:
    """
    Add a repository; a name, a type, a visibility and a configuration are required. ``key`` is derived from the name
    unless given.

    ``uid`` and ``created_ms`` are given to restore a repository that existed before; ``parent_id`` for a companion, and
    for one of a ``stage``.

    :raises AlreadyExists: a repository of the storage has this name (case does not matter)
    """
    name = values["name"]
    key = repository_key(name) if key is None else key
    _check_name(tx, storage_id, name, key, besides=0)
    repository_id = insert(
        tx,
        "repository",
        uid=uid or str(uuid.uuid4()),
        storage_id=storage_id,
        key=key,
        format=format,
        created_at=now_ms if created_ms is None else created_ms,
        updated_at=now_ms,
        parent_id=parent_id,
        stage=stage,
        **values,
    )
    bump_config_serial(tx)
    return get_repository(tx, repository_id)


def update_repository(
    tx: Transaction, repository_id: int, *, now_ms: int, **changes: Unpack[RepositoryChanges]
) -> Repository:
    """
    Change the given fields. Also increments the serial of the repository and its companions, since responses may depend
    on the fields. The companions are renamed with it.

    :raises NotFound: no such repository; :raises AlreadyExists: the new name is taken
    """
    before = get_repository(tx, repository_id)
    after = evolve(before, **changes)
    key = repository_key(after.name)
    if after.name != before.name:
        _check_name(tx, after.storage_id, after.name, key, besides=repository_id)
    update(tx, "repository", repository_id, **{**changes, "key": key, "updated_at": now_ms})
    bump_serial(tx, repository_id)
    for each in companions_of(tx, repository_id):
        for below in (each, *companions_of(tx, each.id)):  # those of a stage have companions of their own
            name = after.name + below.name.removeprefix(before.name)
            tx.execute(
                "UPDATE repository SET name = ?, key = ?, serial = serial + 1 WHERE id = ?",
                (name, repository_key(name), below.id),
            )
    bump_config_serial(tx)
    return get_repository(tx, repository_id)


def remove_repository(
    tx: Transaction, repository_id: int, *, now_ms: int, purge: bool = False, actor: Actor = SYSTEM
) -> None:
    """
    Mark a repository and its companions as removed; their names can be used again at once.

    Its content stays until it is purged (see L{purge}): after a retention time, or as soon as possible with ``purge``.
    An event is added, which stays after the purge.

    :raises NotFound: no such repository
    """
    removed = get_repository(tx, repository_id)
    about = {"repository": removed.path, "format": removed.format}
    if removed.parent is not None or removed.stage is not None:
        about["part"] = "of another"  # no program beside this server knows of it
    for each in companions_of(tx, repository_id):
        remove_repository(tx, each.id, now_ms=now_ms, purge=purge, actor=actor)
    tx.execute(
        "UPDATE repository SET deleted_at = ?, purge = ? WHERE id = ?",
        (now_ms, int(purge), repository_id),
    )
    append_event(
        tx,
        repository_id=repository_id,
        package_id=None,
        package_key="",
        version_key="",
        kind=REPOSITORY_REMOVED,
        data={"uid": removed.uid, "storage_id": removed.storage_id, "name": removed.name, **about},
        actor=actor,
        now_ms=now_ms,
    )
    bump_config_serial(tx)


def restore_repository(tx: Transaction, uid: str, actor: Actor, now_ms: int) -> Repository:
    """
    Restore a removed repository with its content and its companions, as long as it is not purged.

    :raises NotFound: there is none that can be restored; :raises AlreadyExists: another one has its name now
    """
    row = existing(
        tx.one(
            """
            SELECT id, storage_id, name, key, deleted_at FROM repository
            WHERE uid = ? AND deleted_at IS NOT NULL AND purge = 0 AND parent_id IS NULL
            """,
            (uid,),
        ),
        "removed repository",
        uid,
    )
    id_, storage_id, name, key, deleted_ms = row
    _check_name(tx, storage_id, name, key, besides=id_)
    ids = [
        id_,
        *column(
            tx,
            "SELECT id FROM repository WHERE (parent_id = ? OR parent_id IN (SELECT id FROM repository "
            "WHERE parent_id = ?)) AND deleted_at = ? AND purge = 0",
            (id_, id_, deleted_ms),
        ),
    ]
    for each in ids:
        tx.execute("UPDATE repository SET deleted_at = NULL, serial = serial + 1 WHERE id = ?", (each,))
        append_event(
            tx,
            repository_id=each,
            package_id=None,
            package_key="",
            version_key="",
            kind=REPOSITORY_RESTORED,
            data={
                "uid": uid,
                "storage_id": storage_id,
                "name": name,
                **({} if each == id_ else {"part": "of another"}),
            },
            actor=actor,
            now_ms=now_ms,
        )
    bump_config_serial(tx)
    return get_repository(tx, id_)


def bump_serial(tx: Transaction, repository_id: int) -> int:
    """Increment the serial, after a change of the content. Returns the new serial."""
    return _increment(tx, "serial", repository_id)


def record_changes(
    tx: Transaction,
    repository_id: int,
    *,
    count: int,
    names_changed: bool,
    added: Usage,
    now_ms: int,
) -> tuple[int, bool]:
    """
    Record changes of the content, each of which gets a serial of its own.

    Returns the last serial, and whether there are any quotas: those of owners are checked by the caller.

    ``names_changed`` says whether the set of package names is another one now.

    :raises QuotaExceeded: what is added exceeds a quota
    """
    sql = """
        UPDATE repository SET serial = serial + ?, names_serial = names_serial + ?, bytes_used = bytes_used + ?,
            package_count = package_count + ?, version_count = version_count + ?
        WHERE id = ? RETURNING serial, (SELECT COUNT(*) FROM quota)
    """
    usage = (added.bytes, added.packages, added.versions)
    serial, quotas = tx.one(sql, (count, int(names_changed), *usage, repository_id)) or (None, 0)
    if quotas:
        check_growth(tx, repository_id, added, now_ms)
    return _counter(repository_id, serial), quotas > 0


def content_serial(r: Reader, repository_id: int) -> int:
    """A number that increases with every change of a repository's content; 0 if there is no such repository."""
    return number(r, "SELECT serial FROM repository WHERE id = ?", (repository_id,))


def bump_names_serial(tx: Transaction, repository_id: int) -> None:
    """Increment the names serial, after a change of the set of package names."""
    _increment(tx, "names_serial", repository_id)


def names_serial(r: Reader, repository_id: int) -> int:
    """A number that increases with every change of the set of package names; 0 if there is no such repository."""
    return number(r, "SELECT names_serial FROM repository WHERE id = ?", (repository_id,))


def add_usage(tx: Transaction, repository_id: int, added: Usage, now_ms: int | None = None) -> bool:
    """
    Add to what a repository uses; negative values subtract. ``now_ms`` is given if clients add content.

    Returns whether there are quotas to which that may add: those of owners are checked by the caller.

    :raises QuotaExceeded: what clients add exceeds a quota
    """
    sql = """
        UPDATE repository SET bytes_used = bytes_used + ?, package_count = package_count + ?,
            version_count = version_count + ?
        WHERE id = ?
    """
    tx.send(sql, (added.bytes, added.packages, added.versions, repository_id))
    if now_ms is None or not any_limits(tx):
        return False
    check_growth(tx, repository_id, added, now_ms)
    return True


def _increment(tx: Transaction, column: str, repository_id: int) -> int:
    sql = f"UPDATE repository SET {column} = {column} + 1 WHERE id = ? RETURNING {column}"
    return _counter(repository_id, scalar(tx, sql, (repository_id,)))


def _counter(repository_id: int, value: int | None) -> int:
    if value is None:
        raise NotFound("repository", str(repository_id))
    return value


def _read_all(r: Reader, query: str, parameters: Sequence[Value] = ()) -> list[Repository]:
    rows = r.all(query, parameters)
    found = {repository.id: repository for repository in map(_repository, rows)}
    parents = {key: parent_id for key, *_, parent_id in rows}
    return [_with_parent(r, each, parents, found) for each in found.values()]


def _read_one(r: Reader, query: str, parameters: Sequence[Value]) -> Repository | None:
    return next(iter(_read_all(r, query, parameters)), None)


def _with_parent(
    r: Reader, repository: Repository, parents: Mapping[int, int | None], found: Mapping[int, Repository]
) -> Repository:
    parent_id = parents[repository.id]
    if parent_id is None:
        return repository
    parent = found.get(parent_id)
    parent = get_repository(r, parent_id) if parent is None else _with_parent(r, parent, parents, found)
    if repository.stage is not None:
        parent = evolve(parent, visibility=Visibility.PRIVATE)
    return evolve(repository, parent=parent, visibility=parent.visibility, active=parent.active)


def _check_name(tx: Transaction, storage_id: int, name: str, key: str, *, besides: int) -> None:
    taken = tx.one(
        "SELECT 1 FROM repository WHERE storage_id = ? AND key = ? AND id <> ? AND deleted_at IS NULL",
        (storage_id, key, besides),
    )
    if taken is not None:
        raise AlreadyExists("repository", name)
