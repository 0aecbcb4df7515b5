"""Asks the routes of a proxy for one file, in order, until one has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from attrs import define, frozen
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, PkgrepoError, UpstreamFailed, UpstreamMismatch
from pkgrepo.interfaces import ICatalog, IUpstreamResponse
from pkgrepo.model import BlobInfo, ReadLimits, Repository
from pkgrepo.proxy.addressed.chosen_routes import ChosenRoutes
from pkgrepo.proxy.addressed.request import (
    LARGEST_FILE,
    Announcers,
    FileRequest,
    digest_in_file,
    digests_in_header,
    select,
)
from pkgrepo.proxy.caching.search_order import Place, RouteSearch, SearchOrder
from pkgrepo.proxy.caching.states import NegativeCache
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.download import Download, Fields, Headers, check_no_page
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.limits import MOST_TRIES, TRIES_WITH_OLD
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import CacheCounters
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.staged import Staged

T = TypeVar("T")

ABSENT = (404, 410)
UNQUOTED = "/!$&'()*+,;=:@"  # RFC 3986 section 3.3: characters of paths; servers know "+" and ":" as they are


@frozen(kw_only=True)
class Context:
    """The parts that all files of all proxies share; ``limits`` are those of one file."""

    catalog: ICatalog
    content: ContentWriter
    clock: Clock
    upstreams: Upstreams
    transfers: Transfers
    chosen_routes: ChosenRoutes
    announcers: Announcers
    negative_cache: NegativeCache
    counters: CacheCounters
    limits: ReadLimits


@define
class Unchanged(PkgrepoError):  # noqa: N818 - named for what is the case
    """The route says that what it sent before is still the file."""

    route: str

    def __str__(self) -> str:
        return f"the file of {self.route!r} has not changed"


class Walk:
    """
    The search of one file, for all who want it at a time.

    ``conditions`` are header fields for the route of this name, by which it can say that its file has not changed.
    """

    def __init__(
        self,
        repository: Repository,
        request: FileRequest,
        context: Context,
        *,
        conditions: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._repository = repository
        self._request = request
        self._context = context
        self.trace = Trace()
        self._conditions = conditions or {}
        self._search: RouteSearch | None = None
        self._place: Place | None = None
        self._tried_twice: Place | None = None
        self._digests: Mapping[str, str] = {}
        self._url = ""
        self._fields: Headers | None = None
        self._published_ms: int | None = None
        self._prefetched: Deferred[str | UpstreamFailed | None] | None = (
            None  # the first checksum, asked for with the file
        )

    def download(
        self,
        record: Callable[[Staged, BlobInfo, Headers], Awaitable[T]],
        find: Callable[[], Awaitable[T | None]],
    ) -> Download[T]:
        """The transfer of the file; ``record`` and ``find`` are those of L{Download}."""
        return Download(
            route=self.route_name(),
            asked=self.route_name,
            open=self.open,
            stage=lambda: self._context.content.stage(self._repository),
            record=record,
            algorithms=self._request.algorithms,
            announced=self.announced,
            again=self.again,
            find=find,
            describe=self.describe,
            adopt=self.adopt,
            may_be_empty=self._request.may_be_empty,
        )

    @property
    def remote(self) -> RemoteFile:
        """The file as the last response describes it; its digests are those that are announced."""
        request = self._request
        source = FileSource(request.path, self._url, None, dict(self._digests), request.media_type, {})
        entry = Entry(request.sort, request.version_key, request.version_text, self._published_ms, False, {}, [])
        return RemoteFile(self._repository, request.package_key, self.route.name, source, entry)

    @property
    def route(self) -> Route:
        """The route that has the file, or was asked last; the first one if another process has asked."""
        return proxy_config_of(self._repository).routes[0] if self._place is None else self._place.route

    def route_name(self) -> str:
        """The name of that route."""
        return self.route.name

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified of the last response."""
        return (None, None) if self._fields is None else (self._fields.get("ETag"), self._fields.get("Last-Modified"))

    def describe(self) -> dict[str, Any]:
        """Where the file comes from, for a process that has readers of it, too."""
        etag, last_modified = self.validators
        return {
            "route": self.route_name(),
            "url": self._url,
            "digests": dict(self._digests),
            "etag": etag,
            "last_modified": last_modified,
        }

    def adopt(self, described: Mapping[str, Any]) -> None:
        """Take what another process has described."""
        routes = proxy_config_of(self._repository).routes
        route = next((each for each in routes if each.name == described["route"]), routes[0])
        self._place = Place(self._repository.id, route)
        self._url, self._digests = described["url"], described["digests"]
        validators = {"etag": described["etag"], "last-modified": described["last_modified"]}
        self._fields = Fields({name: value for name, value in validators.items() if value is not None})
        self._published_ms = _milliseconds(described["last_modified"])

    @asynccontextmanager
    async def open(self, headers: Mapping[str, str], *, method: str = "GET") -> AsyncIterator[IUpstreamResponse]:
        """
        The answer with the file, or with the rest of it that ``headers`` ask the same route for.

        :raises NotFound: no route has it; :raises UpstreamFailed: one failed, and no other has it
        :raises Unchanged: see ``conditions``
        """
        async with AsyncExitStack() as stack:
            if headers:
                yield await stack.enter_async_context(self._ask(self.route, method, headers))
                return
            async with self._context.chosen_routes.deciding(self._repository, self._request):
                search = self._search = self._search or await self._begin()
                absent = NotFound("file", self._request.path)
                try:
                    response = await search.first(partial(self._find, search, method, stack), absent)
                except BaseException:
                    self._cancel_prefetch()
                    _note_unasked(search)
                    raise
                recorded = method == "GET" and self._request.lasting
                self._context.chosen_routes.note(self._repository, self._request, self.route, recorded=recorded)
            self._fields = response.headers
            self._published_ms = _milliseconds(response.headers.get("Last-Modified"))
            self._digests = select(digests_in_header(response.headers), self._request.algorithms)
            self._context.announcers.note(self._repository.id, self.route.name, announces=bool(self._digests))
            yield response

    def again(self, error: UpstreamFailed) -> bool:
        """Whether to ask once more for a file that could not be had: a wrong one of the same route, or of the next."""
        search, place = self._search, self._place
        self._context.chosen_routes.drop(self._repository, self._request)
        if isinstance(error, UpstreamMismatch) and (place is None or place != self._tried_twice):
            self._tried_twice = place
            return True
        if search is None or place is None or place not in search.rest:  # another process has asked, or it was left
            return False
        goes_on = search.leave(place, error)
        _note_unasked(search)
        return goes_on

    async def announced(self, _fields: Headers) -> Mapping[str, str]:
        """
        The digests that the file of the last response must have; empty if its upstream announces none.

        :raises UpstreamFailed: that is not known
        """
        if self._digests:
            self._cancel_prefetch()
            return self._digests
        for algorithm in self._request.companions:
            prefetched, self._prefetched = self._prefetched, None
            digest = await (self._try_checksum(self.route, algorithm) if prefetched is None else prefetched)
            if isinstance(digest, UpstreamFailed):
                raise digest
            if digest is not None:
                self._digests = {algorithm: digest}
                break
        return self._digests

    async def _try_checksum(self, route: Route, algorithm: str) -> str | UpstreamFailed | None:
        """The digest in the file of a checksum, None if there is none, or the error: perhaps it is not needed."""
        try:
            return await self._ask_checksum(route, algorithm)
        except UpstreamFailed as error:
            return error

    async def _ask_checksum(self, route: Route, algorithm: str) -> str | None:
        limits = ReadLimits(LARGEST_FILE, self._context.upstreams.document_timeout_s)
        upstream, key = self._context.upstreams.of(self._repository.id, route), self._request.package_key
        url = f"{_url(route, self._request)}.{algorithm}"
        async with upstream.open("GET", url, {}, limits=limits, subject=key) as response:
            if response.status in ABSENT:
                return None
            if response.status != 200:
                raise UpstreamFailed(route.name, f"it answered {response.status} for a checksum")
            digest = digest_in_file(await response.read(), algorithm)
        if digest is None:  # a portal's sentence: the file is no better
            raise UpstreamFailed(route.name, "what it sent as a checksum is none")
        return digest

    def _prefetch_checksum(self, search: RouteSearch, route: Route, method: str) -> None:
        """
        Ask for the checksum at once if it will be needed, which saves the time of a request.

        With several routes to ask that would often be for a file that the route does not have.
        """
        self._cancel_prefetch()
        companions = self._request.companions
        if len(search.rest) > 1 or self._conditions or method != "GET" or not companions:
            return
        if self._context.announcers.is_silent(self._repository.id, route.name):
            self._prefetched = Deferred.fromCoroutine(self._try_checksum(route, companions[0]))

    def _cancel_prefetch(self) -> None:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None:
            prefetched.addErrback(lambda _: None)
            prefetched.cancel()

    async def _begin(self) -> RouteSearch:
        routes = await self._context.chosen_routes.candidates(self._repository, self._request)
        return RouteSearch(
            [Place(self._repository.id, each) for each in routes],
            self.trace,
            self._context.clock,
            order=SearchOrder(same=proxy_config_of(self._repository).replicas),
            is_known=lambda place: place.route.name in self._conditions,
            repository=self._repository.path,
        )

    async def _find(self, search: RouteSearch, method: str, stack: AsyncExitStack, place: Place) -> IUpstreamResponse:
        """The response of a route, which ``stack`` closes. :raises NotFound: it does not have the file"""
        self._place, route = place, place.route
        self._prefetch_checksum(search, route, method)
        try:
            response = await stack.enter_async_context(self._ask(route, method, self._conditions.get(route.name)))
            if response.status == 304 and route.name in self._conditions:
                raise Unchanged(route.name)
            if response.status in ABSENT:
                raise NotFound("file", self._request.path)
            if response.status != 200:
                raise UpstreamFailed(route.name, f"it answered with status {response.status}")
            check_no_page(route.name, self._request.path, response)
        except BaseException as error:
            await stack.aclose()
            if isinstance(error, UpstreamFailed):
                self._context.chosen_routes.drop(self._repository, self._request)
            raise
        self._url = response.url
        return response

    @asynccontextmanager
    async def _ask(
        self, route: Route, method: str, headers: Mapping[str, str] | None
    ) -> AsyncIterator[IUpstreamResponse]:
        upstream = self._context.upstreams.of(self._repository.id, route)
        url = _url(route, self._request)
        tries = TRIES_WITH_OLD if route.name in self._conditions else MOST_TRIES
        limits, key = self._context.limits, self._request.package_key
        async with upstream.open(method, url, headers or {}, limits=limits, subject=key, tries=tries) as response:
            yield response


def _note_unasked(search: RouteSearch) -> None:
    for place in search.rest if search.order.ended else ():
        search.note(StepKind.WITHHELD, place)


def with_digests(remote: RemoteFile, digests: Mapping[str, str]) -> RemoteFile:
    """The file with the digests that it is known to have, beside those that were announced."""
    source = msgspec.structs.replace(remote.source, digests={**remote.source.digests, **digests})
    return RemoteFile(remote.repository, remote.key, remote.route, source, remote.entry)


def _url(route: Route, request: FileRequest) -> str:
    return f"{route.url}/{quote(request.path, safe=UNQUOTED)}"


def _milliseconds(date: str | None) -> int | None:
    try:
        return None if date is None else round(parsedate_to_datetime(date).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
