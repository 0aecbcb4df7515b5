"""
The room that quotas leave for the uploads of one request.

It is reserved when an upload begins, by its announced size, so that a client is refused before it sends a body that
could not be published; what has no announced size is counted as it arrives. Reservations are known to one process. Two
processes may both have room for the last bytes, of which the catalog then refuses one, see ``quotas``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.server.quotas import Limits, Usage, nearly_used, quotas_of_repository, subject_name

SLACK: Final = 64 * 1024  # bytes by which the announced size of a form may exceed that of the file in it

Subject = tuple[str, int]


@frozen
class Allowance:
    """The quota of one subject: bytes, of which ``used`` were published when it was read, and the size of a file."""

    subject: Subject
    name: str
    limit: int | None
    used: int
    file_size: int | None


class Room:
    """The room for one request. ``reserved`` are the bytes that all requests of the process have reserved."""

    def __init__(self, allowances: Sequence[Allowance], reserved: dict[Subject, int]) -> None:
        self._allowances = allowances
        self._reserved = reserved
        self._mine = 0

    def begin(self, announced: int | None, received: int = 0) -> FileRoom:
        """
        Reserve room for a file, of which some bytes may have been ``received`` by earlier requests.

        :raises QuotaExceeded: there is none for ``announced`` bytes
        """
        expected = max((announced or 0) - SLACK, received)
        self.check_size(expected)
        self.take(expected)
        return FileRoom(self, expected, received)

    def check_size(self, size: int) -> None:
        """:raises QuotaExceeded: files may not be so large"""
        for each in self._allowances:
            if each.file_size is not None and size > each.file_size:
                raise QuotaExceeded(each.name, "file_size", each.file_size)

    def take(self, size: int) -> None:
        """Reserve bytes. :raises QuotaExceeded: there is no room for them"""
        for each in self._allowances:
            used = each.used + self._reserved.get(each.subject, 0) - self._mine
            if each.limit is not None and size > 0 and used + self._mine + size > each.limit:
                raise QuotaExceeded(each.name, "bytes", each.limit, used, self._mine + size)
        self._mine += size
        for each in self._allowances:
            self._reserved[each.subject] = self._reserved.get(each.subject, 0) + size

    def release(self) -> None:
        """Give up what was reserved: it is published, or will not be."""
        for each in self._allowances:
            left = self._reserved.get(each.subject, 0) - self._mine
            if left > 0:
                self._reserved[each.subject] = left
            else:
                self._reserved.pop(each.subject, None)
        self._mine = 0


class FileRoom:
    """The room for one file, which is counted as it arrives."""

    def __init__(self, room: Room, reserved: int, received: int) -> None:
        self._room = room
        self._reserved = reserved
        self._received = received

    def add(self, size: int) -> None:
        """Count received bytes. :raises QuotaExceeded: there is no room for them"""
        self._received += size
        self._room.check_size(self._received)
        if self._received > self._reserved:
            self._room.take(self._received - self._reserved)
            self._reserved = self._received


def read_allowances(r: Reader, repository: Repository) -> list[Allowance]:
    """The quotas that bound what clients upload to a repository, without those of owners."""
    return [
        Allowance((quota.kind, quota.subject_id), subject_name(r, quota), quota.bytes, used.bytes, quota.file_size)
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
