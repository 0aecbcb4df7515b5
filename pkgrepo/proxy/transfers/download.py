"""What is to be transferred, and whether the responses to the requests for it, and for its rest, are that."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

from attrs import Factory, frozen

from pkgrepo.errors import NotFound, UpstreamFailed, UpstreamMismatch
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

T = TypeVar("T")

_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_PASSED = ("content-type", "etag", "last-modified")
_PAGES = ("text/html", "application/xhtml+xml")


def _never_again(error: UpstreamFailed) -> bool:  # noqa: ARG001 - of L{Download.again}
    return False


async def _find_nothing() -> None:
    """Of L{Download.find}."""


def _no_digests(_: object) -> Mapping[str, str]:
    """Of L{Download.digests_of}."""
    return {}


class Headers(Protocol):
    """Header fields of an upstream's response."""

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
    first response. When its caller stops, it is not cancelled before the publishing is done or undone.

    Three things are for files that no document lists. ``announced`` asks for further digests to expect, with the fields
    of the first response, while the body arrives; they are among ``algorithms``. ``again`` is called with each failure,
    and says whether the next ``open`` may bring a better file, if no reader has bytes yet. Without ``shared`` no
    client reads before the file is verified. ``asked`` is the name of the route that is asked now, if that changes.

    Four things are for files that several processes have readers of. ``find`` looks for the row that another process
    has recorded, which has the digests ``digests_of``. What ``describe`` says of where the file comes from, in values
    of JSON, ``adopt`` gets there, perhaps several times, before its readers get bytes.

    A file of which no digest is announced must be what its name says; it ``may_be_empty``, too.
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
    may_be_empty: bool = False

    @property
    def upstream(self) -> str:
        """The name of the route that is asked at present."""
        return self.route if self.asked is None else self.asked()


@frozen
class Origin:
    """
    What the first response says about the file: its fields, and its size in bytes if that is known.

    ``etag`` is strong and quoted; None if there is none. ``is_plain``: the body was sent as it is, not compressed, and
    with its length, so that positions in it are those in the file.
    """

    headers: Headers
    size: int | None
    etag: str | None
    is_plain: bool


@frozen
class Fields:
    """The header fields that count for a file, as they are passed to another process."""

    values: dict[str, str]

    @classmethod
    def of(cls, headers: Headers) -> Fields:
        """The fields of a response."""
        found = {name: headers.get(name) for name in _PASSED}
        return cls({name: value for name, value in found.items() if value is not None})

    def get(self, name: str) -> str | None:
        """The value by a name without regard to case."""
        return self.values.get(name.lower())


def check_first(download: Download[Any], path: str, response: IUpstreamResponse) -> Origin:
    """
    The answer to a request for the whole file.

    :raises NotFound: the upstream has no such file; :raises UpstreamMismatch: it is not the one that was announced
    :raises UpstreamFailed: it is no file
    """
    _check_status(download.upstream, path, response, 200)
    check_no_page(download.upstream, path, response)
    size, length = download.size, response.length
    if size is not None and length is not None and size != length:
        raise UpstreamMismatch(download.upstream, f"its file has {length} bytes where {size} were announced")
    return Origin(response.headers, length if size is None else size, _strong_etag(response), length is not None)


def check_no_page(route: str, path: str, response: IUpstreamResponse) -> None:
    """
    Check that a response is no web page: captive portals, single sign-on and broken mirrors answer requests with one.

    :raises UpstreamFailed: it is one, and the path is that of another file
    """
    if is_page(response) and not path.endswith((".html", ".htm")):
        raise UpstreamFailed(route, "it answered with a web page instead of the file")


def is_page(response: IUpstreamResponse) -> bool:
    """Whether a response says that it is a web page."""
    return (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower() in _PAGES


def fields_for_rest(download: Download[Any], origin: Origin, offset: int) -> dict[str, str] | None:
    """
    Header fields that ask for the bytes from ``offset`` on; None if nothing shows that they are of the same file.

    That is shown by a strong ETag (RFC 9110 section 13.1.5), or by the digest of the whole.
    """
    if origin.size is None or not origin.is_plain or not 0 < offset < origin.size:
        return None
    if origin.etag is not None:
        return {"Range": f"bytes={offset}-", "If-Range": origin.etag}
    return {"Range": f"bytes={offset}-"} if download.expected else None


def check_rest(
    download: Download[Any], path: str, origin: Origin, offset: int, response: IUpstreamResponse
) -> int | None:
    """
    How many bytes of this response we have already, or None: it is another file, and whole.

    :raises UpstreamMismatch: it is a part of another file; :raises UpstreamFailed: it is no file
    """
    if response.status == 200:
        whole = check_first(download, path, response)
        same = whole.etag == origin.etag if origin.etag is not None else bool(download.expected)
        return offset if same and whole.size == origin.size else None
    _check_status(download.upstream, path, response, 206)
    # RFC 9110 section 15.3.7: a 206 repeats the ETag of the 200.
    if size_of_whole(response, offset) != origin.size or _strong_etag(response) != origin.etag:
        raise UpstreamMismatch(download.upstream, "it continued with another file")
    return 0


def size_of_whole(response: IUpstreamResponse, offset: int) -> int | None:
    """How many bytes a file has of which a 206 sends those from ``offset`` on; None if it does not send just these."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range") or "")
    size = 0 if found is None else int(found[3])
    if found is None or (int(found[1]), int(found[2]), response.length) != (offset, size - 1, size - offset):
        return None
    return size


def part_of(response: IUpstreamResponse) -> tuple[int, int, int] | None:
    """Which bytes of a file a 206 sends: start, end (exclusive) and the size of the whole; None without a range."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range") or "")
    if response.status != 206 or found is None:
        return None
    start, end, size = int(found[1]), int(found[2]) + 1, int(found[3])
    return (start, end, size) if start < end <= size and response.length in (None, end - start) else None


def _check_status(route: str, path: str, response: IUpstreamResponse, wanted: int) -> None:
    if response.status in (404, 410):
        raise NotFound("file", path)
    if response.status != wanted:
        raise UpstreamFailed(route, f"it answered with status {response.status}")


def _strong_etag(response: IUpstreamResponse) -> str | None:
    etag: str | None = response.headers.get("ETag")
    return etag if etag is not None and _STRONG_ETAG.fullmatch(etag) else None
