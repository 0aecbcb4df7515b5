"""
What another pkgrepo says of a repository: its events, packages, versions and files, asked over its API.

Nothing that it says is trusted. A response has at most ``MOST_BYTES``, lists have pages, and texts are as long as names
are. What a page of events names is only asked for at the same upstream again; digests are compared with what comes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec
from attrs import frozen
from msgspec import Meta

from pkgrepo.errors import PositionLost, UpstreamFailed
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.configuration import Followed
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.storage.catalog.server.replicas import ALL, DELETED_NAMES, Item

KIND: Final = "replication"  # of the requests: packages are served also while these fail
TYPES: Final = "package.*,tag.*,repository.restored"
MOST_BYTES: Final = 8 * 1024 * 1024  # of a response; a page of events has 4 MB at most
MOST_EVENTS: Final = 500  # of a page
PAGE: Final = 200  # packages or versions of a page
MOST_TAGS: Final = 100  # in an event
MOST_PAGES: Final = 50_000  # of one list: more is a loop
ENDS_S: Final = 60.0  # seconds for a response, beside the time that it may wait for an event
BEGIN: Final = "evt_0_0"  # the position before all events

Digests = Mapping[str, str]  # hexadecimal, by algorithm
NO_NUL: Final = r"\A[^\0]*\Z"  # which PostgreSQL does not store
Name = Annotated[str, Meta(max_length=1000, pattern=NO_NUL)]
T = TypeVar("T")

_NEXT: Final = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')
_POSITION: Final = re.compile(r"evt_[0-9]{1,18}_[0-9a-f]{1,16}", re.ASCII)


class _About(msgspec.Struct):
    package: Name = ""
    version: Name = ""
    digest: Name = ""
    tags: list[Name] = []


class _Event(msgspec.Struct):
    type: Name
    data: _About


class _Repository(msgspec.Struct):
    type: Name
    format: Name


class _Package(msgspec.Struct):
    key: Name


class _Listed(msgspec.Struct):
    version: Name


class _Page(msgspec.Struct):
    items: list[Any]
    next: Annotated[str, Meta(max_length=4096, pattern=NO_NUL)] | None = None


class RemoteDeleted(msgspec.Struct):
    """A name that is taken there by what was deleted: the path of a file, or if that is empty the name of a package."""

    package: Annotated[str, Meta(min_length=1, max_length=1000, pattern=NO_NUL)]
    path: Annotated[str, Meta(max_length=4096, pattern=NO_NUL)]
    sha256: Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")]
    deleted_at: Annotated[datetime, Meta(tz=True)]


class RemotePath(msgspec.Struct):
    """A file of a version: its path in the repository, its size in bytes, and its digests (hex) by algorithm."""

    path: Annotated[str, Meta(max_length=4096)]
    size: int
    digests: dict[str, str]


class RemoteVersion(msgspec.Struct):
    """
    A version there, with its files: live, yanked or deprecated for a reason, and its tags.

    Of an image ``digest`` is that of its manifest, and the files are manifests and blobs.
    """

    version: Name
    files: list[RemotePath]
    state: Name = "live"
    reason: Annotated[str, Meta(max_length=65_536, pattern=NO_NUL)] = ""
    tags: list[Name] = []
    digest: Name | None = None


@frozen
class Page:
    """Some events: what they are about, the position behind them, and how many are left behind that."""

    items: Sequence[Item]
    position: str
    left: int


@frozen(kw_only=True)
class Source:
    """
    A repository there. ``waits_s`` is how long a request may wait for an event, as long as connections may idle.

    ``images`` tells whether its packages are images.
    """

    upstream: Upstream
    followed: Followed
    waits_s: int
    images: bool

    @property
    def name(self) -> str:
        """What is followed, in words: the address of the server and the repository there."""
        return f"{self.followed.server} {self.followed.repository}"

    async def check(self, format: str) -> None:
        """:raises UpstreamFailed: it is no hosted repository of this format, or none that may be read"""
        found = await self._get(f"repository/{self._repository}", _Repository)
        if found is None:
            raise self._failed(f"it has no repository {self.followed.repository}, or none that may be read")
        if found.type != "Hosted":
            raise self._failed(
                f"{self.followed.repository} is {found.type.lower()} there: follow the hosted ones, and join them here"
            )
        if found.format != format:
            raise self._failed(f"{self.followed.repository} is of the format {found.format!r} there")

    async def newest(self) -> Page:
        """The position behind the newest event; of it nothing else."""
        page = await self.events(None, wait=False)
        return Page((), page.position, 0)

    async def events(self, position: str | None, *, wait: bool) -> Page:
        """
        Events after a position, or the newest one. With ``wait`` the request waits for one if there is none yet.

        :raises PositionLost: its log does not have the position (any more); :raises UpstreamFailed: it cannot be read
        """
        query = {"repository": self.followed.repository, "type": TYPES, "limit": str(MOST_EVENTS if position else 1)}
        if position:
            query |= {"after": position} | ({"wait": str(self.waits_s)} if wait and self.waits_s else {})
        url = f"{self.followed.server}/api/events?{urlencode(query)}"
        limits = ReadLimits(MOST_BYTES, ENDS_S + self.waits_s)
        async with self.upstream.open("GET", url, {}, limits=limits, kind=KIND, subject="events", tries=1) as response:
            if response.status == 410 and position:
                raise PositionLost(position)
            if response.status != 200:
                raise self._failed(f"it answers {response.status} for its events")
            following = _NEXT.search(response.headers.get("Link") or "")
            left = response.headers.get("X-Events-Left") or ""
            body = await response.read()
        after = parse_qs(urlsplit(following[1]).query).get("after", [""])[0] if following else ""
        if not _POSITION.fullmatch(after) or not (left.isascii() and left.isdigit() and len(left) < 10):
            raise self._failed("what it sends are not the events of a pkgrepo")
        lines = body.splitlines()
        if lines and after == position:
            raise self._failed("it sends events, and the position before them")
        if len(lines) > MOST_EVENTS:
            raise self._failed(f"it sends {len(lines)} events, where {MOST_EVENTS} were asked for")
        return Page(
            [item for line in lines for item in _items(self._decode(line, _Event), images=self.images)],
            after,
            int(left),
        )

    async def packages(self, cursor: str) -> tuple[list[str], str | None]:
        """The keys of some packages, and the cursor of the next ones; None after the last."""
        page = await self._page(f"repository/{self._repository}/packages", cursor, _Package)
        if page is None:
            raise self._failed(f"it has no repository {self.followed.repository}, or none that may be read")
        return [each.key for each in page[0]], page[1]

    async def versions(self, package: str) -> AsyncIterator[list[str]]:
        """Iterate over the versions of a package, in pages; none if there is no such package."""
        cursor: str | None = ""
        for _ in range(MOST_PAGES):
            found = await self._page(f"{self._package(package)}/versions", cursor or "", _Listed)
            page, cursor = ([], None) if found is None else found
            yield [each.version for each in page]
            if cursor is None:
                return
        raise self._failed(f"it lists too many versions of {package}")

    async def version(self, package: str, version: str) -> RemoteVersion | None:
        """A version with its files; None if there is no such one, or none that may be read."""
        return await self._get(f"{self._package(package)}/versions/{quote(version, safe='')}", RemoteVersion)

    async def deleted(self, cursor: str, package: str = "") -> tuple[list[RemoteDeleted], str | None]:
        """Some names that are taken by what was deleted, of one package or all, and the cursor of the next ones."""
        of = f"?package={quote(package, safe='')}" if package else ""
        page = await self._page(f"repository/{self._repository}/deleted-names{of}", cursor, RemoteDeleted)
        if page is None:
            raise self._failed(f"it does not list what was deleted in {self.followed.repository}")
        if any(bool(each.path) is not bool(each.sha256) for each in page[0]):
            raise self._failed("what it sends is not what a pkgrepo does")
        return page

    @property
    def _repository(self) -> str:
        return quote(self.followed.repository, safe="")

    def _package(self, package: str) -> str:
        return f"package/{self._repository}/{quote(package, safe='')}"

    async def _page(self, path: str, cursor: str, kind: type[T]) -> tuple[list[T], str | None] | None:
        """A page of a list, and the cursor of the next one; None if there is nothing at this path."""
        query = {"limit": str(PAGE)} | ({"cursor": cursor} if cursor else {})
        page = await self._get(f"{path}{'&' if '?' in path else '?'}{urlencode(query)}", _Page)
        if page is None:
            return None
        if len(page.items) > PAGE or page.next == cursor:
            raise self._failed("it sends a list that is none")
        try:
            return msgspec.convert(page.items, list[kind]), page.next  # type: ignore[valid-type]
        except msgspec.ValidationError:
            raise self._failed("what it sends is not what a pkgrepo does") from None

    async def _get(self, path: str, kind: type[T]) -> T | None:
        url, limits = f"{self.followed.server}/api/{path}", ReadLimits(MOST_BYTES, ENDS_S)
        async with self.upstream.open("GET", url, {}, limits=limits, kind=KIND, subject=path, decode=True) as response:
            if response.status == 404:
                await response.read()
                return None
            if response.status != 200:
                raise self._failed(f"it answers {response.status} to a question about {self.followed.repository}")
            return self._decode(await response.read(), kind)

    def _decode(self, data: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failed("what it sends is not what a pkgrepo does") from None

    def _failed(self, reason: str) -> UpstreamFailed:
        return UpstreamFailed(self.upstream.name, reason)


def _items(event: _Event, *, images: bool) -> list[Item]:
    """
    What an event is about: a version; of an image its tags and digest; or the documents of a package.

    A removal without a version may be that of all of them, and names are taken by it. Long lists of tags are cut in
    events.
    """
    about = event.data
    if not about.package:
        return []
    if "package.deleted" in event.type:
        return [*_changed(event, images=images), (about.package, DELETED_NAMES)]
    return _changed(event, images=images)


def _changed(event: _Event, *, images: bool) -> list[Item]:
    """The versions, tags or documents that an event is about."""
    about = event.data
    if images:
        named = [*about.tags, about.digest] if len(about.tags) < MOST_TAGS else []
        return [(about.package, each) for each in named if each] or [(about.package, ALL)]
    if about.version:
        return [(about.package, about.version)]
    whole = "deleted" in event.type or "restored" in event.type
    return [(about.package, ALL if whole else "")]
