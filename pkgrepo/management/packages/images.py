"""Images as packages: their versions are tags, and manifests without a tag that are part of no other manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date, timedelta
from functools import partial

from attrs import frozen

from pkgrepo.errors import Conflict, NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import MAX_LIMIT, Page, Position
from pkgrepo.model import Action, Actor, Package, Repository
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.images.blobs import StillNeeded, delete_blob
from pkgrepo.repositories.images.manifests import delete_manifest, delete_tag
from pkgrepo.repositories.images.push import TagImmutable, fixed_tags
from pkgrepo.repositories.upkeep.promotion import find_image_origin
from pkgrepo.storage.catalog.images.contents import content_digests
from pkgrepo.storage.catalog.images.summaries import (
    IMAGE_ORDERS,
    ImagePart,
    ImageVersion,
    Referrer,
    count_image_versions,
    find_image_version,
    image_parts,
    list_image_versions,
    list_referrers,
    most_pulled_tags,
    pulls_of_manifest,
    signers_of,
    tags_of_manifest,
)
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.catalog.packages.tags import every_tag_name
from pkgrepo.storage.catalog.server.trash import Disposal
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument, documents_of_package

from .records import file_url, repository_url
from .schema import FileRecord, PromotedFrom, VersionRecord, VersionSummaryRecord

MOST_STATEMENTS = 20  # about a version that a list reads
# What artifact and media types, tags and annotations have in them, and what such a manifest is.
_KINDS = (
    ("in-toto", "attestation"),
    ("dsse", "attestation"),
    (".att", "attestation"),
    ("sig", "signature"),
    ("spdx", "SBOM"),
    ("cyclonedx", "SBOM"),
    ("sbom", "SBOM"),
)


@frozen
class _Listed:
    """A version in a list, and what is about it."""

    version: ImageVersion
    parts: list[ImagePart]
    origin: UpstreamDocument | None
    pulls: int
    pulled_day: int | None
    statements: list[str]
    signers: list[str]


EPOCH = date(1970, 1, 1)
_LINKS = {
    "Homepage": "org.opencontainers.image.url",
    "Source": "org.opencontainers.image.source",
    "Documentation": "org.opencontainers.image.documentation",
}
_PEOPLE = ("org.opencontainers.image.authors", "org.opencontainers.image.vendor")
LIVE = "live"
WAITING = "waiting"


def are_in(call: Call) -> bool:
    """Whether the packages of the repository are images."""
    format_ = call.services.formats.get(call.repository.format)
    return format_ is not None and format_.images is not None


async def versions(call: Call, package: Package) -> Page[VersionSummaryRecord]:
    """A page of versions, by default sorted by time of push from new to old."""
    page_request, keys = call.page_request, await _keys(call, package.key)
    order = call.order(IMAGE_ORDERS, "-published_at")
    after = page_request.after_position(order)
    limit, alone = page_request.limit + 1, call.flag("without_statements")
    found = await call.catalog.scan(_list, call.repository, package, after, limit, order.name, keys, alone=alone)
    trusted = signature_keys(call) or ()
    total = await call.catalog.scan(count_image_versions, package.id, keys, alone=alone) if page_request.count else None
    return page_request.page(found, lambda each: order.place(each.version), lambda each: _summary(each, trusted), total)


async def references(call: Call, package: Package) -> AsyncIterator[ImageVersion]:
    """The versions of an image, sorted by time of push from new to old."""
    order, keys = IMAGE_ORDERS["-published_at"], await _keys(call, package.key)
    look, after = partial(list_image_versions, order=order.name, keys=keys, limit=MAX_LIMIT), Position()
    while some := await call.catalog.scan(partial(look, after=after), package.id):
        for each in some:
            yield each
        after = order.position(some[-1])


async def version(call: Call, package: Package, name: str) -> VersionRecord:
    """
    A version with its manifests and blobs as files.

    :raises NotFound: there is no such tag or manifest
    """
    found = await find(call, package, name)
    parts, tags = await call.catalog.scan(_parts, call.repository.storage_id, package.id, found.digest)
    address = repository_url(call.base_url, call.repository)
    origin = await call.catalog.scan(find_image_origin, package.id, found.digest)
    return VersionRecord(
        package=package.name,
        version=found.name,
        state=WAITING if found.waiting else LIVE,
        reason="",
        published_at=found.pushed_at,
        publisher=found.publisher,
        license=found.annotations.get("org.opencontainers.image.licenses", ""),
        keywords=[],
        links={label: url for label, key in _LINKS.items() if (url := found.annotations.get(key))},
        dependencies=[],
        requirements=[],
        maintainers=[text for key in _PEOPLE if (text := found.annotations.get(key))],
        tags=tags,
        files=[_file(part, package.key, address) for part in parts],
        file_count=len(parts),
        size=sum(part.size for part in parts),
        metadata={
            "digest": found.digest,
            "media_type": found.media_type,
            "artifact_type": found.artifact_type,
            "subject": found.subject,
            "annotations": dict(found.annotations),
        },
        digest=found.digest,
        promoted=PromotedFrom.of(origin),
    )


async def most_pulled(call: Call, package: Package, from_day: int, limit: int) -> list[tuple[str, int]]:
    """The tags that were pulled most since a day, as pairs (tag, count)."""
    keys = await _keys(call, package.key)
    found: list[tuple[str, int]] = await call.catalog.scan(most_pulled_tags, package.id, from_day, limit, keys)
    return found


async def find(call: Call, package: Package, name: str) -> ImageVersion:
    """The version with this name. :raises NotFound: the caller may see no such one"""
    found: ImageVersion | None = await call.catalog.look(
        find_image_version, package.id, name, await _keys(call, package.key)
    )
    if found is None:
        raise NotFound("version", name)
    call.object = f"{call.repository.path}/{package.key}{'@' if ':' in name else ':'}{name}"
    return found


async def delete(call: Call, package: Package, name: str, disposal: Disposal, *, dry_run: bool = False) -> list[str]:
    """
    Delete a tag, or a manifest with all its tags; the names that were deleted, or would be with ``dry_run``.

    :raises NotFound: there is no such version; :raises Conflict: the repository does not allow deletion
    """
    _check_policy(call.repository)
    found = await find(call, package, name)
    by_digest = ":" in name
    gone = [name, *(await call.catalog.look(tags_of_manifest, package.id, found.digest) if by_digest else ())]
    if not dry_run:
        command = partial(delete_manifest if by_digest else delete_tag, disposal=disposal)
        await call.change_content(call.entry(detail={"digest": found.digest}), command, package.key, name, call.actor)
    return gone


async def delete_image(call: Call, package: Package, disposal: Disposal, *, dry_run: bool = False) -> list[str]:
    """
    Delete the manifests and blobs of an image one after the other; their digests.

    Content that is pushed during the deletion is kept. :raises Conflict: the repository does not allow deletion
    """
    _check_policy(call.repository)
    fixed = fixed_tags(call.repository, await call.catalog.scan(every_tag_name, package.id))
    if fixed:
        raise TagImmutable(fixed[0])
    manifests, blobs = await call.catalog.scan(content_digests, package.id)
    gone: list[str] = []
    of_manifests: Callable[..., None] = partial(delete_manifest, disposal=disposal)
    for command, digests in ((of_manifests, manifests), (_delete_blob, blobs)):
        for digest in digests:
            if not dry_run:
                entry = call.entry(f"{call.repository.path}/{package.key}@{digest}")
                try:
                    await call.change_content(entry, command, package.key, digest, call.actor)
                except StillNeeded:
                    continue  # a manifest that refers to it was pushed meanwhile
                except NotFound:
                    if command is of_manifests:
                        continue  # it was deleted meanwhile; a blob also goes to the trash with its manifest
            gone.append(digest)
    return gone


def _check_policy(repository: Repository) -> None:
    if not repository.policy.get("allow_delete", True):
        raise Conflict("nothing is deleted in this repository (policy.allow_delete)")


async def _keys(call: Call, package: str) -> Keys:
    if await call.may(Action.WRITE, call.repository, package):
        return None
    return signature_keys(call)


def signature_keys(call: Call) -> Keys:
    """Ids of the keys that the repository trusts; None where no signature is needed."""
    images = call.format.images
    return None if images is None else images.signature_keys(call.repository)


def _list(
    r: Reader,
    repository: Repository,
    package: Package,
    after: Position,
    limit: int,
    order: str,
    keys: Keys,
    *,
    alone: bool,
) -> list[_Listed]:
    """Versions with their parts, and with what the upstream said that has this digest for a tag."""
    said = documents_of_package(r, repository.id, package.key)
    origins = {str(each.meta["digest"]): each for each in said if each.found and "digest" in each.meta}
    found = list_image_versions(r, package.id, after=after, limit=limit, order=order, keys=keys, alone=alone)
    return [
        _Listed(
            each,
            image_parts(r, repository.storage_id, package.id, each.digest),
            origins.get(each.digest),
            *pulls_of_manifest(r, package.id, each.digest),
            _kinds(list_referrers(r, package.id, each.digest, MOST_STATEMENTS)),
            signers_of(r, package.id, each.digest),
        )
        for each in found
    ]


def _kinds(referrers: Sequence[Referrer]) -> list[str]:
    return sorted({kind_of(each) for each in referrers})


def kind_of(referrer: Referrer) -> str:
    """What a manifest about another one is: signature, attestation, SBOM, or its type."""
    types = [str(text) for key, text in referrer.annotations.items() if key.startswith("dev.sigstore.bundle")]
    said = " ".join((*types, referrer.tag, referrer.artifact_type or referrer.media_type)).lower()
    return next((kind for mark, kind in _KINDS if mark in said), referrer.artifact_type or referrer.media_type)


def _parts(r: Reader, storage_id: int, package_id: int, digest: str) -> tuple[list[ImagePart], list[str]]:
    return image_parts(r, storage_id, package_id, digest), tags_of_manifest(r, package_id, digest)


def _delete_blob(tx: Transaction, repository: Repository, image: str, digest: str, _actor: Actor, now_ms: int) -> None:
    delete_blob(tx, repository, image, digest, now_ms)


def _summary(found: _Listed, trusted: Sequence[str]) -> VersionSummaryRecord:
    version, parts, origin = found.version, found.parts, found.origin
    return VersionSummaryRecord(
        version=version.name,
        state=WAITING if version.waiting else LIVE,
        reason="",
        published_at=version.pushed_at,
        publisher=version.publisher,
        files=len(parts),
        size=sum(part.size for part in parts),
        downloads=found.pulls,
        digest=version.digest,
        artifact_type=version.artifact_type,
        pulled_on=None if found.pulled_day is None else EPOCH + timedelta(days=found.pulled_day),
        statements=found.statements,
        signed_by=[each for each in found.signers if each in trusted],
        route=None if origin is None else origin.route,
        fetched_at=None if origin is None else from_ms(origin.fetched_ms),
    )


def _file(part: ImagePart, image: str, address: str) -> FileRecord:
    algorithm, _, text = part.digest.partition(":")
    path = f"v2/{image}/{'manifests' if part.kind == 'manifest' else 'blobs'}/{part.digest}"
    return FileRecord.from_attributes(
        part, name=part.digest, path=path, url=file_url(address, path), digests={algorithm: text}
    )
