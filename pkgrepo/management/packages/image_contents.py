"""
Shows what an image is made of: its platforms with layers and commands, and what refers to it (OCI image 1.1).

A configuration is whatever bytes the publisher pushed: what is malformed in it is left out, and every list has a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import BlobMissing, Invalid, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages import images
from pkgrepo.management.packages.contents import ImageRecord, ImageStep, PlatformRecord, ReferrerRecord
from pkgrepo.model import Package
from pkgrepo.storage.catalog.file_facts import FileFacts
from pkgrepo.storage.catalog.images.contents import StoredManifest, find_manifests
from pkgrepo.storage.catalog.images.relations import find_inside
from pkgrepo.storage.catalog.images.summaries import Referrer, list_referrers, signers_of
from pkgrepo.untrusted.go_json import Keys, with_keys
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

MOST_VALUES: Final = 100_000  # in a document
MOST_PLATFORMS: Final = 24
MOST_STEPS: Final = 300
MOST_LABELS: Final = 100
MOST_PROGRAMS: Final = 50
LONGEST: Final = 2000  # characters of a command or a label

_ABOUT: Final = "vnd.docker.reference.digest"  # the annotation of a statement in an index
_COMMAND_PREFIXES: Final = ("/bin/sh -c #(nop) ", "/bin/sh -c ")
MOST_REFERRERS: Final = 50
MOST_BYTES: Final = 8 * 1024 * 1024  # of manifests and configurations that a request reads; usual ones have 10 KiB

_PREDICATES: Final = ("dev.sigstore.bundle.predicateType", "in-toto.io/predicate-type", "predicateType")


@frozen
class Platforms:
    """The platforms that a manifest or an index names, and whether the index has attestations of them."""

    names: tuple[str, ...] = ()
    attested: bool = False


# Of manifests by their digests, which their bytes decide; a page of tags would read them each time.
_PLATFORMS: Final[Lru[str, Platforms]] = Lru(20_000)

table = Table("packages")


class Descriptor(msgspec.Struct):
    """A reference to content. Indexes say for which platform it is."""

    digest: str = ""
    size: int = 0
    mediaType: str = ""
    platform: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None


class ImageDocument(msgspec.Struct):
    """A manifest, with a configuration and layers, or an index, with manifests."""

    config: Descriptor | None = None
    layers: list[Descriptor] = []
    manifests: list[Descriptor] = []


class _Step(msgspec.Struct):
    created_by: str = ""
    empty_layer: bool = False


class _Settings(msgspec.Struct):
    Labels: dict[str, Any] | None = None
    Entrypoint: list[str] | None = None
    Cmd: list[str] | None = None
    WorkingDir: str = ""
    User: str = ""
    ExposedPorts: dict[str, Any] | None = None


class _Configuration(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    variant: str = ""
    created: str = ""
    config: _Settings | None = None
    history: list[_Step] = []


_KEYS: Final[Keys] = {
    **dict.fromkeys(_Configuration.__struct_fields__),
    "config": dict.fromkeys(_Settings.__struct_fields__),
    "history": dict.fromkeys(_Step.__struct_fields__),
}


def read_document(data: bytes) -> ImageDocument:
    """A manifest or an index. :raises Invalid: the bytes are no such document"""
    check_value_count(data, MOST_VALUES, "the manifest")
    return decode_as(data, ImageDocument, what="the manifest")


def is_attestation(descriptor: Descriptor) -> bool:
    """Whether an index lists this as a statement about another manifest, as BuildKit does."""
    return _ABOUT in (descriptor.annotations or {})


def describe_platform(
    digest: str, document: ImageDocument | None, configuration: bytes | None, listed: Mapping[str, Any] | None
) -> PlatformRecord:
    """
    What is known of the image for one platform.

    ``document`` and ``configuration`` are None where the server does not have them; ``listed`` is the platform that an
    index names.
    """
    found, named = _configuration(configuration), listed or {}
    settings = found.config or _Settings()
    layers = [] if document is None else document.layers
    return PlatformRecord(
        digest=digest,
        os=_text(named.get("os")) or found.os,
        architecture=_text(named.get("architecture")) or found.architecture,
        variant=_text(named.get("variant")) or found.variant,
        created=found.created[:40],
        size=sum(each.size for each in layers),
        stored=document is not None,
        layers=len(layers),
        steps=_steps(layers, found.history),
        labels={key[:200]: _text(value) for key, value in list((settings.Labels or {}).items())[:MOST_LABELS]},
        entrypoint=_words(settings.Entrypoint),
        command=_words(settings.Cmd),
        user=settings.User[:200],
        folder=settings.WorkingDir[:LONGEST],
        ports=[each[:20] for each in list(settings.ExposedPorts or {})[:MOST_LABELS]],
    )


def _configuration(data: bytes | None) -> _Configuration:
    if data is None:
        return _Configuration()
    try:
        check_value_count(data, MOST_VALUES, "the configuration")
        found = with_keys(decode_as(data, dict[str, Any], what="the configuration"), _KEYS)
        return msgspec.convert(found, _Configuration)
    except (Invalid, msgspec.ValidationError):
        return _Configuration()


def _steps(layers: Sequence[Descriptor], history: Sequence[_Step]) -> list[ImageStep]:
    """Commands with the layers that they made; without a history that fits, the layers alone."""
    if sum(not step.empty_layer for step in history) != len(layers):
        return [_step("", layer) for layer in layers[:MOST_STEPS]]
    rest = iter(layers)
    every = [_step(step.created_by, None if step.empty_layer else next(rest)) for step in history]
    return every[:MOST_STEPS]


def _step(command: str, layer: Descriptor | None) -> ImageStep:
    for prefix in _COMMAND_PREFIXES:
        command = command.removeprefix(prefix)
    if layer is None:
        return ImageStep(command=command.strip()[:LONGEST])
    return ImageStep(
        command=command.strip()[:LONGEST], digest=layer.digest, size=layer.size, media_type=layer.mediaType[:200]
    )


def _words(words: Sequence[str] | None) -> list[str]:
    return [each[:LONGEST] for each in (words or ())[:MOST_LABELS]]


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


class Budget:
    """How many bytes of documents a request may still read."""

    def __init__(self) -> None:
        self._rest = MOST_BYTES

    def take(self, size: int) -> bool:
        """Whether so many bytes may be read; they are then taken."""
        if not 0 <= size <= self._rest:
            return False
        self._rest -= size
        return True


@table.get("/package/<repository>/<package>/versions/<version>/image", CONTENT_READERS, "Show what an image is made of")
async def show_image(call: Call, version: str) -> ImageRecord:
    """
    Only for images. Commands, labels and sizes are those in the image's documents, which are not verified.

    platforms has at most 24; platform_count is their number in the index. referrers are manifests about this one,
    such as signatures and SBOMs; signed_by are the ids of the keys that the repository trusts, and whose signatures
    the server has verified.
    """
    if not images.are_in(call):
        raise NotFound("image", call.package or "")
    package = await call.find_package()
    found = await images.find(call, package, version)
    top, budget = await stored_manifests(call, package.id, [found.digest]), Budget()
    document = await _document(call, top[0], budget) if top else None
    if document is None:
        raise NotFound("manifest", found.digest)
    listed = [each for each in document.manifests if not is_attestation(each)]
    if document.manifests:
        platforms = await _listed(call, package.id, listed[:MOST_PLATFORMS], budget)
    else:
        platforms = [await _platform(call, found.digest, top[0], document, None, budget)]
    referrers = await call.catalog.scan(list_referrers, package.id, found.digest, MOST_REFERRERS)
    return ImageRecord(
        digest=found.digest,
        media_type=found.media_type,
        platforms=platforms,
        platform_count=len(listed) if document.manifests else 1,
        attestations=[each.digest for each in document.manifests if is_attestation(each)][:MOST_REFERRERS],
        referrers=[_referrer(each) for each in referrers],
        signed_by=await _signers(call, package.id, found.digest),
    )


async def evidence_listed(call: Call, package_id: int, digest: str) -> dict[str, str]:
    """The statements that an index lists, as BuildKit pushes them, each with the manifest that it is about."""
    held = await stored_manifests(call, package_id, [digest])
    document = await _document(call, held[0], Budget()) if held else None
    listed = document.manifests[:MOST_REFERRERS] if document is not None else []
    return {each.digest: _text((each.annotations or {}).get(_ABOUT)) for each in listed if is_attestation(each)}


async def platforms_of(call: Call, package: Package, digests: Sequence[str]) -> dict[str, Platforms]:
    """The platforms of manifests and indexes, such as linux/arm64/v8, as far as so many documents may be read."""
    budget, unread = Budget(), [each for each in dict.fromkeys(digests) if each not in _PLATFORMS]
    for held in await stored_manifests(call, package.id, unread):
        document = await _document(call, held, budget)
        if document is None:
            continue
        if document.manifests:
            listed = [each for each in document.manifests if not is_attestation(each)]
            named = [describe_platform(each.digest, None, None, each.platform) for each in listed]
        else:
            named = [await _platform(call, held.digest, held, document, None, budget)]
        names = ("/".join(filter(None, (each.os, each.architecture, each.variant))) for each in named)
        known = sorted({each for each in names if each and not each.startswith("unknown")})
        _PLATFORMS.put(held.digest, Platforms(tuple(known), any(map(is_attestation, document.manifests))))
    return {each: _PLATFORMS.get(each) or Platforms() for each in digests}


async def _signers(call: Call, package_id: int, digest: str) -> list[str]:
    trusted = images.signature_keys(call) or ()
    signers = await call.catalog.look(signers_of, package_id, digest)
    return [each for each in signers if each in trusted]


async def _listed(call: Call, package_id: int, listed: Sequence[Descriptor], budget: Budget) -> list[PlatformRecord]:
    """The platforms of an index, of which one at a time is in memory."""
    stored = {each.digest: each for each in await stored_manifests(call, package_id, [each.digest for each in listed])}
    found: list[PlatformRecord] = []
    for each in listed:
        held = stored.get(each.digest)
        document = None if held is None else await _document(call, held, budget)
        found.append(await _platform(call, each.digest, held, document, each.platform, budget))
    return found


async def _platform(
    call: Call,
    digest: str,
    held: StoredManifest | None,
    document: ImageDocument | None,
    listed: Mapping[str, Any] | None,
    budget: Budget,
) -> PlatformRecord:
    configuration = None
    if held is not None and document is not None and document.config is not None:
        for blob in held.blobs:
            if blob.digest == document.config.digest:
                configuration = await read_blob(call, blob.locator, blob.size, budget)
    described = await call.shared.pools.cpu(describe_platform, digest, document, configuration, listed)
    inside: FileFacts | None = await call.catalog.look(find_inside, digest)
    if inside is None or inside.contents is None:
        return described
    programs = None if inside.shape is None else [each[:LONGEST] for each in inside.shape.programs[:MOST_PROGRAMS]]
    return msgspec.structs.replace(described, contents=list(inside.contents), programs=programs)


async def _document(call: Call, manifest: StoredManifest, budget: Budget) -> ImageDocument | None:
    """A manifest or an index; None if it cannot be read."""
    data = await read_blob(call, manifest.locator, manifest.size, budget)
    if data is None:
        return None
    try:
        return await call.shared.pools.cpu(read_document, data)
    except Invalid:
        return None


async def stored_manifests(call: Call, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
    """Manifests of an image with their blobs, those that the server has."""
    return await call.catalog.scan(_find, call.repository.storage_id, package_id, digests)


async def read_blob(call: Call, locator: str, size: int, budget: Budget) -> bytes | None:
    """Stored bytes; None if they are lost, or more than may be read."""
    if not locator or not budget.take(size):
        return None
    try:
        return await call.shared.files.read(call.repository.storage_id, locator, size)
    except BlobMissing:
        return None


def _find(r: Reader, storage_id: int, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
    return find_manifests(r, storage_id, package_id, digests)


def _referrer(found: Referrer) -> ReferrerRecord:
    annotations = dict(found.annotations)
    says = next((str(annotations[key]) for key in _PREDICATES if key in annotations), "")
    return ReferrerRecord.from_attributes(
        found, annotations=annotations, kind=images.kind_of(found), says=says[:LONGEST]
    )
