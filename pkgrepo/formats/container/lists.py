"""
Paged lists in bytewise order: tags of an image, images of the server (``_catalog``), referrers of a manifest.

A virtual repository has the images that its members would serve under their names; of upstreams only what is kept.
Images of a hidden repository are listed for callers who may change its settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from pkgrepo.auth.tokens.bearer import CATALOG_GRANT
from pkgrepo.formats.container.access import CATALOG_SCOPE
from pkgrepo.formats.container.documents import OCI_INDEX
from pkgrepo.formats.container.names import parse_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.registry import RegistryContext, check_read, require_credentials
from pkgrepo.formats.container.target import Target, cache_response
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.uncached import find_private
from pkgrepo.storage.catalog.images.manifests import Manifest, list_images, list_referrers
from pkgrepo.storage.catalog.images.trust import Keys, list_visible_tags
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial
from pkgrepo.storage.catalog.packages.tags import list_tag_names

MOST = 10_000  # entries of a page


def parse_page(request: Request) -> tuple[int, str]:
    """The page size, and the entry after which the page begins. :raises Refusal: the size is not a number"""
    text = request.parameter(b"n") or ""
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refusal(400, f"n is a number, not {text[:40]!r}", "PAGINATION_NUMBER_INVALID")
    return (min(int(text), MOST) if text else MOST), (request.parameter(b"last") or "")


def next_page(path: bytes, **query: str) -> tuple[bytes, bytes]:
    """The header that links to the next page of a list."""
    return b"Link", b'<%s?%s>; rel="next"' % (path, urlencode(query).encode("ascii"))


async def get_tags(
    context: RegistryContext,
    request: Request,
    target: Target,
    identity: Identity,
    _rest: str,
    *,
    beside: Sequence[Target] = (),
) -> Response:
    """
    A page of the tags of an image whose manifests the caller may see, joined with those of the images ``beside``.

    :raises Refusal: there is no such image, or the page size is not a number
    """
    catalog, image = context.services.catalog, target.image
    size, last = parse_page(request)
    every = [each.repository for each in (target, *beside)]
    views = [await context.visibility.view(identity, each, image) for each in every]
    generation = catalog.generation()
    pages = [
        await catalog.scan(_read_tags, each.id, image, last, size + 1, view.keys)
        for each, view in zip(every, views, strict=True)
    ]
    found = [tags for tags, _ in pages if tags is not None]
    if not found:
        raise unknown_image(target)
    shown, hidden, ends_s, settled = set[str](), set[str](), 0, True
    for each, (tags, _) in zip((target, *beside), pages, strict=True):
        own = [tag for tag in tags or () if tag not in shown and tag not in hidden]  # the first one that has it decides
        refused = await context.images.rules.hidden_tags(each, own)
        hidden |= refused.tags
        shown.update(tag for tag in own if tag not in refused.tags)
        ends_s = min(filter(None, (ends_s, refused.ends_s)), default=0)
        settled = settled and refused.settled
    listed = sorted({*chain(*found)}) if beside else found[0]
    response = tags_response(target, listed, size, hidden=hidden)
    serials = {each.id: None if tags is None else serial for each, (tags, serial) in zip(every, pages, strict=True)}

    def fresh(r: Reader) -> bool:
        return all(package_serial(r, each, image) == serial for each, serial in serials.items())

    if settled and all(
        view.audiences == (None,) for view in views
    ):  # else it depends on the caller and on the trusted keys
        cache = context.services.response_cache
        cache_response(cache, request, target, response, fresh=fresh, generation=generation, ends_s=ends_s)
    return response


def tags_response(
    target: Target,
    found: Sequence[str],
    size: int,
    more_headers: Fields = (),
    *,
    has_more: bool = False,
    hidden: Set[str] = frozenset(),
) -> Response:
    """
    The answer with a page of at most ``size`` tags; there is another page if more are ``found``, or ``has_more``.

    Those that are ``hidden`` are left out of their page.
    """
    headers: Fields = (*VERSION, (b"Cache-Control", document_cache_control(target.shown)), *more_headers)
    if len(found) > size or has_more:
        found = found[:size]
        if found:
            headers += (next_page(target.url("tags/list"), last=found[-1], n=str(size)),)
    return json_response({"name": target.name, "tags": [each for each in found if each not in hidden]}, headers=headers)


def unknown_image(target: Target) -> Refusal:
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


async def get_catalog(context: RegistryContext, request: Request) -> Response:
    """
    A page of the images that the caller may read. Each has the name under which it was pushed last.

    :raises Refusal: credentials are required, or the page size is not a number
    """
    check_read(request, "this list is only read")
    identity = await context.authorization.authenticate(request, CATALOG_SCOPE)
    require_credentials(context, request, CATALOG_SCOPE)
    if identity.scoped is False:
        sentence = "the token was not issued for this"
        raise context.authorization.challenge(request, CATALOG_SCOPE, sentence, "insufficient_scope")
    await context.services.registry.refresh()
    size, last = parse_page(request)
    limits = identity.limits
    viewer = identity
    if identity.via == "bearer" and limits is not None and CATALOG_GRANT in limits.scopes:
        # the scope of a catalog token contains no repositories: list the images that its owner may read
        viewer = await context.authorization.token_owner(identity)
    names: list[str] = []
    default = context.addresses.default(request.asked_host)
    for prefix, repository in context.addresses.listed(request.asked_host):
        if len(names) > size:
            break
        if prefix < last and not last.startswith(prefix):
            continue
        after = last[len(prefix) :] if last.startswith(prefix) else ""
        alone = False if default is not None and repository.id == default.id else None
        names += await _images_of(context, viewer, repository, prefix, after, size + 1 - len(names), alone)
    if default is not None:
        names += await _images_of(context, viewer, default, "", last, size + 1, alone=True)
        names.sort()
    headers: Fields = (*VERSION, (b"Cache-Control", b"private, no-cache"))
    if len(names) > size:
        names = names[:size]
        if names:
            headers += (next_page(b"/v2/_catalog", last=names[-1], n=str(size)),)
    return json_response({"repositories": names}, headers=headers)


async def _images_of(
    context: RegistryContext,
    viewer: Identity,
    repository: Repository,
    prefix: str,
    after: str,
    count: int,
    alone: bool | None,
) -> list[str]:
    """Up to ``count`` names of images that the viewer may read in a repository; ``alone``: see L{list_images}."""
    services = context.services
    names: list[str] = []
    if not repository.active or not await services.access.may_list(viewer, repository):
        return names
    scan = services.catalog.scan
    members = [each for each in services.proxy.resolver.ways(repository) if each.repository.active]
    while len(names) < count:
        found = [await scan(list_images, each.repository.id, after=after, limit=count, alone=alone) for each in members]
        page = sorted({*chain(*found)})[:count]
        readable = {*await services.access.allowed(viewer, Action.READ, repository, page)}
        served: set[str] = set()
        for member, images in zip(members, found, strict=True):
            served |= await _served(context, viewer, repository, member, [each for each in images if each in readable])
        names += [prefix + image for image in sorted(served)]
        if len(page) < count:
            break
        after = page[-1]
    return names[:count]


async def _served(
    context: RegistryContext, viewer: Identity, repository: Repository, member: FlatMember, images: Sequence[str]
) -> set[str]:
    """The images, of some of a hosted or proxy member, that a repository serves under their names."""
    if member.repository.type is RepositoryType.HOSTED:
        return {*await context.visibility.filter_images(viewer, member.repository, images)}
    if repository.type is not RepositoryType.VIRTUAL:
        return {*images}
    members = context.services.proxy.resolver.flat_members(repository)
    return {*images} - await find_private(context.services.catalog, members, member, images)


MOST_REFERRERS = 1000  # entries of a page
PAGE_BYTES = 4 * 1024 * 1024  # bytes of a page; clients limit it as they limit a manifest
ENTRY_BYTES = 512  # approximate bytes of an entry without its annotations
BATCH = 50  # manifests of one query; each may have 64 KiB of annotations


async def get_referrers(
    context: RegistryContext,
    request: Request,
    target: Target,
    identity: Identity,
    text: str,
    *,
    more_headers: Fields = (),
    beside: Sequence[Target] = (),
) -> Response:
    """
    An image index of the manifests whose subject has this digest. The subject itself need not exist.

    Those of the image and of the images ``beside`` are joined.

    :raises DigestInvalid: the digest is malformed; :raises RuleRefused: a rule refuses the subject
    """
    digest = str(parse_digest(text))
    types = wanted_types(request)
    after = request.parameter(b"last") or ""
    pages = [await _referrers(context, each, identity, digest, types, after) for each in (target, *beside)]
    # an entry after the end of a page that goes on belongs to the next page
    ends = [str(entries[-1]["digest"]) for entries, more in pages if more]
    listed = {str(each["digest"]): each for entries, _ in reversed(pages) for each in entries}
    entries = [listed[each] for each in sorted(listed) if not ends or each <= min(ends)]
    headers = more_headers
    if ends:
        query = {"artifactType": types[0]} if types else {}
        headers += (next_page(target.url(f"referrers/{digest}"), **query, last=str(entries[-1]["digest"])),)
    return referrers_response(target, entries, headers, filtered=bool(types))


async def _referrers(
    context: RegistryContext, target: Target, identity: Identity, digest: str, types: tuple[str, ...], after: str
) -> tuple[list[dict[str, Any]], bool]:
    repository, image = target.repository, target.image
    await context.images.rules.choose(target, digest, Trace(), counted=False)
    view = await context.visibility.view(identity, repository, image)
    found: tuple[list[dict[str, Any]], bool] = await context.services.catalog.scan(
        _read_referrers, repository, image, digest, types, after, view.keys
    )
    return found


def wanted_types(request: Request) -> tuple[str, ...]:
    """The spellings of the type of artifacts that a client wants; none if it wants all."""
    wanted = request.parameter(b"artifactType") or ""
    # the "+" of a media type is decoded as a blank if the client did not encode it
    return (wanted, wanted.replace(" ", "+")) if wanted else ()


def referrers_response(
    target: Target, entries: Sequence[Mapping[str, Any]], more_headers: Fields = (), *, filtered: bool
) -> Response:
    """The answer with a list of referrers; ``filtered`` says that it has only the types that the client wants."""
    headers: Fields = (*VERSION, (b"Cache-Control", document_cache_control(target.shown)), *more_headers)
    if filtered:
        headers += ((b"OCI-Filters-Applied", b"artifactType"),)
    value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
    return json_response(value, content_type=OCI_INDEX.encode("ascii"), headers=headers)


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
            if entries and (size > PAGE_BYTES or len(entries) == MOST_REFERRERS):
                return entries, True
            entries.append(_entry(each))
        if len(found) < BATCH:
            return entries, False


def _entry(manifest: Manifest) -> dict[str, Any]:
    entry: dict[str, Any] = {"mediaType": manifest.media_type, "digest": manifest.digest, "size": manifest.size}
    if manifest.artifact_type:
        entry["artifactType"] = manifest.artifact_type
    if manifest.annotations:
        entry["annotations"] = manifest.annotations
    return entry
