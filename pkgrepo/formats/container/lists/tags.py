"""The list of the tags of an image."""

from __future__ import annotations

from collections.abc import Sequence

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

    async def get(self, request: Request, target: Target, identity: Identity, _rest: str) -> Answer:
        """
        A page of the tags of an image whose manifests the caller may see.

        :raises Refusal: there is no such image, or the page size is not a number
        """
        catalog, repository = self._services.catalog, target.repository
        size, last = parse_page(request)
        view = await self._visibility.view(identity, repository, target.image)
        generation = catalog.generation()
        found, serial = await catalog.scan(_read_tags, repository.id, target.image, last, size + 1, view.keys)
        if found is None:
            raise unknown(target)
        answer = tags_answer(target, found, size)

        def fresh(r: Reader) -> bool:
            return package_serial(r, repository.id, target.image) == serial

        if view.audiences == (None,):  # else the answer depends on the caller and on the trusted keys
            cache = self._services.answer_cache
            cache_answer(cache, request, target, answer, fresh=fresh, generation=generation)
        return answer


def tags_answer(target: Target, found: Sequence[str], size: int, more_headers: Fields = ()) -> Answer:
    """The answer with a page of at most ``size`` tags; there is another page if more are ``found``."""
    headers: Fields = (*VERSION, (b"Cache-Control", document_cache_control(target.shown)), *more_headers)
    if len(found) > size:
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
