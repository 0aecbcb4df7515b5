"""
Where an image is asked for: at which upstreams, in which order, and by which name.

The route that had the image before is asked first, then the others by priority. A name without a slash has another form
with ``library/`` before it, which is how the public hub names its official images. With the setting ``library_prefix``
``auto`` both forms are tried, first the one that was found at this route before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Literal, TypeVar

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.trace import StepKind, Trace, failed_step
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.upstreams.upstream_documents import list_documents

LIBRARY: Final = "library/"
MOST_REMEMBERED: Final = 10_000  # images

LibraryPrefix = Literal["auto", "always", "never"]

T = TypeVar("T")


@frozen
class Place:
    """An image at an upstream, which calls it ``name``."""

    repository_id: int
    route: Route
    name: str


class Places:
    """Remembers where images were found. What it does not know it reads from the rows of their tags."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._found: OrderedDict[tuple[int, str], tuple[str, str]] = OrderedDict()
        self._with_library: dict[tuple[int, str], bool] = {}

    async def first(
        self,
        repository: Repository,
        image: str,
        ask: Callable[[Place], Awaitable[T]],
        trace: Trace | None = None,
        *,
        by_digest: bool = False,
    ) -> T:
        """
        The first answer of ``ask``, which raises ``NotFound`` where the image has nothing of the kind.

        If an upstream fails, those after it are not asked: what they call by this name may be something else, except
        ``by_digest``, and if the routes are replicas. None is asked after the one that had the image has failed.

        :raises NotFound: it is nowhere; :raises UpstreamFailed: an upstream failed, and no other one has it
        """
        known = await self._known(repository, image)
        goes_on = by_digest or proxy_config_of(repository).replicas
        failure: UpstreamFailed | None = None
        failed: Route | None = None
        for place in self._each(repository, image, known):
            if place.route is failed:
                continue
            step = partial((trace or Trace()).add, route=place.route.name, what=place.name)
            if failure is not None and not goes_on:
                step(StepKind.WITHHELD)
                continue
            try:
                answer = await ask(place)
            except NotFound:
                step(StepKind.ABSENT, at_ms=self._clock.now_ms())
                continue
            except UpstreamFailed as error:
                step(failed_step(error), at_ms=self._clock.now_ms(), why=str(error))
                if isinstance(error, UpstreamDenied):
                    raise  # a decision: no other route is asked for what this one refuses
                failure, failed = failure or error, place.route
                if known is not None and known[0] == place.route.name:
                    break
                continue
            if failure is None or proxy_config_of(repository).replicas:
                self._note(repository, image, place)
            return answer
        raise failure or NotFound("image", image)

    async def find_route(self, repository: Repository, image: str) -> str | None:
        """The name of the route that had an image; None if that is not known."""
        known = await self._known(repository, image)
        return None if known is None else known[0]

    async def _known(self, repository: Repository, image: str) -> tuple[str, str] | None:
        """The name of the route, and the image's name there; None if the image was never found."""
        known = self._found.get((repository.id, image))
        return known or await self._catalog.look(_read_place, repository.id, image)

    def _each(self, repository: Repository, image: str, known: tuple[str, str] | None) -> list[Place]:
        config = proxy_config_of(repository)
        if config.rules.reserved_by(image) is not None:
            return []
        places = [
            Place(repository.id, route, name)
            for route in config.routes
            if route.serves(image)
            for name in self._names(repository, route, image)
        ]
        return sorted(places, key=lambda each: (each.route.name, each.name) != known)

    def _names(self, repository: Repository, route: Route, image: str) -> list[str]:
        """The names under which an image may be known at a route, the likelier one first."""
        prefix: LibraryPrefix = repository.settings.get("library_prefix") or "auto"
        if "/" in image or prefix == "never":
            return [image]
        if prefix == "always":
            return [LIBRARY + image]
        names = [image, LIBRARY + image]
        return names[::-1] if self._with_library.get((repository.id, route.name)) else names

    def _note(self, repository: Repository, image: str, place: Place) -> None:
        self._found[repository.id, image] = (place.route.name, place.name)
        self._found.move_to_end((repository.id, image))
        if len(self._found) > MOST_REMEMBERED:
            self._found.popitem(last=False)
        if "/" not in image:
            self._with_library[repository.id, place.route.name] = place.name != image


def tag_key(image: str, tag: str) -> str:
    """The key of the row that tells when a tag was confirmed by which upstream."""
    return f"tag/{image}:{tag}"


def _read_place(r: Reader, repository_id: int, image: str) -> tuple[str, str] | None:
    prefix = tag_key(image, "")
    found = list_documents(r, repository_id, after=prefix, limit=1)
    if not found or not found[0].key.startswith(prefix):
        return None
    return found[0].route, str(found[0].meta.get("name", image))
