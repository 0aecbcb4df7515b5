"""A resource that is made at the first request for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from pkgrepo.concurrency.late import InThread, Late


@implementer(IResource)
class LateResource(Resource):
    """Passes requests to a resource that is made in a thread at the first one, for which it and others wait."""

    isLeaf = True

    def __init__(self, resource: Late[IResource], in_thread: InThread) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._late = resource
        self._in_thread = in_thread

    def render(self, request: Any) -> Any:
        """Have the resource answer, at once if it is there."""
        if self._late.is_made:
            return self._late().render(request)
        Deferred.fromCoroutine(self._render_made(request)).addErrback(self._fail, request)
        return NOT_DONE_YET

    async def _render_made(self, request: Any) -> None:
        resource = await self._late.get(self._in_thread)
        if not request.gone:
            with request.site.request_context():
                request.render(resource)

    def _fail(self, failure: Failure, request: Any) -> None:
        request.processingFailed(failure)


def late_branches(
    names: Iterable[str], make: Callable[[], Mapping[str, IResource]], in_thread: InThread
) -> dict[str, IResource]:
    """Resources by these names, which are made together at the first request for one of them."""
    made = Late(make)
    return {name: LateResource(Late(partial(_find, made, name)), in_thread) for name in names}


def _find(made: Late[Mapping[str, IResource]], name: str) -> IResource:
    return made()[name]
