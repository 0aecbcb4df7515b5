"""Lists: tags of an image, images of the server, referrers of a manifest. Every list is sorted bytewise and paged."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from pkgrepo.auth.tokens.bearer import CATALOG_GRANT
from pkgrepo.formats.container.admission import Admission, Target
from pkgrepo.formats.container.manifest_document import OCI_INDEX
from pkgrepo.formats.container.names import parse_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.trust.visibility import Trust
from pkgrepo.formats.container.uploads.requests import parameter
from pkgrepo.gateway.content import document_cache_control
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.storage.catalog.images.manifests import Manifest, list_images, list_referrers
from pkgrepo.storage.catalog.images.trust import Keys, list_shown_tags
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial
from pkgrepo.storage.catalog.packages.tags import list_tag_names

MOST = 10_000  # entries of a page
REFERRERS = 1000  # entries of a page of referrers
REFERRER_BYTES = 4 * 1024 * 1024  # bytes of a page of referrers, which clients read like a manifest
ENTRY_BYTES = 512  # bytes of an entry without its annotations, roughly
AT_ONCE = 50  # referrers read at once; each may have 64 KiB of annotations


class Lists:
    """Reads lists; callers have been let in already."""

    def __init__(self, services: Services, addresses: ImageAddresses, admission: Admission, trust: Trust) -> None:
        self._services = services
        self._trust = trust
        self._addresses = addresses
        self._admission = admission

    async def tags(self, request: Request, target: Target, identity: Identity, _rest: str) -> Answer:
        """
        The tags of an image by which the caller gets something.

        :raises Refusal: there is no such image, or the page is no number
        """
        catalog, repository = self._services.catalog, target.repository
        size, last = _page(request)
        view = await self._trust.view(identity, repository, target.image)
        generation = catalog.generation()
        found, serial = await catalog.scan(_read_tags, repository.id, target.image, last, size + 1, view.keys)
        if found is None:
            raise Refusal(404, f"there is no image {target.name}", "NAME_UNKNOWN", detail={"name": target.name})
        headers = self._headers(repository)
        if len(found) > size:
            found = found[:size]
            if found:
                headers += (_next(target.url("tags/list"), last=found[-1], n=str(size)),)
        answer = json_answer({"name": target.name, "tags": found}, headers=headers)

        def fresh() -> bool:
            return catalog.look_inline(package_serial, repository.id, target.image) == serial

        if view.audiences == (None,):  # else it differs by who asks, and by the keys that are trusted then
            self._services.hot.keep(
                request,
                repository,
                package=target.image,
                negotiate=lambda _: answer,
                fresh=fresh,
                size=answer.size,
                generation=generation,
            )
        return answer

    async def catalog(self, request: Request, identity: Identity) -> Answer:
        """The images that the caller may see, by the names under which they were pushed last and can be pulled."""
        size, last = _page(request)
        limits = identity.limits
        viewer = identity
        if identity.via == "bearer" and limits is not None and CATALOG_GRANT in limits.scopes:
            # a token for the catalog names no repositories: what its owner sees is what it shows
            viewer = self._admission.unbound(identity)
        names: list[str] = []
        default = self._addresses.default(request.authority)
        for prefix, repository in self._addresses.listed(request.authority):
            if len(names) > size:
                break
            if not repository.active or (prefix < last and not last.startswith(prefix)):
                continue
            after = last[len(prefix) :] if last.startswith(prefix) else ""
            alone = False if default is not None and repository.id == default.id else None
            names += await self._images(viewer, repository, prefix, after, size + 1 - len(names), alone)
        if default is not None and default.active:
            names += await self._images(viewer, default, "", last, size + 1, alone=True)
            names.sort()
        headers: Fields = (*VERSION, (b"Cache-Control", b"private, no-cache"))
        if len(names) > size:
            names = names[:size]
            if names:
                headers += (_next(b"/v2/_catalog", last=names[-1], n=str(size)),)
        return json_answer({"repositories": names}, headers=headers)

    async def referrers(self, request: Request, target: Target, identity: Identity, text: str) -> Answer:
        """
        Manifests whose subject is the one of this digest, as an image index; there need not be such a subject.

        :raises DigestInvalid: the digest is malformed
        """
        digest = str(parse_digest(text))
        wanted = parameter(request, "artifactType")
        after = parameter(request, "last")
        # "+" of a media type arrives as a blank when the client did not encode it
        types = (wanted, wanted.replace(" ", "+")) if wanted else ()
        view = await self._trust.view(identity, target.repository, target.image)
        entries, more = await self._services.catalog.scan(
            _read_referrers, target.repository, target.image, digest, types, after, view.keys
        )
        headers = self._headers(target.repository)
        if wanted:
            headers += ((b"OCI-Filters-Applied", b"artifactType"),)
        if more:
            query = {"artifactType": wanted} if wanted else {}
            headers += (_next(target.url(f"referrers/{digest}"), **query, last=str(entries[-1]["digest"])),)
        value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
        return json_answer(value, content_type=OCI_INDEX.encode("ascii"), headers=headers)

    async def _images(
        self, viewer: Identity, repository: Repository, prefix: str, after: str, count: int, alone: bool | None
    ) -> list[str]:
        """Up to ``count`` names of images in a repository that the viewer may read; see L{list_images}."""
        may = self._services.access.may
        names: list[str] = []
        while len(names) < count:
            page = await self._services.catalog.scan(list_images, repository.id, after=after, limit=count, alone=alone)
            readable = [image for image in page if may(viewer, Action.READ, repository, image)]
            names += [prefix + image for image in await self._trust.listed(viewer, repository, readable)]
            if len(page) < count:
                break
            after = page[-1]
        return names[:count]

    def _headers(self, repository: Repository) -> Fields:
        return (*VERSION, (b"Cache-Control", document_cache_control(repository)))


def _read_tags(
    r: Reader, repository_id: int, image: str, after: str, limit: int, keys: Keys
) -> tuple[list[str] | None, int]:
    """A page of tags, or None where there is no such image, with the serial of the image's last change."""
    package = find_package(r, repository_id, image)
    if package is None:
        return None, 0
    if keys is not None:
        return list_shown_tags(r, package.id, keys, after=after, limit=limit), package.serial
    return list_tag_names(r, package.id, after=after, limit=limit), package.serial


def _read_referrers(
    r: Reader, repository: Repository, image: str, digest: str, types: tuple[str, ...], after: str, keys: Keys
) -> tuple[list[dict[str, Any]], bool]:
    """A page of entries, and whether there are more; no more of them are read than the page has room for."""
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
            limit=AT_ONCE,
            keys=keys,
        )
        for each in found:
            size += ENTRY_BYTES + sum(len(name) + len(text) for name, text in each.annotations.items())
            if entries and (size > REFERRER_BYTES or len(entries) == REFERRERS):
                return entries, True
            entries.append(_entry(each))
        if len(found) < AT_ONCE:
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


def _page(request: Request) -> tuple[int, str]:
    """How many entries are wanted at most, and after which. :raises Refusal: that is no number"""
    text = parameter(request, "n")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refusal(400, f"n is a number, not {text[:40]!r}", "PAGINATION_NUMBER_INVALID")
    return (min(int(text), MOST) if text else MOST), parameter(request, "last")


def _next(path: bytes, **query: str) -> tuple[bytes, bytes]:
    return b"Link", b'<%s?%s>; rel="next"' % (path, urlencode(query).encode("ascii"))
