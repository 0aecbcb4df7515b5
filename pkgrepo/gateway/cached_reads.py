"""Repository reads that are answered from memory, before any routing."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.http.answering.prepared import PreparedAnswer
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action
from pkgrepo.repositories.downloads import DownloadRecorder

from .access import Access
from .answer_cache import AnswerCache
from .content import sends_all
from .image_addresses import ImageAddresses
from .mounts import Mounts, split
from .strangers import Strangers


class CachedReads:
    """
    Finds the cached answer of a repository read (the ``early`` of L{pkgrepo.http.site.make_site}).

    Permissions are checked for each request. The catalog is asked whether an entry is still valid only after a commit,
    and only if it answers at once. What cannot be answered without waiting goes to the handler. ``ping_answers`` by
    path are the same for all callers whose credentials are known to be valid. ``strangers`` refuses reads without
    credentials that need some.
    """

    def __init__(
        self,
        *,
        mounts: Mounts,
        images: ImageAddresses,
        access: Access,
        downloads: DownloadRecorder,
        answer_cache: AnswerCache,
        strangers: Strangers,
        ping_answers: Mapping[bytes, Answer] | None = None,
    ) -> None:
        self._mounts = mounts
        self._images = images
        self._access = access
        self._downloads = downloads
        self._answer_cache = answer_cache
        self._strangers = strangers
        self._ping_answers = {path: PreparedAnswer(answer) for path, answer in (ping_answers or {}).items()}

    def __call__(self, request: Request) -> PreparedAnswer | None:
        """The cached answer of this request, if there is one and the caller may have it; never waits."""
        prepared = self._ping_answers.get(request.raw_path)
        if prepared is not None:
            return self._answer_ping(request, prepared)
        if not self._mounts.refresh_now():
            return None
        found = self._find(request)
        return self._strangers.refuse_now(request) if found is None else found

    def _answer_ping(self, request: Request, prepared: PreparedAnswer) -> PreparedAnswer | None:
        identity = None if request.header(b"authorization") is None else self._access.recall(request)
        if identity is None:
            return None
        request.principal = identity.username
        request.cache = "hot"
        return prepared

    def _find(self, request: Request) -> PreparedAnswer | None:
        place = split(request.raw_path)
        mount = None if place is None else self._mounts.locate(place)[0]
        repository = self._images.of_request(request) if mount is None else mount.repository
        if repository is None:
            return None
        entry = self._answer_cache.find(request, repository)
        if entry is None or not repository.active:
            return None
        identity = self._access.recall(request)
        if identity is None or not self._access.may_now(identity, Action.READ, repository, entry.package):
            return None
        prepared = self._answer_cache.variant(entry, request)
        if prepared is None:
            return None
        request.principal = identity.username
        request.repository = repository.path
        request.cache = "hot"
        if entry.item is not None and sends_all(request, prepared.answer):
            self._downloads.record(entry.item, identity)
        return prepared
