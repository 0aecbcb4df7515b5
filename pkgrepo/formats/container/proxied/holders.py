"""
Where an image is asked for: in which repositories, at which upstreams, in which order, and by which name.

An image that a hosted member of a virtual repository has belongs to that member; no upstream is asked for it. A member
to which only blobs were pushed does not have the image yet: it is asked for blobs, besides those that have it.

Of the routes of a proxy the one that had the image before is asked first, then the others by priority. A name without a
slash has another form with ``library/`` before it, which is how the public hub names its official images. With the
setting ``library_prefix`` ``auto`` both forms are tried, first the one that was found at this route before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeVar

from attrs import evolve, frozen

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import NotFound
from pkgrepo.formats.container.target import Target, Terms
from pkgrepo.formats.container.trust.visibility import UNTRUSTED
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.search_order import Place, RouteSearch, SearchOrder
from pkgrepo.proxy.configuration import proxy_config_of, routes_of
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.owners import Owners
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.proxy.trace import NameRetired, Trace
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages.packages import package_serial
from pkgrepo.storage.catalog.upstream_documents import list_documents

LIBRARY: Final = "library/"
MOST_REMEMBERED: Final = 10_000  # images

LibraryPrefix = Literal["auto", "always", "never"]


class Places:
    """Remembers where images were found. What it does not know it reads from the rows of their tags."""

    def __init__(self, catalog: ICatalog, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._found: Lru[tuple[int, str], tuple[str, str]] = Lru(MOST_REMEMBERED)
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
        The first response of ``ask``, which raises ``NotFound`` where the image has nothing of the kind.

        See L{pkgrepo.proxy.caching.search_order}: what is asked for ``by_digest`` is the same wherever it is.

        :raises NotFound: it is nowhere; :raises UpstreamFailed: an upstream failed, and no other one has it
        """
        known = await self._known(repository, image)
        replicas = proxy_config_of(repository).replicas
        search = RouteSearch(
            self._each(repository, image, known),
            trace or Trace(),
            self._clock,
            order=SearchOrder(same=by_digest or replicas),
            is_known=lambda place: known == (place.route.name, place.name),
        )

        async def ask_noting(place: Place) -> T:
            response = await ask(place)
            if search.order.failure is None or replicas:
                self._note(repository, image, place)
            return response

        return await search.first(ask_noting, NotFound("image", image))

    async def find_route(self, repository: Repository, image: str) -> str | None:
        """The name of the route that had an image; None if that is not known."""
        known = await self._known(repository, image)
        return None if known is None else known[0]

    async def _known(self, repository: Repository, image: str) -> tuple[str, str] | None:
        """The name of the route, and the image's name there; None if the image was never found."""
        known = self._found.get((repository.id, image))
        return known or await self._catalog.look(_read_place, repository.id, image)

    def _each(self, repository: Repository, image: str, known: tuple[str, str] | None) -> list[Place]:
        places = [
            Place(repository.id, route, name)
            for route in routes_of(repository, image)
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
        self._found.put((repository.id, image), (place.route.name, place.name))
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


T = TypeVar("T")


@frozen(eq=False)
class Holder:
    """
    An image in one of the repositories behind the addressed one, with the rules on the way to it.

    ``beside`` are the images of this name in the hosted repositories after it, whose lists are joined with its own.
    """

    target: Target
    member: FlatMember
    beside: Sequence[Target] = ()

    @property
    def is_hosted(self) -> bool:
        """Whether clients push to it."""
        return self.target.repository.type is RepositoryType.HOSTED


class Holders:
    """Finds them in the configuration and the catalog."""

    def __init__(self, *, catalog: ICatalog, resolver: Resolver, clock: Clock) -> None:
        self._catalog = catalog
        self._resolver = resolver
        self._clock = clock

    async def first(
        self, target: Target, read: Callable[[Holder], Awaitable[T]], trace: Trace, *, by_digest: bool = False
    ) -> T:
        """
        What the first repository behind the addressed one answers.

        See L{pkgrepo.proxy.caching.search_order}: one that has the image is known to have had it.

        :raises NotFound, Refusal: none has it; :raises UpstreamFailed: that is not known
        :raises RepositoryInactive: the only members that have it are switched off
        """
        refusals: list[Refusal] = []
        owners, asked = await self._each(target, trace, by_digest=by_digest)
        absent = NotFound("image", target.image)

        async def ask(index: int, all_answered: bool) -> T:
            try:
                return await read(self._with_terms(target, asked, index, cacheable=all_answered))
            except Refusal as error:
                if not asked[index].is_hosted or error.status != 404 or error.detail == UNTRUSTED:
                    raise
                refusals.append(error)
                raise absent from None

        members = [each.member for each in asked]
        has_image = partial(self._has_image, image=target.image)
        try:
            return await owners.first(members, ask, has_image, absent, same=by_digest)
        except NotFound:
            if refusals:
                raise refusals[0] from None
            raise

    async def lenders(self, target: Target) -> list[Holder]:
        """
        The repositories behind the addressed one whose content of an image a push to it may use.

        A client that was told that content exists does not upload it. By the time of the push the image may belong to
        a hosted member: then upstreams are asked only for an image of which their proxy keeps something.
        """
        owners = await self._resolver.owners(target.repository, target.image, Trace(), what="image")
        found = []
        for member in owners.members:
            repository = member.repository
            if repository.type is RepositoryType.HOSTED:
                lends = repository.active
            else:
                lends = owners.may_ask(member)
                lends = lends and (not owners.is_taken or await self._has_image(repository, target.image))
            if lends:
                found.append(Holder(evolve(target, repository=repository), member))
        return found

    async def _each(self, target: Target, trace: Trace, *, by_digest: bool) -> tuple[Owners, list[Holder]]:
        """
        Who serves the image, and the repositories that are asked.

        :raises NameRetired, RepositoryInactive: see L{Owners.check}
        """
        repository, image = target.repository, target.image
        generation = self._catalog.generation()  # before anything is looked up
        owners = await self._resolver.owners(repository, image, trace, what="image")
        owning = owners.owning
        asked = await self._begun(owners) if by_digest else []
        try:
            owners.check(same=by_digest)
            asked += owning or owners.asked()
        except NameRetired:
            if not asked:
                raise
        active = [each for each in asked if each.repository.active or owners.is_off(each)]
        terms = Terms(repository, owners.unchanged, generation)
        found = [evolve(target, repository=each.repository, terms=terms) for each in active]
        beside = found if owning else []
        return owners, [
            Holder(each, member, beside[index + 1 :])
            for index, (each, member) in enumerate(zip(found, active, strict=True))
        ]

    async def _begun(self, owners: Owners) -> list[FlatMember]:
        """The hosted repositories that have blobs of an image and do not own it."""
        others = [each for each in owners.hosted if each not in owners.owning]
        return [each for each in others if await self._has_image(each.repository, owners.name)]

    def _with_terms(self, target: Target, asked: list[Holder], index: int, *, cacheable: bool) -> Holder:
        """The holder with what its response may be cached for: those before it may have it later."""
        holder, terms = asked[index], asked[index].target.terms
        if target.repository.type is not RepositoryType.VIRTUAL or terms is None:
            return evolve(holder, target=evolve(holder.target, terms=None))
        before = [each.target.repository for each in asked[:index] if not each.is_hosted]
        wait_s = min((proxy_config_of(each).negative_ttl_s for each in before), default=None)
        ends_s = 0 if wait_s is None else self._clock.now_ms() // 1000 + wait_s
        terms = evolve(terms, ends_s=ends_s, cacheable=cacheable)
        return evolve(holder, target=evolve(holder.target, terms=terms))

    async def _has_image(self, repository: Repository, image: str) -> bool:
        return await self._catalog.look(package_serial, repository.id, image) is not None
