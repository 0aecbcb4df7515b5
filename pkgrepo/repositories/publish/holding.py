"""Where an upload goes in a repository with brakes: into it, or into a stage of it that waits for an approval."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from pkgrepo.interfaces import Transaction
from pkgrepo.model import NewFile, Repository
from pkgrepo.model.admission import Admitted, path_name
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.repositories import get_repository

from .bursts import Held, StageOpening, count, lead_to_stage
from .index import Indexer
from .plain_files import Guard, PlainPut, put_plain_file
from .releases import PublishedTogether, Release, publish_releases


def publish_or_hold(
    tx: Transaction,
    repository: Repository,
    releases: Sequence[Release],
    actor: Admitted,
    indexer: Indexer,
    opening: StageOpening | None,
    now_ms: int,
) -> PublishedTogether:
    """
    Publish releases to a repository with brakes, or all of them to a stage of it.

    :raises Held: they need an approval, and there is no stage; otherwise as L{publish_releases}
    """
    keys = list(dict.fromkeys(each.package_key for each in releases))
    place, uid = _place(tx, repository, keys, opening, actor, now_ms)
    return evolve(publish_releases(tx, place, releases, actor, indexer, now_ms), held=uid)


def put_plain_or_hold(
    tx: Transaction,
    repository: Repository,
    new: NewFile,
    overwrite: bool,
    actor: Admitted,
    guard: Guard | None,
    opening: StageOpening | None,
    now_ms: int,
) -> PlainPut:
    """
    Put a plain file into a repository with brakes, or into a stage of it.

    :raises Held: it needs an approval, and there is no stage; otherwise as L{put_plain_file}
    """
    place, uid = _place(tx, repository, [path_name(new.path.rpartition("/")[0])], opening, actor, now_ms)
    return evolve(put_plain_file(tx, place, new, overwrite, actor, guard, now_ms), held=uid)


def _place(
    tx: Transaction,
    repository: Repository,
    keys: Sequence[str],
    opening: StageOpening | None,
    actor: Admitted,
    now_ms: int,
) -> tuple[Repository, str]:
    """The repository that takes what is published, and the id of its stage; empty if brakes do not hold it."""
    brake = count(tx, repository, keys, actor, now_ms)
    if brake is None:
        return repository, ""
    if opening is None:
        raise Held(repository, keys, brake, actor)
    uid = lead_to_stage(tx, repository, brake, keys, opening, actor, now_ms)
    return get_repository(tx, stages.staged_id(tx, uid)), uid
