"""The manifests whose subject is a given manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pkgrepo.formats.container.documents.media_types import OCI_INDEX
from pkgrepo.formats.container.names import parse_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.target import Target
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.storage.catalog.images.manifests import Manifest, list_referrers
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.catalog.packages.packages import find_package

from .paging import next_page

MOST = 1000  # entries of a page
PAGE_BYTES = 4 * 1024 * 1024  # bytes of a page; clients limit it as they limit a manifest
ENTRY_BYTES = 512  # approximate bytes of an entry without its annotations
BATCH = 50  # manifests of one query; each may have 64 KiB of annotations


class ReferrerRequests:
    """Lists referrers, in the order of their digests. The caller may read the image."""

    def __init__(self, services: Services, visibility: Visibility) -> None:
        self._services = services
        self._visibility = visibility

    async def get(
        self,
        request: Request,
        target: Target,
        identity: Identity,
        text: str,
        *,
        more_headers: Fields = (),
        beside: Sequence[Target] = (),
    ) -> Answer:
        """
        An image index of the manifests whose subject has this digest. The subject itself need not exist.

        Those of the image and of the images ``beside`` are joined.

        :raises DigestInvalid: the digest is malformed
        """
        digest = str(parse_digest(text))
        types = wanted_types(request)
        after = request.parameter(b"last") or ""
        pages = [await self._page(each, identity, digest, types, after) for each in (target, *beside)]
        # an entry after the end of a page that goes on belongs to the next page
        ends = [str(entries[-1]["digest"]) for entries, more in pages if more]
        listed = {str(each["digest"]): each for entries, _ in reversed(pages) for each in entries}
        entries = [listed[each] for each in sorted(listed) if not ends or each <= min(ends)]
        headers = more_headers
        if ends:
            query = {"artifactType": types[0]} if types else {}
            headers += (next_page(target.url(f"referrers/{digest}"), **query, last=str(entries[-1]["digest"])),)
        return referrers_answer(target, entries, headers, filtered=bool(types))

    async def _page(
        self, target: Target, identity: Identity, digest: str, types: tuple[str, ...], after: str
    ) -> tuple[list[dict[str, Any]], bool]:
        repository, image = target.repository, target.image
        view = await self._visibility.view(identity, repository, image)
        found: tuple[list[dict[str, Any]], bool] = await self._services.catalog.scan(
            _read_referrers, repository, image, digest, types, after, view.keys
        )
        return found


def wanted_types(request: Request) -> tuple[str, ...]:
    """The spellings of the type of artifacts that a client wants; none if it wants all."""
    wanted = request.parameter(b"artifactType") or ""
    # the "+" of a media type is decoded as a blank if the client did not encode it
    return (wanted, wanted.replace(" ", "+")) if wanted else ()


def referrers_answer(
    target: Target, entries: Sequence[Mapping[str, Any]], more_headers: Fields = (), *, filtered: bool
) -> Answer:
    """The answer with a list of referrers; ``filtered`` says that it has only the types that the client wants."""
    headers: Fields = (*VERSION, (b"Cache-Control", document_cache_control(target.shown)), *more_headers)
    if filtered:
        headers += ((b"OCI-Filters-Applied", b"artifactType"),)
    value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
    return json_answer(value, content_type=OCI_INDEX.encode("ascii"), headers=headers)


def _read_referrers(
    r: Reader, repository: Repository, image: str, digest: str, types: tuple[str, ...], after: str, keys: Keys
) -> tuple[list[dict[str, Any]], bool]:
    """A page of entries, and whether more entries follow. Reads at most one batch more than the page holds."""
    entries: list[dict[str, Any]] = []
    package = find_package(r, repository.id, image)
    if package is None:
        return entries, False
    size = 0
    while True:
        found = list_referrers(
            r,
            repository.storage_id,
            package.id,
            digest,
            artifact_types=types,
            after=str(entries[-1]["digest"]) if entries else after,
            limit=BATCH,
            keys=keys,
        )
        for each in found:
            size += ENTRY_BYTES + sum(len(name) + len(text) for name, text in each.annotations.items())
            if entries and (size > PAGE_BYTES or len(entries) == MOST):
                return entries, True
            entries.append(_entry(each))
        if len(found) < BATCH:
            return entries, False


def _entry(manifest: Manifest) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "mediaType": manifest.media_type,
        "digest": manifest.digest,
        "size": manifest.size,
    }
    if manifest.artifact_type:
        entry["artifactType"] = manifest.artifact_type
    if manifest.annotations:
        entry["annotations"] = manifest.annotations
    return entry
