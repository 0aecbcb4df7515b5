"""What a document is made of that a route does not have: other documents of that route, which are kept, and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from pkgrepo.errors import PkgrepoError, UpstreamFailed
from pkgrepo.model import ReadLimits, Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route

from .held import DocumentRequest, Held

ABSENT: Final = frozenset({404, 410})

T = TypeVar("T")


class Answers(Protocol):
    """The answers of all upstreams, see L{pkgrepo.proxy.documents.freshness.Documents}."""

    async def answer(self, repository: Repository, request: DocumentRequest, trace: Trace) -> Held:
        """The present answer to a question."""

    async def read(self, repository: Repository, request: DocumentRequest, held: Held, work: Callable[..., T]) -> T:
        """The result of ``work``, which is called with the parts of an answer."""


class RouteSources:
    """
    See L{Sources}. ``before`` is the earlier answer of the route to the question itself; the failures of a route count
    as those of the ``subject``, which is the package that the question is about.

    ``asked`` are the names of what was asked for, and how many files. ``failure`` is set if an old answer was read,
    which may lack what the route has by now.
    """

    def __init__(
        self,
        repository: Repository,
        route: Route,
        answers: Answers,
        upstreams: Upstreams,
        before: Held | None,
        subject: str,
    ) -> None:
        self._repository = repository
        self._route = route
        self._answers = answers
        self._upstream = upstreams.of(repository.id, route)
        self._timeout_s = upstreams.document_timeout_s
        self._before = before
        self._subject = subject
        self.failure: PkgrepoError | None = None
        self._names: list[str] = []
        self._files = 0

    @property
    def asked(self) -> str:
        """What the route was asked for, as a list in words."""
        files = [f"{self._files} files"] if self._files > 1 else ["a file"] * self._files
        return ", ".join([*self._names, *files])

    async def read(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """See L{Sources.read}."""
        # The key of a question to one route differs from that of the same question to all.
        alone = len(proxy_config_of(self._repository).routes) == 1
        question = request if alone else request.of_route(self._route.name)
        self._names.append(request.name)
        held = await self._answers.answer(self._repository, question, Trace())
        self.failure = self.failure or held.failure
        if held.document.found:
            return await self._answers.read(self._repository, question, held, work)
        if held.failure is not None:
            raise held.missing(request.name)
        return None

    async def read_previous(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """See L{Sources.read_previous}."""
        if self._before is None:
            return None
        return await self._answers.read(self._repository, request, self._before, work)

    async def has(self, path: str) -> bool:
        """See L{Sources.has}."""
        self._names.append(path)
        async with self._upstream.open("HEAD", path, {}, subject=self._subject) as response:
            if response.status == 200:
                return True
            if response.status in ABSENT:
                return False
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")

    async def fetch(self, path: str, most: int) -> bytes | None:
        """See L{Sources.fetch}."""
        self._files += 1
        limits = ReadLimits(most, self._timeout_s)
        async with self._upstream.open("GET", path, {}, limits=limits, subject=self._subject) as response:
            if response.status == 200:
                return await response.read()
            if response.status in ABSENT:
                return None
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")
