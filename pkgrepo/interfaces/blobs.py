"""Blobs: immutable bytes in a storage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IConsumer
from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from pkgrepo.model import BlobInfo


class IBlobStore(Interface):
    """
    Immutable blobs on one storage.

    A blob is visible completely or not at all. A locator names one stored copy and is never reused, so that deleting an
    old copy never removes a new copy of the same content.
    """

    has_files = Attribute("whether each copy is a file, whose descriptor is there without waiting, a bool")
    growing = Attribute("an L{IGrowingFiles}, or None if the store has no files that other processes could read")
    addresses = Attribute("an L{IBlobAddresses}, or None if clients get all copies from this server")

    def begin(expect_size: int | None = None, algorithms: Sequence[str] = (), limit: int | None = None) -> IBlobUpload:
        """
        Start receiving a blob; nothing is visible until its ``commit``.

        ``expect_size`` (bytes) reserves space, so that a full disk is detected before the first byte. ``algorithms``
        are ``hashlib`` names, or ``blake2b_256``, computed in addition to sha256. Writing more than ``limit`` bytes
        raises ``TooLarge``.

        :raises StorageFull: no space for ``expect_size``, or the free space is below the low-water mark
        """

    def resume(upload_id: str, state: bytes, abandoned: bool = False) -> Awaitable[IBlobUpload]:
        """
        Continue a suspended upload, on any worker; the caller ensures that only one does so at a time.

        Bytes beyond the offset in ``state`` were never acknowledged and are discarded. ``abandoned`` says that another
        process has resumed it and was not heard of since: if that one wakes up, nothing that it does may change this
        upload's bytes.

        :raises BlobMissing: the upload does not exist, or the state is not of this store
        """

    def commit_together(uploads: Sequence[IBlobUpload]) -> Awaitable[None]:
        """
        Commit several sealed uploads of this store with shared fsyncs: all of them or none.

        :raises StorageFull: or ``StorageFailed``
        """

    def open(locator: str) -> IBlob:
        """
        A stored copy, for reading; never waits for the network.

        :raises BlobMissing: nothing is stored there; where only the network knows, the first read raises it
        """

    def stat(locator: str) -> Awaitable[tuple[int, datetime] | None]:
        """Size in bytes and time of commit (aware UTC), or None when absent."""

    def check(locator: str) -> Awaitable[None]:
        """
        Make sure that the storage itself is there, before a copy that was not found is taken for lost.

        :raises StorageFailed: it is away, such as a disk that is not mounted, or does not answer
        """

    def delete(locator: str) -> Awaitable[None]:
        """Delete the copy; no error if it is absent. Open readers can finish."""

    def scan(after: str = "", limit: int = 1000) -> Awaitable[Sequence[tuple[str, int, datetime]]]:
        """Up to ``limit`` copies as (locator, size, time of commit), ordered by locator, from after ``after``."""

    def sweep_uploads(older_than: datetime, keep: Iterable[str]) -> Awaitable[int]:
        """Remove unfinished uploads last modified before ``older_than`` and not in ``keep``. Returns how many."""

    def capacity() -> tuple[int, int] | None:
        """Free and total bytes of the storage; None for a store that has no such limit."""


class IGrowingFiles(Interface):
    """
    Uploads that other processes read while they grow.

    An upload that was exposed stays on the disk when its process is killed. It is continued, or swept.
    """

    def expose(upload: IBlobUpload) -> Awaitable[None]:
        """
        Let other processes open the ``readable`` bytes of an upload of this store, by its ``id``.

        :raises StorageFull: the disk is full; :raises StorageFailed: the device failed
        """

    def open_growing(upload_id: str) -> int:
        """
        A descriptor of the bytes of an exposed upload, which the caller closes; how many they are others must say.

        :raises BlobMissing: there is no such upload, or it has ended; :raises StorageFailed: it cannot be opened
        """

    def take_over(upload_id: str, offset: int, algorithms: Sequence[str] = ()) -> Awaitable[IBlobUpload]:
        """
        Continue an exposed upload whose process has ended; the caller ensures that only one process does so.

        Its first ``offset`` bytes are kept, and read again for the digests. Descriptors of it see what is added.

        :raises BlobMissing: there is no such upload, or it is shorter; :raises StorageFailed: it cannot be opened
        """


class IBlobAddresses(Interface):
    """Addresses outside this server, where clients read large copies without credentials."""

    least_size = Attribute("the least size in bytes of a copy that has one, an int")

    def sign(locator: str) -> Awaitable[str]:
        """
        A URL with a signature that expires soon; the store is not asked whether the copy exists.

        :raises BlobMissing: this is no locator; :raises StorageFailed: it cannot be signed
        """


class IBlobUpload(IConsumer):
    """
    A blob that is being received.

    It is an async context manager: leaving it without ``commit`` or ``suspend`` removes all data; after a crash the
    next start removes it. Digests are computed while bytes arrive. ``write`` takes bytes of any size and may be
    called without waiting; ``registerProducer`` and ``drained`` provide back-pressure.
    """

    id = Attribute("the upload's name, an opaque str for ``resume``")
    offset = Attribute("bytes received so far, an int")
    data = Attribute("the sealed bytes if they are few, else None")
    readable = Attribute(
        "how many bytes, from the first on, a ``descriptor`` can read; grows while bytes arrive, an int"
    )

    def __aenter__() -> Awaitable[IBlobUpload]:
        """The upload itself."""

    def __aexit__(  # noqa: PLE0302 - interfaces have no self
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Awaitable[None]:
        """``abort``, which does nothing after a ``commit`` or ``suspend``."""

    def write(data: bytes) -> None:
        """Add the next bytes. :raises TooLarge: the limit is exceeded"""

    def share(on_progress: Callable[[], None]) -> None:
        """
        Let others read the bytes while they arrive: they become ``readable`` soon after they were written.

        ``on_progress`` is called when ``readable`` has grown, until ``seal`` is called. Which bytes the readers get
        before the digests are known is for the caller to decide.
        """

    def drained() -> Awaitable[None]:
        """
        Wait until few enough bytes are buffered to accept more.

        :raises StorageFull: the disk is full; :raises StorageFailed: the device failed
        """

    def seal(expected: Mapping[str, str] | None = None, size: int | None = None) -> Awaitable[BlobInfo]:
        """
        Accept no more bytes, and return the blob that ``commit`` will make. Nothing is visible or durable yet.

        ``expected`` maps algorithm names to lower-case hex; each is checked.

        :raises DigestMismatch: a digest differs; :raises SizeMismatch: ``size`` differs
        :raises StorageFull: or ``StorageFailed``; :raises ValueError: ``expected`` names an algorithm not in ``begin``
        """

    def descriptor() -> int:
        """
        A new file descriptor of the sealed bytes, which the caller closes; of a temporary file if the store has none.

        Before ``seal`` it is one of the growing file, once ``readable`` is not 0. It stays valid in any case.

        :raises StorageFailed: there is none
        """

    def commit(expected: Mapping[str, str] | None = None, size: int | None = None) -> Awaitable[BlobInfo]:
        """
        Make the blob durable and visible, or leave nothing. It is sealed first if it was not, see ``seal``.

        :raises StorageFull: or ``StorageFailed``
        """

    def suspend() -> Awaitable[bytes]:
        """Make the received bytes durable and return the state (at most 4 KiB) for ``resume``."""

    def abort() -> Awaitable[None]:
        """Remove all data; may be called at any time and more than once."""

    def keep_state() -> None:
        """
        Let a resumed upload stay resumable from its earlier state until ``forget``: neither ``commit`` nor ``abort``
        removes what that state needs.
        """

    def forget() -> Awaitable[None]:
        """Remove what ``keep_state`` has kept, after ``commit`` or ``abort``. It may be called in any case."""


class IBlob(Interface):
    """
    One stored copy, opened for reading.

    How many bytes it has is in the catalog. In a store that has files, it stays readable after the copy is deleted. It
    keeps its file open until the last reference is dropped, so do not keep it for long.
    """

    def descriptor() -> int | None:
        """A new read-only file descriptor, which the caller closes; None if the store has no files."""

    def as_file() -> Awaitable[int]:
        """
        A new read-only file descriptor of all its bytes, which the caller closes: of a temporary copy if need be.

        :raises BlobMissing: the bytes are not there; :raises StorageFull: there is no room for the copy
        :raises StorageFailed: they cannot be read
        """

    def deliver(consumer: IConsumer, start: int, end: int) -> Awaitable[None]:
        """
        Push bytes ``start`` to ``end`` (exclusive) to the consumer as a push producer; done when all were written.

        :raises BlobMissing: the bytes are not there, and none was written
        :raises StorageFailed: they cannot be read; the response must not look complete
        :raises CancelledError: the consumer stopped the delivery
        """

    def read(start: int, count: int) -> Awaitable[bytes]:
        """
        At most ``count`` bytes from ``start``; fewer only at the end.

        :raises BlobMissing: the bytes are not there; :raises StorageFailed: they cannot be read
        """
