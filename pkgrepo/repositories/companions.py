"""
Companion repositories: repositories of one format that belong to repositories of another one.

==========================  ==============================================================================
change of the parent        what happens to the companion, in the same transaction
==========================  ==============================================================================
added                       it is added, with the configuration that its format derives from the parent
configured                  its configuration is derived again
renamed, removed            it is renamed and removed with it (``storage.catalog.server.repositories``)
==========================  ==============================================================================

The repositories of a stage have companions of their own, which are of the stage too and end with it.

At a start, parents get the companions that they lack, such as those of an earlier release.
"""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.format import Companion, StoredFormat
from pkgrepo.storage.catalog.server import repositories


class Companions:
    """Adds and configures companions. ``formats`` are all formats by name."""

    def __init__(self, formats: Mapping[str, StoredFormat]) -> None:
        self._formats = [(each, each.companion) for each in formats.values() if each.companion is not None]

    async def ensure_all(self, catalog: ICatalog, now_ms: int) -> None:
        """Add the companions that repositories lack, and bring the configuration of the others up to date."""
        if self._formats:
            await catalog.write(self._ensure_all, now_ms)

    def ensure(self, tx: Transaction, parent: Repository, now_ms: int) -> None:
        """Add or configure the companions of a repository: part of a write command."""
        for format_, companion in self._formats:
            if parent.format in companion.of:
                self._ensure_one(tx, parent, format_, companion, now_ms)

    def _ensure_all(self, tx: Transaction, now_ms: int) -> None:
        every = [each for each in repositories.all_repositories(tx) if not each.is_companion]
        # The companion of a virtual repository names those of the members, and one of a stage may have virtual ones.
        for each in sorted(every, key=lambda each: (each.type is RepositoryType.VIRTUAL, each.stage is not None)):
            self.ensure(tx, each, now_ms)

    def _ensure_one(
        self, tx: Transaction, parent: Repository, format_: StoredFormat, companion: Companion, now_ms: int
    ) -> None:
        def companion_of(uid: str) -> str | None:
            member = repositories.find_repository(tx, uid)
            found = [] if member is None else repositories.companions_of(tx, member.id)
            return next((each.uid for each in found if each.format == format_.name), None)

        given = companion.config(parent, companion_of)
        if given is None:
            return
        config, settings = format_.configurations.validate(given)
        type_ = RepositoryType(config["type"])
        present = next((e for e in repositories.companions_of(tx, parent.id) if e.format == format_.name), None)
        if present is None:
            repositories.add_repository(
                tx,
                storage_id=parent.storage_id,
                name=f"{parent.name}/{companion.segment}",
                format=format_.name,
                type=type_,
                visibility=parent.visibility,
                config=config,
                settings=settings,
                now_ms=now_ms,
                parent_id=parent.id,
                stage=parent.stage,
            )
        elif (present.type, present.config, present.settings) != (type_, config, settings):
            repositories.update_repository(tx, present.id, type=type_, config=config, settings=settings, now_ms=now_ms)
