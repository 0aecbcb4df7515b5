"""What is to be transferred: where it comes from, what it must be, and where it goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

from attrs import Factory, frozen

from pkgrepo.errors import UpstreamFailed
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

T = TypeVar("T")


def _never_again(error: UpstreamFailed) -> bool:  # noqa: ARG001 - of L{Download.again}
    return False


async def _find_nothing() -> None:
    """Of L{Download.find}."""


def _no_digests(_: object) -> Mapping[str, str]:
    """Of L{Download.digests_of}."""
    return {}


class Headers(Protocol):
    """Header fields of an upstream's answer."""

    def get(self, name: str) -> str | None:
        """The value by a name without regard to case; fields of one name are joined by a comma."""


@frozen(kw_only=True)
class Download(Generic[T]):
    """
    A file of an upstream that is to be stored.

    ``open`` sends a GET with further header fields, see L{Upstream.open}; its limits bound the size. ``route`` is the
    upstream's name for errors. ``expected`` maps names of ``hashlib`` to lower-case hex, and ``size`` is in bytes, as
    the upstream's documents announce them. ``algorithms`` are further digests to compute.

    ``stage`` opens the storage. ``record`` publishes the verified blob and returns its row; the fields are those of the
    first answer. When its caller stops, it is not cancelled before the publishing is done or undone.

    Three things are for files that no document lists. ``announced`` asks for further digests to expect, with the fields
    of the first answer, while the body arrives; they are among ``algorithms``. ``again`` is called with each failure,
    and says whether the next ``open`` may bring a better file, if no reader has bytes yet. Without ``shared`` nobody
    reads before the file is verified. ``asked`` is the name of the route that is asked at present, if that changes.

    Four things are for files that several processes have readers of. ``find`` looks for the row that another process
    has recorded, which has the digests ``digests_of``. What ``describe`` says of where the file comes from, in values
    of JSON, ``adopt`` gets there, perhaps several times, before its readers get bytes.
    """

    route: str
    open: Callable[[Mapping[str, str]], AbstractAsyncContextManager[IUpstreamResponse]]
    stage: Callable[[], AbstractAsyncContextManager[Staged]]
    record: Callable[[Staged, BlobInfo, Headers], Awaitable[T]]
    expected: Mapping[str, str] = Factory(dict)
    algorithms: Sequence[str] = ()
    size: int | None = None
    announced: Callable[[Headers], Awaitable[Mapping[str, str]]] | None = None
    again: Callable[[UpstreamFailed], bool] = _never_again
    shared: bool = True
    asked: Callable[[], str] | None = None
    find: Callable[[], Awaitable[T | None]] = _find_nothing
    digests_of: Callable[[T], Mapping[str, str]] = _no_digests
    describe: Callable[[], dict[str, Any]] = dict
    adopt: Callable[[Mapping[str, Any]], object] = dict

    @property
    def upstream(self) -> str:
        """The name of the route that is asked at present."""
        return self.route if self.asked is None else self.asked()
