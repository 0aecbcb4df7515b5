"""
Write commands that put and remove plain files: files of a repository that belong to no package.

Their rows have neither package nor version, and their events no package key but the path among their data. Run them by
``ContentWriter.change_with_blobs`` and ``ContentWriter.change``.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, File, NewFile, Repository
from pkgrepo.model.admission import Admitted, path_name
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import events, files
from pkgrepo.storage.catalog.packages.tree import check_place
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage

Guard = Callable[[Transaction], None]


@frozen
class PlainPut:
    """
    The result of a put: the file that is at the path now.

    ``replaced`` says whether another file was there; without ``changed`` the same bytes were there. ``surplus`` are
    locators of copies that the catalog did not need. ``held`` is the id of the stage to which brakes have led it.
    """

    file: File
    changed: bool
    replaced: bool
    surplus: tuple[str, ...] = ()
    held: str = ""


def put_plain_file(
    tx: Transaction,
    repository: Repository,
    new: NewFile,
    overwrite: bool,
    actor: Admitted,
    guard: Guard | None,
    now_ms: int,
    *,
    kind: str = "published",
) -> PlainPut:
    """
    Put a plain file at its path; the same bytes again change nothing. ``kind`` is that of the event.

    ``guard`` is called first, and raises an error if the file may not be put. A path that was deleted may be used
    again.

    :raises FileExists: other bytes are there, and ``overwrite`` is False
    :raises Conflict: a package's file is there, or a folder, or a file is where the path needs a folder
    """
    actor.check(repository, path_name(new.path))
    if guard is not None:
        guard(tx)
    blob = blobs.claim_blob(tx, repository.storage_id, new.blob, now_ms)
    surplus = (new.blob.locator,) if blob.locator != new.blob.locator else ()
    before = files.find_file(tx, repository.id, new.path)
    if before is None:
        check_place(tx, repository.id, new.path)
    elif before.package_id is not None:
        raise Conflict(f"{new.path} is a file of a package")
    elif before.sha256 == blob.sha256:
        return PlainPut(before, changed=False, replaced=False, surplus=surplus)
    put = files.insert_file if before is None else files.replace_file if overwrite else files.add_file
    file = put(tx, repository.id, repository.storage_id, evolve(new, blob=blob), None, None, now_ms, reuse=True)
    _record(tx, repository, file, file.size - (0 if before is None else before.size), kind, actor, now_ms)
    return PlainPut(file, changed=True, replaced=before is not None, surplus=surplus)


def remove_plain_file(
    tx: Transaction, repository: Repository, path: str, actor: Actor, now_ms: int, *, kind: str = "deleted"
) -> File:
    """
    Remove a plain file, and return it as it was. ``kind`` is that of the event.

    :raises NotFound: no plain file is at the path
    """
    found = files.find_file(tx, repository.id, path)
    file = existing(found if found is None or found.package_id is None else None, "file", path)
    files.remove_file(tx, file, actor=actor, tombstone=False, now_ms=now_ms)
    _record(tx, repository, file, -file.size, kind, actor, now_ms)
    return file


def _record(
    tx: Transaction, repository: Repository, file: File, grown: int, kind: str, actor: Actor, now_ms: int
) -> None:
    repositories.bump_serial(tx, repository.id)
    repositories.add_usage(tx, repository.id, Usage(grown), now_ms)
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=None,
        package_key="",
        version_key="",
        kind=kind,
        data={"path": file.path, "sha256": file.sha256, "size": file.size},
        actor=actor,
        now_ms=now_ms,
    )
