"""
Requests that push manifests. A manifest is parsed, checked, and stored with its tags in one transaction.

Evidence are manifests whose layers are signatures, attestations or SBOMs, and no program. Readers see evidence without
a signature, so it must contain nothing that a client can run, see L{pkgrepo.formats.container.evidence}.
"""

from __future__ import annotations

import re

from attrs import evolve, frozen

from pkgrepo.errors import BlobMissing
from pkgrepo.formats.container.configuration import immutable_tags, policy
from pkgrepo.formats.container.documents import MANIFEST_SIZE, MOST_TAGS, ManifestDocument, parse_in_thread
from pkgrepo.formats.container.evidence import HEAD, begins_document
from pkgrepo.formats.container.names import Digest, DigestInvalid, is_digest_like, parse_digest, parse_tag
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, client_of
from pkgrepo.gateway.publishing.quotas import note_quotas
from pkgrepo.gateway.services import Services
from pkgrepo.http.reading.body import BodyTooLarge
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.images.manifests import take_manifest
from pkgrepo.repositories.images.push import Push, Reference, ReferencesMissing, TagCondition, TagExists
from pkgrepo.repositories.publish.content import log_published
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.manifests import find_manifest


async def is_evidence(services: Services, target: Target, document: ManifestDocument) -> bool:
    """Whether all layers of a manifest to be stored exist, and no program can unpack any of them."""
    if not document.evidence:
        return False
    repository = target.repository
    for digest in dict.fromkeys(digest for digest, kind in document.references if kind == "layer"):
        found = await services.catalog.look(find_linked, repository.storage_id, repository.id, target.image, digest)
        if found is None or not found.locator:
            return False
        try:
            head = await services.files.read(repository.storage_id, found.locator, min(found.size, HEAD))
        except BlobMissing:
            return False
        if not begins_document(head):
            return False
    return True


_ETAG = re.compile(r'"([^"]*)"|(\*)')


MOST_LEVELS = 4  # of indexes in indexes whose manifests are taken from members


@frozen
class Call:
    """The request of a push."""

    request: Request
    target: Target
    identity: Identity
    admitted: Admitted


@frozen
class Pushed:
    """A manifest to store; the digest is None if the client named a tag only."""

    data: bytes
    document: ManifestDocument
    digest: Digest | None
    tags: tuple[str, ...] = ()
    condition: TagCondition | None = None


async def push_manifest(
    context: RegistryContext, request: Request, target: Target, identity: Identity, reference: str
) -> Response:
    """
    Store a manifest under its digest, and point tags to it.

    :raises Refusal: a referenced blob or manifest is missing, a tag is immutable, or the manifest is too large
    :raises Invalid, DigestInvalid, TagInvalid: the manifest or reference is malformed
    :raises TagConditionFailed: the condition of the request on the tag does not hold
    """
    digest, tags = _digest_and_tags(request, reference)
    content_type = (request.header(b"content-type") or b"").decode("latin-1").partition(";")[0].strip().lower()
    data = await _read_body(request)
    admitted = await context.authorization.require_again(request, identity, target)
    if digest is not None and not digest.matches(data):
        raise DigestInvalid(f"the manifest is not the content of {digest}")
    rules = policy(target.repository)
    document = await parse_in_thread(context.services.pools, data, content_type, other_types=rules.other_media_types)
    await context.members.check_new_name(request, target)
    await note_quotas(context.services, target.repository, request)
    call = Call(request, target, identity, admitted)
    condition = _condition(request) if digest is None else None
    name = await store_manifest(context, call, Pushed(data, document, digest, tags, condition))
    note = await context.visibility.warning(target, name)
    headers: Fields = (
        *VERSION,
        (b"Location", target.url(f"manifests/{name}")),
        (b"Docker-Content-Digest", name.encode("ascii")),
    )
    if document.subject is not None:
        headers += ((b"OCI-Subject", document.subject.encode("ascii")),)
    if digest is not None:
        headers += tuple((b"OCI-Tag", tag.encode("ascii")) for tag in tags)
    if note is not None:
        # RFC 7234 section 5.5, used by OCI distribution 1.1 ("Warnings"): containerd and oras print it
        headers += ((b"Warning", f'299 - "{note}"'.encode("ascii")),)
    return Response(201, headers=headers)


async def store_manifest(context: RegistryContext, call: Call, pushed: Pushed) -> str:
    """
    Store a manifest whose blobs the image has, and point its tags to it. Returns its digest.

    :raises Refusal: a referenced blob or manifest is missing, or a tag is immutable
    :raises TagConditionFailed, Invalid, Forbidden: see L{take_manifest}
    """
    try:
        return await _store(context, call, pushed)
    except ReferencesMissing as error:
        raise references_refusal(error) from None
    except TagExists as error:
        detail = {"tag": error.tag, "current": error.current, "pushed": error.pushed}
        raise Refusal(403, str(error), "DENIED", detail=detail) from None


async def _store(context: RegistryContext, call: Call, pushed: Pushed, level: int = 0) -> str:
    """
    Store a manifest, with what members of the virtual repository have of it. Returns its digest.

    :raises ReferencesMissing, TagExists, TagConditionFailed, Invalid: see L{take_manifest}
    """
    target, tags, services = call.target, pushed.tags, context.services
    actor, sparse = call.admitted, policy(target.repository).allow_sparse
    if target.virtual is not None:
        await context.members.link_blobs(target, pushed.document.required, client_of(call.request), actor)
        if not sparse and level < MOST_LEVELS:
            await _store_children(context, call, pushed.document, level + 1)
    document = evolve(pushed.document, evidence=await is_evidence(services, target, pushed.document))
    signatures = await context.visibility.verifier.verify_pushed(
        target.repository, target.image, document, pushed.data, tags
    )
    async with services.content.stage(target.repository, target.image, user_id=call.identity.user_id) as staged:
        blob = await staged.store(pushed.data)
        name = f"sha256:{blob.sha256}" if pushed.digest is None else str(pushed.digest)
        push = Push(
            manifest=document.to_record(name, blob.sha256, len(pushed.data)),
            blob=blob,
            required=() if sparse else document.required,
            tags=tags,
            immutable=immutable_tags(target.repository, tags),
            condition=pushed.condition,
            quarantine=context.visibility.quarantine(target.repository, document),
            signatures=signatures,
            client=client_of(call.request),
            alone=target.alone,
        )
        await services.content.change_with_blobs(
            take_manifest, target.repository, staged, [blob], target.image, push, actor
        )
    log_published(target.repository, target.image, ", ".join(tags) or name, actor)
    return name


async def _store_children(context: RegistryContext, call: Call, document: ManifestDocument, level: int) -> None:
    """Store those manifests of an index that the image lacks and a member has."""
    target, services = call.target, context.services
    for digest in dict.fromkeys(each.digest for each in document.required if each.kind == "manifest"):
        if await services.catalog.look(has_content, target, digest):
            continue
        found = await context.members.find_manifest(target, call.identity, digest)
        if found is None:
            await context.members.link_blobs(
                target, (Reference(digest, "layer", 0),), client_of(call.request), call.admitted
            )
            continue
        child = await parse_in_thread(services.pools, found.data, found.media_type, other_types=True)
        await _store(context, call, Pushed(found.data, child, parse_digest(digest)), level)


async def _read_body(request: Request) -> bytes:
    try:
        return await request.body.read_all(MANIFEST_SIZE)
    except BodyTooLarge:
        raise Refusal(413, f"a manifest is at most {MANIFEST_SIZE} bytes", "MANIFEST_INVALID") from None


def has_content(r: Reader, target: Target, digest: str) -> bool:
    """Whether an image has a manifest, or a blob that an index lists like one, see L{take_manifest}."""
    where = (target.repository.storage_id, target.repository.id, target.image, digest)
    return find_manifest(r, *where) is not None or find_linked(r, *where) is not None


def _digest_and_tags(request: Request, reference: str) -> tuple[Digest | None, tuple[str, ...]]:
    """The digest and the tags in the path and query; the digest is None for a push by tag."""
    if not is_digest_like(reference):
        return None, (parse_tag(reference),)
    digest = parse_digest(reference)
    values = request.args.get(b"tag", []) if request.raw_query else []
    tags = tuple(dict.fromkeys(parse_tag(value.decode("utf-8", "replace")) for value in values))
    if len(tags) > MOST_TAGS:
        raise Refusal(400, f"one request sets at most {MOST_TAGS} tags", "TAG_INVALID")
    return digest, tags


def _condition(request: Request) -> TagCondition | None:
    """The condition of the request on the tag (RFC 9110 section 13.1)."""
    if (request.header(b"if-none-match") or b"").strip() == b"*":
        return TagCondition(absent=True)
    value = request.header(b"if-match")
    if value is None:
        return None
    found = _ETAG.findall(value.decode("latin-1"))
    return TagCondition(digests=frozenset(quoted or star for quoted, star in found))


def references_refusal(error: ReferencesMissing) -> Refusal:
    """The refusal of a manifest, which names each reference that is missing."""
    listed = tuple(
        {
            "code": "MANIFEST_BLOB_UNKNOWN",
            "message": f"the manifest refers to {digest}, which this image does not have",
            "detail": {"digest": digest},
        }
        for digest in error.digests
    )
    return Refusal(400, str(error), "MANIFEST_BLOB_UNKNOWN", errors=listed)
