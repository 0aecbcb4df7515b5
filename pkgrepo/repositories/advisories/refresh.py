"""
The job that brings the catalog up to date with an export of advisories, and its schedule.

=====================================  ======================================================================
what is found                          what the job does
=====================================  ======================================================================
the export is the one of the last      notes the time
load: the same file, or a server says
that nothing changed
the last load was of another source,   stores all records
or another version of the program
a record with the time of change of    nothing: it is stored as it is
the stored one
another record                         stores it, in place of the stored one
a withdrawn one, or one of other       removes the stored one, if there is any
ecosystems alone
stored records that the export has     removes them, after all others
not
a record that cannot be read           keeps the stored one, counts it, and goes on
no record at all, or an export that    fails, and removes nothing: what was loaded stays, with its age
cannot be read to its end
a record that was sent to the server   keeps that of the two that was changed last, until the export has it as it
by itself (``take``)                   was sent, or a later one
=====================================  ======================================================================

Records are stored some hundred at a time. What was loaded before stays the last complete load until the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.upkeep.jobs import Jobs, Progress
from pkgrepo.storage.catalog import advisories
from pkgrepo.storage.catalog import sent_advisories as sent
from pkgrepo.storage.catalog.advisories import AdvisoryLoad
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.sent_advisories import changed_at
from pkgrepo.storage.catalog.server.jobs import JobRunning

from .exports import MOST_NOTED, Batch, exported_ms, read_batches, validator_of
from .recalls import Flush, MalwareRecalls, nothing_to_write
from .records import READER, Record, read_record

KIND: Final = "advisories"  # of the job
CHECK_S: Final = 15.0  # seconds between two looks whether a refresh is due: of 300,000 files in a folder 0.2 s each
RETRY_MS: Final = 15 * 60 * 1000  # after a refresh that failed
PAGE: Final = 500  # ids of stored records that are compared together

log = Logger()


@frozen
class Downloaded:
    """An export in a temporary file, which is removed after its use."""

    path: Path
    exported_ms: int
    validator: str


class Download(Protocol):
    """Gets the export at an address; None if it is still the one with the validator."""

    def __call__(self, url: str, validator: str) -> Awaitable[Downloaded | None]:
        """:raises PkgrepoError: its server cannot be reached, or does not send it"""


def is_address(source: str) -> bool:
    """Whether a source is an address, and not a path."""
    return source.startswith(("http://", "https://"))


class AdvisoryRefresh:
    """
    Loads the export at ``source``: the path of a folder or a zip, or the address of a zip; empty: there is none.

    ``flush`` writes the downloads that this process has in memory.
    """

    def __init__(
        self, context: MaintenanceContext, source: str, download: Download, flush: Flush = nothing_to_write
    ) -> None:
        self.source = source
        self.ecosystems = {
            each.ecosystem.name: each.ecosystem for each in context.formats.values() if each.ecosystem is not None
        }
        self._catalog = context.catalog
        self._pools = context.pools
        self._clock = context.clock
        self._download = download
        self.recalls = MalwareRecalls(context, source, flush)

    async def take(self, data: bytes) -> Record:
        """
        Store one record that was sent by itself, ahead of the next export. Malware is blocked when this returns.

        :raises Invalid: it is no record, or is older than the stored one; :raises Conflict: nothing was loaded yet
        """
        record: Record = await self._pools.cpu(read_record, data, self.ecosystems)
        if changed_at(record.modified) is None:
            raise Invalid("an OSV record says when it was modified", "/modified")
        last = await self._last()
        if last is None:
            raise Conflict("the advisories of this server have not been loaded yet: refresh them first")
        await self._catalog.write(sent.take_record, record.id, record.modified, record.advisories, self._clock.now_ms())
        await self.recalls.check()
        return record

    async def run(self, progress: Progress) -> Mapping[str, Any]:
        """Refresh once, and open recalls. :raises PkgrepoError: the export cannot be read, or there is none"""
        try:
            return await self._refresh(progress)
        finally:  # also of what was stored of an export that could not be read to its end
            await self.recalls.check()

    async def _refresh(self, progress: Progress) -> Mapping[str, Any]:
        if not self.source:
            raise Invalid("the server has no source of advisories (advisories.source)")
        last = await self._last()
        if not is_address(self.source):
            path = Path(self.source)
            try:
                validator = await self._pools.disk(validator_of, path)
                same = last is not None and last.validator == validator
                if last is not None and same and not await self._pools.disk(path.is_dir):
                    return await self._note(last)
                at_ms = await self._pools.disk(exported_ms, path)
                return await self._load(path, at_ms, validator, last, progress)
            except OSError as error:
                raise Invalid(f"{path} cannot be read: {error.strerror or error}") from error
        found = await self._download(self.source, last.validator if last is not None else "")
        if found is None:
            assert last is not None  # else there was no validator
            return await self._note(last)
        try:
            return await self._load(found.path, found.exported_ms, found.validator, last, progress)
        except OSError as error:
            raise Invalid(f"the export at {self.source} cannot be read: {error.strerror or error}") from error
        finally:
            await self._pools.disk(partial(found.path.unlink, missing_ok=True))

    async def is_due(self, every_s: float) -> bool:
        """Whether the last load is older than ``every_s``, of another source, or of an older file."""
        last = await self._last()
        if last is None or self._clock.now_ms() - last.loaded_ms >= every_s * 1000:
            return True
        if is_address(self.source):
            return False
        try:
            return await self._pools.disk(validator_of, Path(self.source)) != last.validator
        except OSError:
            return False  # it is told of when the time has come

    async def _last(self) -> AdvisoryLoad | None:
        last = await self._catalog.look(advisories.find_load)
        return last if last is not None and (last.source, last.reader) == (self.source, READER) else None

    async def _load(
        self, path: Path, at_ms: int, validator: str, last: AdvisoryLoad | None, progress: Progress
    ) -> Mapping[str, Any]:
        reading = read_batches(path, self.ecosystems)
        seen: set[str] = set()
        current: dict[str, str] = {}  # those of the records that were sent, as the export has them
        unreadable: dict[str, str] = {}
        changed = count = unread = 0
        progress.begin("records", 0)
        while True:
            batch: Batch | None = await self._pools.cpu(next, reading, None)
            if batch is None:
                break
            seen.update(each.id for each in batch.records)
            seen.update(batch.unreadable)  # files are named after the records in them
            count += len(batch.records)
            unread += len(batch.unreadable)
            by_itself = await self._catalog.look(sent.read_sent)
            current.update({each.id: each.modified for each in batch.records if each.id in by_itself.modified})
            for name, why in batch.unreadable.items():
                if len(unreadable) < MOST_NOTED:
                    unreadable[name] = why
            stored = await self._store(batch, whole=last is None)
            changed += stored
            if stored and last is not None:
                await self.recalls.check()
            progress.step(len(batch.records) + len(batch.unreadable))
        progress.end()
        if not count:
            raise Invalid(f"{path.name} has no OSV records that can be read")
        removed = await self._remove_absent(seen)
        await self._catalog.write(sent.forget, current)
        for name, why in unreadable.items():
            log.warn("the advisory {name} was passed over: {why}", name=name, why=why)
        records = await self._catalog.scan(advisories.count_records)
        loaded = AdvisoryLoad(
            source=self.source,
            records=records,
            unreadable=unread,
            exported_ms=at_ms,
            loaded_ms=self._clock.now_ms(),
            validator=validator,
            reader=READER,
        )
        await self._catalog.write(advisories.put_load, loaded)
        log.info(
            "advisories: {changed} of {count} changed, {removed} removed", changed=changed, count=count, removed=removed
        )
        return {"changed": changed, "removed": removed, "unreadable": unread, "records": records}

    async def _store(self, batch: Batch, *, whole: bool) -> int:
        """Store those that differ from the stored ones; with ``whole`` all. Returns their number."""
        ids = [each.id for each in batch.records]
        stored = await self._catalog.scan(advisories.modified_of, ids)
        # Without a time of change a record is always taken for a changed one.
        differing = [
            (each.id, each.modified, each.advisories)
            for each in batch.records
            if (
                each.id in stored
                if not each.advisories
                else whole or not each.modified or stored.get(each.id) != each.modified
            )
        ]
        if differing:
            await self._catalog.write(sent.put_of_export, differing, whole=whole)
        return len(differing)

    async def _remove_absent(self, seen: set[str]) -> int:
        """Remove stored records that were not seen. Returns their number."""
        after, removed = "", 0
        while page := await self._catalog.scan(advisories.record_ids, after, PAGE):
            absent = [each for each in page if each not in seen]
            for some in batches(absent):
                await self._catalog.write(sent.remove_absent, some)
            removed += len(absent)
            after = page[-1]
        return removed

    async def _note(self, last: AdvisoryLoad) -> Mapping[str, Any]:
        """Note that the last load is up to date."""
        await self._catalog.write(advisories.put_load, evolve(last, loaded_ms=self._clock.now_ms()))
        return {"changed": 0, "removed": 0, "unreadable": last.unreadable, "records": dict(last.records)}


class RefreshSchedule(PeriodicTask):
    """
    Begins a refresh as a job when one is due: every ``every_s`` seconds, and when the file of the source has changed.

    After one that failed, the next comes in a quarter of an hour.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        *,
        refresh: AdvisoryRefresh,
        jobs: Jobs,
        every_s: float,
        reactor: IReactorTime,
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=min(CHECK_S, every_s), what="the refresh of advisories")
        self._refresh = refresh
        self._jobs = jobs
        self._refresh_s = every_s
        self._clock = context.clock
        self._not_before_ms = 0

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._refresh.recalls.check()
        if self._clock.now_ms() < self._not_before_ms or not await self._refresh.is_due(self._refresh_s):
            return
        try:
            job = await self._jobs.wait(await begin_refresh(self._jobs, self._refresh))
        except JobRunning:
            return  # it is checked again in a minute
        self._not_before_ms = 0
        if job.state != "done":
            self._not_before_ms = self._clock.now_ms() + RETRY_MS
            reason = "; ".join(job.result.get("errors", ()))
            log.warn("the advisories were not refreshed: {reason}", reason=reason)


async def begin_refresh(jobs: Jobs, refresh: AdvisoryRefresh, **details: str) -> str:
    """Begin a refresh; ``details`` are further data of the job. :raises JobRunning: one runs already"""
    data = {"on": f"advisories of {refresh.source}", **details}
    return await jobs.begin(KIND, KIND, data, refresh.run)
