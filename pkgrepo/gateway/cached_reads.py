"""Repository reads that are answered from memory, before any routing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from pkgrepo.errors import StorageFailed
from pkgrepo.gateway.callers.access import Access
from pkgrepo.gateway.responses.cache import ResponseCache
from pkgrepo.gateway.responses.content import sent_part
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.repeats import LONGEST_S, Repeatable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import Action, Identity
from pkgrepo.repositories.downloads import DownloadRecorder

from .image_addresses import ImageAddresses
from .mounts import ELSEWHERE, Entry, Mounts


class CachedReads:
    """
    Finds the cached response of a repository read (the ``find_prepared`` of L{pkgrepo.http.site.make_site}).

    Permissions are checked for each request. The catalog is asked whether an entry is still valid only after a commit,
    and only if it answers at once. What cannot be answered without waiting goes to the handler. Reads without
    credentials that need some are refused from memory, too. ``clock`` returns seconds since the epoch.
    """

    def __init__(
        self,
        *,
        mounts: Mounts,
        images: ImageAddresses,
        access: Access,
        downloads: DownloadRecorder,
        response_cache: ResponseCache,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._mounts = mounts
        self._images = images
        self._access = access
        self._downloads = downloads
        self._response_cache = response_cache
        self._pings: dict[bytes, PreparedResponse] = {}

    def add_pings(self, responses: Mapping[bytes, Response]) -> None:
        """Responses by raw path, for all callers whose credentials are known to be valid; of one more format."""
        self._pings.update({path: PreparedResponse(response) for path, response in responses.items()})

    def __call__(self, request: Request) -> PreparedResponse | None:
        """The cached response of this request, if there is one and the caller may have it; never waits."""
        entry = self._mounts.enter(request)
        prepared = self._pings.get(request.raw_path)
        if prepared is not None:
            return self._answer_ping(request, prepared)
        if not (request.entry is ELSEWHERE if entry is None else entry.current):
            return None
        try:
            found = self._find(request, entry)
        except StorageFailed:  # the catalog cannot be read: the handler says so in the client's form
            return None
        if found is None and entry is not None:
            found = self._mounts.refuse_now(request, entry)
            if found is not None:
                request.repeatable = Repeatable
        return found

    def _answer_ping(self, request: Request, prepared: PreparedResponse) -> PreparedResponse | None:
        identity = None if request.header(b"authorization") is None else self._access.recall(request)
        if identity is None:
            return None
        request.principal = identity.username
        request.cache = "hot"
        request.repeatable = lambda: self._repeatable(identity)
        return prepared

    def _find(self, request: Request, entry: Entry | None) -> PreparedResponse | None:
        if entry is None:
            repository = self._images.of_request(request)
        else:
            repository = None if entry.mount is None else entry.mount.repository
        if repository is None:
            return None
        kept = self._response_cache.find(request, repository)
        if kept is None or not repository.active:
            return None
        identity = self._access.recall(request)
        if identity is None or not self._access.authorizer.may_now(identity, Action.READ, repository, kept.package):
            return None
        prepared = self._response_cache.variant(kept, request)
        if prepared is None:
            return None
        request.principal = identity.username
        request.repository = repository.path
        request.cache = "hot"
        part = "" if kept.item is None else sent_part(request, prepared.answer)
        record = None
        if kept.item is not None and part:
            record = partial(self._downloads.record, kept.item, identity, whole=part == "all")
            record(request.client_address)
        seconds_left = self._response_cache.seconds_left
        request.repeatable = lambda: self._repeatable(identity, record, seconds_left(kept))
        return prepared

    def _repeatable(
        self, identity: Identity, record: Callable[[str], object] | None = None, seconds: float = LONGEST_S
    ) -> Repeatable:
        """How a response for this identity may be repeated, which has ``seconds`` left; ``record`` counts it."""
        limits = identity.limits
        if limits is not None and limits.expires_at is not None:
            seconds = min(seconds, limits.expires_at.timestamp() - self._clock())
        counts: list[Callable[[str], object]] = [] if record is None else [record]
        if identity.token_id is not None:
            counts.append(lambda _address: self._access.count_use(identity))
        return Repeatable(min(seconds, LONGEST_S), tuple(counts))
