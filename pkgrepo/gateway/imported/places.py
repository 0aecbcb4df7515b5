"""The bytes and documents of sources: below an address, or in a folder of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec
from attrs import define, evolve, frozen
from twisted.internet.task import deferLater

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound, UpstreamFailed, UpstreamLimited, UpstreamUnavailable
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.response import UpstreamResponse
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.untrusted.strict_json import ERRORS

PIECE: Final = 256 * 1024  # bytes of a file that are read at a time
LARGEST_LIST: Final = 512 * 1024 * 1024  # bytes of a list of all packages; a large npm registry's has 200 MiB
MOST_TRIES: Final = 4  # beside those of the client, for a source that is restarted meanwhile
PAUSE_S: Final = 5.0  # seconds before another try; the client leaves a failing host alone for some seconds
ABSENT: Final = (404, 405, 410)
JSON: Final = "application/json"
LINKED: Final = "it is a symbolic link, which is not followed"


class Site:
    """
    Reads what is below an address, with the credentials of the import, which only the host of the address gets.

    ``largest`` is the most bytes that a file may have. The clients in ``upstreams`` are those of this import alone.
    """

    def __init__(
        self, upstreams: Upstreams, repository_id: int, route: Route, pools: Pools, *, reactor: Any, largest: int
    ) -> None:
        self.upstreams = upstreams
        self.pools = pools
        self.repository_id = repository_id
        self.upstream = upstreams.of(repository_id, route)
        self.largest = largest
        self._reactor = reactor

    def at(self, url: str) -> Site:
        """The same site by another address on its host. :raises Invalid: it is on another host, or unusable"""
        before = self.upstream.route
        try:
            target = parse_url(url)
        except ValueError as error:
            raise Invalid(f"the address cannot be used: {error}", "/source") from None
        if target.origin != before.target.origin:  # which would get the credentials
            raise Invalid("the address is on another host", "/source")
        route = evolve(before, name=target.text, target=target)
        return Site(self.upstreams, self.repository_id, route, self.pools, reactor=self._reactor, largest=self.largest)

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self.upstream.name

    def seconds(self) -> float:
        """The time of a clock."""
        return float(self._reactor.seconds())

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        return self.upstream.url

    async def read(
        self,
        url: str,
        accept: str = "*/*",
        *,
        largest: int = LARGEST_LIST,
        body: bytes | None = None,
        body_type: str = JSON,
    ) -> tuple[bytes, str]:
        """
        A document and its final address; ``url`` is absolute, or a path below the address of the source.

        :raises NotFound: there is none; :raises UpstreamFailed: the source fails
        """
        async with self.open(
            url, accept, ReadLimits(largest, None), decode=True, body=body, body_type=body_type
        ) as response:
            return await response.read(), response.url

    async def json(
        self,
        url: str,
        accept: str = JSON,
        *,
        largest: int = LARGEST_LIST,
        body: bytes | None = None,
        body_type: str = JSON,
    ) -> Any:
        """A JSON document. :raises UpstreamFailed: the bytes are not JSON; otherwise as ``read``"""
        content, _ = await self.read(url, accept, largest=largest, body=body, body_type=body_type)
        try:
            return await self.pools.cpu(msgspec.json.decode, content)
        except ERRORS:
            raise UpstreamFailed(self.upstream.name, f"its answer for {url[:200]} is not JSON") from None

    @asynccontextmanager
    async def open(
        self,
        url: str,
        accept: str = "*/*",
        limits: ReadLimits | None = None,
        *,
        decode: bool = False,
        body: bytes | None = None,
        body_type: str = JSON,
    ) -> AsyncIterator[UpstreamResponse]:
        """
        A response with status 200; a source that does not answer is asked again after a while.

        :raises NotFound: there is nothing; :raises UpstreamFailed: the source fails
        """
        limits = limits or ReadLimits(self.largest, None)
        method = "GET" if body is None else "POST"
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": body_type}
        for tries in range(1, MOST_TRIES + 1):
            opened = self.upstream.open(method, url, headers, limits=limits, decode=decode, body=body, subject=url)
            async with AsyncExitStack() as stack:
                try:
                    response = await stack.enter_async_context(opened)
                except (UpstreamUnavailable, UpstreamLimited) as error:
                    if tries == MOST_TRIES:
                        raise
                    await deferLater(self._reactor, max(PAUSE_S, getattr(error, "retry_after_s", None) or 0))
                    continue
                if response.status in ABSENT:
                    raise NotFound("document", url.partition("?")[0][-200:])
                if response.status != 200:
                    raise UpstreamFailed(self.upstream.name, f"it answered {response.status}")
                yield response
                return

    async def has(self, url: str) -> bool:
        """Whether there is something at a URL. :raises UpstreamFailed: that is not known"""
        async with self.upstream.open("HEAD", url, subject=url) as response:
            return response.status == 200

    def file(self, url: str) -> RemotePlace:
        """The place of a file."""
        return RemotePlace(self, url)


@define
class RemotePlace:
    """The bytes at a URL; see L{pkgrepo.gateway.imported.items.Place}."""

    site: Site
    url: str
    modified_ms: int | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes as they arrive."""
        async with self.site.open(self.url) as response:
            self.modified_ms = read_date(response.headers.get("Last-Modified"))
            async for chunk in response:
                yield chunk


@frozen
class FoundFile:
    """A regular file in a folder: its path below that, its size in bytes, and when it was written."""

    path: str
    size: int
    modified_ns: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def mark(self) -> str:
        """A text that differs once the file was written again."""
        return f"{self.path} {self.size} {self.modified_ns}"


class Folder:
    """
    Reads what is below a folder of this machine; symbolic links are not followed.

    ``left_out`` are the paths of those that were met, with the reason. Sources add what else they leave out and what is
    of no package; see L{WithLeftOut}.
    """

    def __init__(self, root: str, pools: Pools) -> None:
        self.root = root
        self.pools = pools
        self.left_out: dict[str, str] = {}

    async def read(self, path: str, limit: int) -> bytes:
        """
        A small file.

        :raises NotFound: there is none; :raises OSError: it cannot be read; :raises Invalid: it is too large
        """
        try:
            content: bytes = await self.pools.disk(_read, os.path.join(self.root, path), limit)
        except FileNotFoundError:
            raise NotFound("file", path[-200:]) from None
        return content

    async def json(self, path: str, limit: int = 256 * 1024 * 1024) -> Any:
        """A JSON file. :raises Invalid: its bytes are not JSON, or too large"""
        try:
            return await self.pools.cpu(msgspec.json.decode, await self.read(path, limit))
        except ERRORS:
            raise Invalid(f"{path[-200:]} is not JSON") from None

    async def files(self, below: str = "") -> list[FoundFile]:
        """All regular files below a path, ordered by path; hidden ones are left out."""
        found: list[FoundFile] = await self.pools.disk(_walk, self.root, below, self.left_out)
        return found

    async def list(self, path: str = "") -> tuple[list[str], list[FoundFile]]:
        """The names of the folders in a folder, and its files. :raises OSError: it cannot be read"""
        found: tuple[list[str], list[FoundFile]] = await self.pools.disk(_list, self.root, path, self.left_out)
        return found

    def file(self, found: FoundFile) -> LocalPlace:
        """The place of a file."""
        return self.at(found.path)

    def at(self, path: str) -> LocalPlace:
        """The place of a file at a path, which is none that leads out of the folder."""
        return LocalPlace(os.path.join(self.root, path), self.pools)


def read_date(text: str | None) -> int | None:
    """The time in an HTTP date, in ms since the epoch; None if there is none."""
    try:
        return None if text is None else round(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


@frozen
class LocalPlace:
    """The bytes of a file on this machine; see L{Place}. ``follow``: it may be a link."""

    path: str
    pools: Pools
    follow: bool = False
    modified_ms: int | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes, piece by piece. A small file takes one turn of a thread."""
        content, descriptor = await self.pools.disk(_begin, self.path, self.follow)
        if descriptor is None:
            yield content
            return
        try:
            at = 0
            while content:
                yield content
                at += len(content)
                content = await self.pools.disk(os.pread, descriptor, PIECE, at)
        finally:
            os.close(descriptor)


def open_file(place: str, *, follow: bool = False) -> int:
    """
    A descriptor of a regular file for reading; the caller closes it.

    :raises OSError: it cannot be read; :raises Invalid: it is no regular file any more
    """
    # Without O_NONBLOCK opening a FIFO would wait for its writer.
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid("it is no regular file")
    return descriptor


def _begin(place: str, follow: bool) -> tuple[bytes, int | None]:
    """The first bytes of a file, and its descriptor if there are more."""
    descriptor = open_file(place, follow=follow)
    content, more = b"", False
    try:
        content = os.pread(descriptor, PIECE, 0)
        more = len(content) == PIECE
    finally:
        if not more:
            os.close(descriptor)
    return content, descriptor if more else None


def _read(place: str, limit: int) -> bytes:
    with os.fdopen(open_file(place), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Invalid(f"{place.rpartition('/')[2]} has more than {limit} bytes")
    return content


def _walk(root: str, below: str, links: dict[str, str]) -> list[FoundFile]:
    return list(_iterate(root, below, links))


def _iterate(root: str, below: str, links: dict[str, str]) -> Iterator[FoundFile]:
    folders, files = _list(root, below, links)
    yield from files
    for name in folders:
        yield from _iterate(root, f"{below}/{name}" if below else name, links)


def _list(root: str, path: str, links: dict[str, str]) -> tuple[list[str], list[FoundFile]]:
    folders: list[str] = []
    files: list[FoundFile] = []
    with os.scandir(os.path.join(root, path)) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.startswith(".") or not entry.name.isprintable():
                continue
            at = os.path.join(path, entry.name)
            if entry.is_symlink():
                links[at] = LINKED
            elif entry.is_dir():
                folders.append(entry.name)
            elif entry.is_file():
                found = entry.stat()
                files.append(FoundFile(at, found.st_size, found.st_mtime_ns))
    return folders, files


def texts(value: Any) -> Mapping[str, str]:
    """The texts of a JSON object, by key; empty for anything else."""
    return {key: each for key, each in value.items() if isinstance(each, str)} if isinstance(value, dict) else {}
