"""Files as they are found: kept in a repository, or of an upstream and still to be fetched."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.storage.catalog.packages import files


class Want(Enum):
    """What a caller does with a file."""

    HEAD = 1  # reads what is known about it
    BYTES = 2  # sends it, or a part of it
    DIGESTS = 3  # sends its digests, which are known when it is verified


@frozen(eq=False)
class FoundFile:
    """
    A file, kept or still to be fetched.

    ``fresh`` is a query that tells whether this is still the file at its path; None if that is not to be cached. The
    answer is also to be asked for again at ``ends_s`` (Unix seconds; 0 for never). A ``mutable`` file may be another
    one later. It is ``stale`` if an upstream failed when it was asked again, and ``removed`` if the upstream does not
    list it any more.

    ``content`` is what arrives of a file that is asked for by its path, and must be closed; None if the file is to be
    fetched by `Fetching`.
    """

    file: File | RemoteFile
    fresh: Callable[[Reader], bool] | None = None
    ends_s: int = 0
    mutable: bool = False
    stale: bool = False
    removed: bool = False
    content: ArrivingBody | bytes | None = None


def same_file(file: File, condition: Callable[[Reader], bool] | None = None) -> Callable[[Reader], bool]:
    """A query that tells whether a file is still the one at its path, and a condition is met."""

    def same(reader: Reader) -> bool:
        now = files.find_file(reader, file.repository_id, file.path)
        if now is None or (now.sha256, now.locator) != (file.sha256, file.locator):
            return False
        return condition is None or condition(reader)

    return same
