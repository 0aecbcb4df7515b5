"""The removal of what rules select of the cache of a proxy, which is fetched again when it is wanted: without trash."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.images.cached import evict_manifest
from pkgrepo.repositories.publish.package_changes import EVICTED, remove_files

from .versions import Victim


def evict_planned(
    tx: Transaction,
    repository: Repository,
    format_: StoredFormat,
    package_key: str,
    victims: Sequence[Victim],
    actor: Actor,
    now_ms: int,
) -> None:
    """Evict what a plan, made in this transaction, has of a package. No name is burned."""
    for each in victims:
        if format_.versions is None:
            with suppress(NotFound):  # the image went with its last manifest
                evict_manifest(tx, repository, package_key, each.key, actor, now_ms)
        else:
            paths = list(each.paths) or None
            place = repository, package_key, each.key, paths
            remove_files(tx, *place, actor, format_.index, False, now_ms, kind=EVICTED)
