"""
The room that quotas leave for the uploads of one request.

It is reserved in the catalog when an upload begins, by its announced size, so that a client is refused before it sends
a body that could not be published, on whichever worker or node others upload; what has no announced size is counted as
it arrives. The transaction that publishes gives up the reservation. That of a killed process expires.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.errors import PkgrepoError, QuotaExceeded
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.server import reservations
from pkgrepo.storage.catalog.server.quotas import Limits, Usage, nearly_used, quotas_of_repository, subject_name
from pkgrepo.storage.catalog.server.reservations import Allowance

FORM_SLACK: Final = 64 * 1024  # bytes by which the announced size of a form may exceed that of the file in it
STEP: Final = 4 * 1024 * 1024  # bytes that are reserved at a time for what has no announced size
HELD_S: Final = 60  # seconds for which a reservation is held; three renewals may come late
RENEW_S: Final = 15  # seconds

T = TypeVar("T")

log = Logger()


class Reservations:
    """The reservations of the requests of one process, which it renews while there are any."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._held: set[str] = set()
        self._renewal = LoopingCall(lambda: Deferred.fromCoroutine(self._renew()))

    async def add(self, uid: str, allowances: Sequence[Allowance], size: int) -> None:
        """Reserve more bytes. :raises QuotaExceeded: there is no room for them"""
        now_ms = self._clock.now_ms()
        until_ms = now_ms + HELD_S * 1000
        self._held.add(uid)
        if not self._renewal.running:
            started = self._renewal.start(RENEW_S, now=False)
            started.addErrback(lambda failure: log.failure("reservations of quotas are not renewed", failure))
        await self._catalog.write(reservations.reserve, uid, allowances, size, until_ms, now_ms)

    def publishing(self, uids: Sequence[str], command: Callable[..., T]) -> Callable[..., T]:
        """A write command that also gives up reservations: the catalog counts what it publishes."""
        for each in uids:
            command = reservations.releasing(each, command)
        return command

    def forget(self, uids: Sequence[str]) -> None:
        """Renew no more what such a command has given up."""
        self._held.difference_update(uids)
        if not self._held and self._renewal.running:
            self._renewal.stop()

    async def drop(self, uids: Sequence[str]) -> None:
        """Give up reservations of what is not published; one that cannot be given up now expires."""
        self.forget(uids)
        for each in uids:
            try:
                await self._catalog.write(reservations.release, each)
            except PkgrepoError as error:
                log.warn("a reservation of a quota is left to expire: {error}", error=str(error))

    async def _renew(self) -> None:
        now_ms = self._clock.now_ms()
        try:
            await self._catalog.write(reservations.renew, sorted(self._held), now_ms + HELD_S * 1000, now_ms)
        except PkgrepoError as error:
            log.warn("reservations of quotas are not renewed: {error}", error=str(error))


class Room:
    """The room for one request. Without ``reservations`` there is no limit."""

    def __init__(self, allowances: Sequence[Allowance] = (), reservations: Reservations | None = None) -> None:
        self._allowances = allowances
        self._reservations = reservations if any(each.limit is not None for each in allowances) else None
        self._uid = ""

    async def begin(self, announced: int | None, received: int = 0, slack: int = 0) -> FileRoom:
        """
        Reserve room for a file, of which some bytes may have been ``received`` by earlier requests.

        What is announced may exceed the size of the file by ``slack`` bytes.

        :raises QuotaExceeded: there is none for ``announced`` bytes
        """
        expected = max((announced or 0) - slack, received)
        self.check_size(expected)
        await self.take(expected)
        return FileRoom(self, expected, received)

    def check_size(self, size: int) -> None:
        """:raises QuotaExceeded: files may not be so large"""
        for each in self._allowances:
            if each.file_size is not None and size > each.file_size:
                raise QuotaExceeded(each.name, "file_size", each.file_size)

    async def take(self, size: int) -> None:
        """Reserve bytes. :raises QuotaExceeded: there is no room for them"""
        if self._reservations is not None and size > 0:
            self._uid = self._uid or secrets.token_hex(8)
            await self._reservations.add(self._uid, self._allowances, size)

    async def take_up_to(self, most: int, least: int) -> int:
        """Reserve ``most`` bytes, or ``least`` if there is room for these alone. Returns how many."""
        try:
            await self.take(most)
        except QuotaExceeded:
            await self.take(least)
            return least
        return most

    def hand_over(self) -> tuple[str, ...]:
        """The reservations so far, which are the caller's to give up. What is taken from now on is another one."""
        uid, self._uid = self._uid, ""
        return (uid,) if uid else ()

    async def release(self) -> None:
        """Give up what was reserved and not handed over."""
        if self._reservations is not None and self._uid:
            await self._reservations.drop(self.hand_over())


class FileRoom:
    """The room for one file, which is counted as it arrives."""

    def __init__(self, room: Room, reserved: int, received: int) -> None:
        self._room = room
        self._reserved = reserved
        self._received = received

    async def add(self, size: int) -> None:
        """Count received bytes. :raises QuotaExceeded: there is no room for them"""
        self._received += size
        self._room.check_size(self._received)
        missing = self._received - self._reserved
        if missing > 0:
            self._reserved += await self._room.take_up_to(max(missing, STEP), missing)


def read_allowances(r: Reader, repository: Repository) -> list[Allowance]:
    """The quotas that bound what clients upload to a repository, without those of owners."""
    return [
        Allowance(quota.kind, quota.subject_id, subject_name(r, quota), quota.bytes, used.bytes, quota.file_size)
        for quota, used in quotas_of_repository(r, repository.id)
        if quota.bytes is not None or quota.file_size is not None
    ]


def nearly_used_quotas(r: Reader, repository: Repository) -> list[tuple[str, Limits, Usage]]:
    """The quotas that bound what a repository stores, with their names, and what is used of each."""
    return [
        (subject_name(r, quota), quota.limits, used)
        for quota, used in quotas_of_repository(r, repository.id)
        if nearly_used(quota.limits, used)
    ]
