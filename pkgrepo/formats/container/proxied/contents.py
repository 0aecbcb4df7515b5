"""
What images have inside, for rules that ask for it: read once out of the configuration and the layers of each manifest.

It is read when a manifest is asked for, or a blob that only manifests have which were not looked into yet, whatever
brought them. What of an image a proxy does not keep is fetched for that. Layers are read from the lowest on, each once
for all images that have the same ones below it; the stack is known by its chain id, and the image by its digest, in all
repositories. Of an image with a layer that cannot be read, or that is to be fetched from elsewhere, nothing is known.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.archives.inside import Shape, Word
from pkgrepo.archives.layers import chain_of, programs_with
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, Invalid, NotFound, UpstreamFailed
from pkgrepo.failure_log import FailureLog
from pkgrepo.formats.container.documents import IMAGES, ManifestDocument, parse_in_thread
from pkgrepo.formats.container.inside import LARGEST, Configuration, find_configuration
from pkgrepo.formats.container.names import find_digest
from pkgrepo.formats.container.proxied.blobs import UpstreamBlobs
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, RepositoryType
from pkgrepo.repositories.policy.image_judge import ImageJudge
from pkgrepo.storage.catalog.file_facts import LOCKED, FileFacts
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob, find_linked
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest
from pkgrepo.storage.catalog.images.relations import NOTHING_INSIDE, find_inside, note_inside

MOST_LAYERS: Final = 200  # of an image; docker runs none with more than 127
UNKNOWN: Final = FileFacts(contents=LOCKED)
EMPTY: Final = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of {}: OCI empty descriptor


@frozen
class _Parts:
    """The digests of the configuration, and of the layers from the lowest on; see L{ManifestDocument} for ``runs``."""

    configuration: str
    layers: tuple[str, ...]
    runs: bool

    @classmethod
    def of(cls, document: ManifestDocument) -> _Parts | None:
        """Those of an image; None if some of them are not in the registry. :raises Invalid: it is no image"""
        named = [digest for digest, kind in document.references if kind in ("config", "layer")]
        if document.media_type not in IMAGES or (named[0] == EMPTY and not document.runs):
            raise Invalid("this is no image")
        here = {each.digest for each in document.required}
        return cls(named[0], tuple(named[1:]), document.runs) if here.issuperset(named) else None


class ImageContents:
    """Reads what images have inside that are served, hosted and of upstreams."""

    def __init__(self, services: Services, manifests: UpstreamManifests, blobs: UpstreamBlobs) -> None:
        self._services = services
        self._manifests = manifests
        self._blobs = blobs
        self._in_flight: SingleFlight[tuple[int, str, str], None] = SingleFlight()
        self._layers_in_flight: SingleFlight[tuple[int, str], tuple[str, ...]] = SingleFlight()
        self._failures = FailureLog(Logger(), "what an image has inside is not known, as it cannot be read")

    async def ensure(self, target: Target, digest: str, judge: ImageJudge) -> None:
        """
        Read what a rule asks of the inside of a manifest, or of the manifests that have a blob, unless it is known.

        :raises UpstreamFailed, NotFound, BlobMissing: what is asked for cannot be had from an upstream, and a rule may
            refuse it by what it has inside. For a blob, and of what is hosted, that is then not known.
        :raises StorageFull, StorageFailed: it cannot be stored
        """
        refuses = any("contents" in each.needs and each.refuses for each in judge.rules.rules)
        raises = refuses and target.repository.type is RepositoryType.PROXY
        wanted: Collection[str] = await self._services.catalog.scan(judge.unread, digest)  # a layer has many holders
        for each in wanted:
            try:
                key = (target.repository.id, target.image, each)
                await self._in_flight.run(key, partial(self._read, target, each))
            except (UpstreamFailed, NotFound, BlobMissing):
                if each == digest and raises:
                    raise

    async def _read(self, target: Target, digest: str) -> None:
        if target.repository.type is RepositoryType.PROXY:
            await self._manifests.ensure(target, digest)
        manifest: Manifest | None = await self._services.catalog.look(_manifest, target, digest)
        if manifest is None or not manifest.locator:
            return
        data = await self._services.files.read(target.repository.storage_id, manifest.locator, manifest.size)
        try:
            # What is noted for all repositories depends on the bytes alone: in another one they may have another type.
            parts = _Parts.of(await parse_in_thread(self._services.pools, data, "", other_types=True))
        except Invalid:
            found = NOTHING_INSIDE
        else:
            found = UNKNOWN if parts is None else await self._look_into(target, parts)
        await self._note(digest, found)

    async def _look_into(self, target: Target, parts: _Parts) -> FileFacts:
        """What an image has inside."""
        try:
            said = await self._configuration(target, parts.configuration)
            if said is None and parts.runs:  # podman goes by the layers that the manifest names
                raise Invalid("the configuration of the image names no layers")
            if said is None:
                return NOTHING_INSIDE
            programs = await self._programs(target, parts.layers)
        except Invalid as error:
            place = f"{target.repository.path}/{target.image}"
            self._failures.failed(error, reason=f"{place}@{parts.configuration}: {error}")
            return UNKNOWN
        found: frozenset[Word] = said.words | ({"setuid"} if programs else frozenset())
        return FileFacts(contents=tuple(sorted(found)), shape=Shape(programs=programs, runs=said.runs))

    async def _configuration(self, target: Target, configuration: str) -> Configuration | None:
        blob = await self._blob(target, configuration)
        if blob.size > LARGEST:
            raise Invalid(f"the configuration has more than {LARGEST} bytes")
        data = await self._services.files.read(target.repository.storage_id, blob.locator, blob.size)
        return await self._services.pools.cpu(find_configuration, data)

    async def _programs(self, target: Target, layers: Collection[str]) -> tuple[str, ...]:
        """The programs with setuid or setgid in a stack of layers."""
        if len(layers) > MOST_LAYERS:
            raise Invalid(f"it has more than {MOST_LAYERS} layers")
        chain, programs = "", tuple[str, ...]()
        for layer in layers:
            chain = chain_of(chain, layer)
            known: FileFacts | None = await self._services.catalog.look(find_inside, _named(chain))
            if known is not None and known.contents == LOCKED:
                raise Invalid(f"the layer {layer} was read before, and cannot be read")
            if known is not None and known.shape is not None:
                programs = known.shape.programs
                continue
            read = partial(self._read_layer, target, layer, chain, programs)
            programs = await self._layers_in_flight.run((target.repository.id, chain), read)
        return programs

    async def _read_layer(self, target: Target, layer: str, chain: str, below: Collection[str]) -> tuple[str, ...]:
        """The programs in a stack, of which a layer is put on others that have those ``below``."""
        blob = await self._blob(target, layer)
        info, storage_id = BlobInfo(blob.sha256, blob.size, blob.locator, {}), target.repository.storage_id
        read = partial(programs_with, name=f"the layer {layer}", below=below)
        try:
            programs = await self._services.files.inspect(self._services.pools.inside, storage_id, info, read)
        except Invalid:  # which may have taken seconds, and would again for each image that has it
            await self._note(_named(chain), UNKNOWN)
            raise
        await self._note(_named(chain), FileFacts(shape=Shape(programs=programs)))
        return programs

    async def _blob(self, target: Target, digest: str) -> LinkedBlob:
        """A blob of an image, which is fetched if it is not kept. :raises NotFound, UpstreamFailed: it cannot be had"""
        repository, image, look = target.repository, target.image, self._services.catalog.look
        where = (repository.storage_id, repository.id, image, digest)
        parsed, blob = find_digest(digest), await look(find_linked, *where)
        if repository.type is RepositoryType.PROXY and parsed is not None and (blob is None or not blob.locator):
            await self._blobs.keep(repository, image, parsed)
            blob = await look(find_linked, *where)
        if blob is None or not blob.locator:
            raise NotFound("blob", digest)
        found: LinkedBlob = blob
        return found

    async def _note(self, name: str, facts: FileFacts) -> None:
        await self._services.catalog.write(note_inside, name, facts, self._services.clock.now_ms())


def _named(chain: str) -> str:
    """The name of a stack of layers: that of one layer is its digest, which a manifest may have, too."""
    return f"layers {chain}"


def _manifest(r: Reader, target: Target, digest: str) -> Manifest | None:
    repository = target.repository
    return find_manifest(r, repository.storage_id, repository.id, target.image, digest)
