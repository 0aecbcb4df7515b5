"""The process's cache of advisories."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.pools import Pools

from .export import EMPTY, AdvisoryIndex, read_export

CHECK_EVERY_MS: Final = 60_000

_NEVER: Final = -1

log = Logger()


class AdvisoriesUnreadable(PkgrepoError):  # noqa: N818 - named for what is the case
    """The server was given advisories and cannot read them, so that it knows nothing of any version."""

    def __str__(self) -> str:
        return "the advisories of this server (npm.advisories) cannot be read; its log says why"


class AdvisoryCache:
    """
    A cache of an export's advisories, loaded at the first use, and again when the export has changed.

    ``path`` is a folder or a zip; None when there is no export. When the export cannot be read, that is logged, and the
    advisories loaded before stay.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._index = EMPTY
        self._changed_ns = _NEVER
        self._check_at_ms = 0
        self._flight: SingleFlight[str, None] = SingleFlight()

    @property
    def has_export(self) -> bool:
        """Whether the server was given an export."""
        return self._path is not None

    async def index(self, pools: Pools, clock: Clock) -> AdvisoryIndex:
        """The advisories, at most a minute old. :raises AdvisoriesUnreadable: the server has not read them yet"""
        path = self._path
        if path is not None and clock.now_ms() >= self._check_at_ms:
            await self._flight.run("reload", lambda: self._reload(path, pools))
            self._check_at_ms = clock.now_ms() + CHECK_EVERY_MS
        if path is not None and self._changed_ns == _NEVER:
            raise AdvisoriesUnreadable
        return self._index

    async def _reload(self, path: Path, pools: Pools) -> None:
        try:
            changed_ns = (await pools.disk(path.stat)).st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._index = await pools.cpu(read_export, path)
        except (OSError, Invalid) as error:
            log.warn("the advisories in {path} cannot be read: {error}", path=str(path), error=str(error))
            return
        self._changed_ns = changed_ns
        log.info("advisories on {count} packages were read", count=len(self._index.by_package))
