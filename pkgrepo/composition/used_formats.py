"""Loads the formats of repositories that come while the server runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.late import InThread
from pkgrepo.concurrency.services import PeriodicTask, spawn
from pkgrepo.errors import StorageFailed
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.registry import Registry

AGAIN_S: Final = 60.0  # seconds until what could not be loaded is tried again

log = Logger()


class UsedFormats(PeriodicTask):
    """
    Has the format of every repository loaded, in a thread, as soon as this process knows of the repository.

    Whoever adds a repository loads its format for that. Other processes may get no request for it, but what the format
    runs in the background may be theirs to do, and what handles all repositories would load it in the reactor's thread.
    What fails is logged once for each reason, and tried again.
    """

    def __init__(self, formats: Mapping[str, StoredFormat], registry: Registry, in_thread: InThread, reactor: Any):
        super().__init__(self._load, reactor, every_s=AGAIN_S, what="loading the formats of repositories")
        self._formats = formats
        self._registry = registry
        self._in_thread = in_thread
        self._failures: dict[str, str] = {}  # what was logged last, by format
        begin: Callable[[], object] = partial(reactor.callFromThread, self._begin)
        registry.on_change = begin

    def _begin(self) -> None:
        if self.running and self._missing():
            spawn(self._load(), "formats of repositories could not be loaded")

    def _missing(self) -> list[StoredFormat]:
        used = {each.format for each in self._registry.all()}
        return [each for name, each in self._formats.items() if name in used and not each.is_loaded]

    async def _load(self) -> None:
        try:
            await self._registry.refresh()
            missing = self._missing()
        except StorageFailed:  # requests and health checks say so
            return
        for each in missing:
            try:
                await self._in_thread(each.load)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - of any module; one that fails does not hold up the others
                if self._failures.get(each.name) != repr(error):
                    self._failures[each.name] = repr(error)
                    log.failure("format {name} could not be loaded", failure=Failure(), name=each.name)
