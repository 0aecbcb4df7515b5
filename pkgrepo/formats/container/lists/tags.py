"""The list of the tags of an image."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pkgrepo.formats.container.caching import cache_answer
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.target import Target
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity
from pkgrepo.storage.catalog.images.trust import Keys, list_visible_tags
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial
from pkgrepo.storage.catalog.packages.tags import list_tag_names

from .paging import next_page, parse_page


class TagListRequests:
    """Lists tags, in bytewise order. The caller may read the image."""

    def __init__(self, services: Services, visibility: Visibility) -> None:
        self._services = services
        self._visibility = visibility

    async def get(
        self, request: Request, target: Target, identity: Identity, _rest: str, *, beside: Sequence[Target] = ()
    ) -> Answer:
        """
        A page of the tags of an image whose manifests the caller may see, joined with those of the images ``beside``.

        :raises Refusal: there is no such image, or the page size is not a number
        """
        catalog, image = self._services.catalog, target.image
        size, last = parse_page(request)
        every = [each.repository for each in (target, *beside)]
        views = [await self._visibility.view(identity, each, image) for each in every]
        generation = catalog.generation()
        pages = [
            await catalog.scan(_read_tags, each.id, image, last, size + 1, view.keys)
            for each, view in zip(every, views, strict=True)
        ]
        found = [tags for tags, _ in pages if tags is not None]
        if not found:
            raise unknown(target)
        answer = tags_answer(target, sorted({*chain(*found)}) if beside else found[0], size)
        serials = {each.id: None if tags is None else serial for each, (tags, serial) in zip(every, pages, strict=True)}

        def fresh(r: Reader) -> bool:
            return all(package_serial(r, each, image) == serial for each, serial in serials.items())

        if all(view.audiences == (None,) for view in views):  # else it depends on the caller and on the trusted keys
            cache = self._services.answer_cache
            cache_answer(cache, request, target, answer, fresh=fresh, generation=generation)
        return answer


def tags_answer(
    target: Target, found: Sequence[str], size: int, more_headers: Fields = (), *, has_more: bool = False
) -> Answer:
    """The answer with a page of at most ``size`` tags; there is another page if more are ``found``, or ``has_more``."""
    headers: Fields = (*VERSION, (b"Cache-Control", document_cache_control(target.shown)), *more_headers)
    if len(found) > size or has_more:
        found = found[:size]
        if found:
            headers += (next_page(target.url("tags/list"), last=found[-1], n=str(size)),)
    return json_answer({"name": target.name, "tags": found}, headers=headers)


def unknown(target: Target) -> Refusal:
    """The refusal of a request for the tags of an image that does not exist."""
    return Refusal(404, f"there is no image {target.name}", "NAME_UNKNOWN", detail={"name": target.name})


def _read_tags(
    r: Reader, repository_id: int, image: str, after: str, limit: int, keys: Keys
) -> tuple[list[str] | None, int]:
    """A page of tags, or None if there is no such image; and the serial of the image."""
    package = find_package(r, repository_id, image)
    if package is None:
        return None, 0
    if keys is not None:
        return list_visible_tags(r, package.id, keys, after=after, limit=limit), package.serial
    return list_tag_names(r, package.id, after=after, limit=limit), package.serial
