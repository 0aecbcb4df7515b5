"""
The labels of images, for rules that ask for them: read once out of the configuration of each manifest.

They are read when a rule first asks for them, whatever brought the manifest, and stored beside it. Of an index those of
each platform are read; what of it a proxy does not keep is fetched for that. A configuration that is larger than
``LARGEST``, or is none, has labels that cannot be known.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.container.documents import IN_THREAD
from pkgrepo.formats.container.inside import LARGEST, read_configuration
from pkgrepo.formats.container.names import find_digest
from pkgrepo.formats.container.proxied.blobs import UpstreamBlobs
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import RepositoryType
from pkgrepo.repositories.policy.rules import PackageRules
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.relations import Labels, configuration_of, find_relations, note_labels

MOST_LABELS: Final = 1000
MOST_BYTES: Final = 64 * 1024  # of all labels of a manifest
MOST_PLATFORMS: Final = 32  # that are read for one request
_MOST_HOLDERS: Final = 8  # manifests that refer to a blob or manifest, which are read for it


def parse_labels(data: bytes) -> Labels | None:
    """The labels in a configuration; None if it cannot be read, or they are too many."""
    try:
        labels = read_configuration(data).labels
    except Invalid:
        return None
    if labels is None or len(labels) > MOST_LABELS:
        return None
    return labels if sum(len(key) + len(value) for key, value in labels.items()) <= MOST_BYTES else None


class ImageLabels:
    """Reads the labels of images that are served, hosted and of upstreams."""

    def __init__(self, services: Services, manifests: UpstreamManifests, blobs: UpstreamBlobs) -> None:
        self._services = services
        self._manifests = manifests
        self._blobs = blobs
        self._in_flight: SingleFlight[tuple[int, str, str], None] = SingleFlight()

    async def ensure(self, target: Target, digest: str, rules: PackageRules) -> None:
        """
        Read the labels by which ``rules`` judge a manifest or blob, unless they are known.

        :raises UpstreamFailed: the configuration of a manifest that is asked for itself cannot be had, and a rule may
            refuse it by its labels. Those of one of several platforms, or of one that holds the blob, are then not
            known; who asks for that manifest is told by its own labels.
        """
        refuses = any("labels" in each.needs and each.action != "warn" for each in rules.rules)
        repository, image = target.repository, target.image
        wanted: list[str] = await self._services.catalog.look(_unread, repository.id, image, digest)
        for each in wanted[:MOST_PLATFORMS]:
            try:
                await self._in_flight.run((repository.id, image, each), partial(self._read, target, each))
            except (UpstreamFailed, NotFound):
                if each == digest and refuses:
                    raise

    async def _read(self, target: Target, digest: str) -> None:
        repository, image, look = target.repository, target.image, self._services.catalog.look
        proxied = repository.type is RepositoryType.PROXY
        kept, name = await look(configuration_of, repository.id, image, digest)
        if not kept and proxied:
            await self._manifests.ensure(target, digest)
            kept, name = await look(configuration_of, repository.id, image, digest)
        if not kept:
            return
        labels: Labels | None = {}
        if name is not None:
            where = (repository.storage_id, repository.id, image, name)
            parsed, blob = find_digest(name), await look(find_linked, *where)
            if proxied and parsed is not None and (blob is None or not blob.locator):
                await self._blobs.keep(repository, image, parsed)
                blob = await look(find_linked, *where)
            if blob is None or not blob.locator:
                return
            labels = None
            if blob.size <= LARGEST:
                data = await self._services.files.read(repository.storage_id, blob.locator, blob.size)
                pools = self._services.pools
                labels = parse_labels(data) if blob.size < IN_THREAD else await pools.cpu(parse_labels, data)
        await self._services.catalog.write(note_labels, repository.id, image, digest, labels)


def _unread(r: Reader, repository_id: int, image: str, digest: str) -> list[str]:
    """The manifests whose labels decide about something, and were not read; its own is the first."""
    found = find_relations(r, repository_id, image, digest)
    around = (find_relations(r, repository_id, image, each) for each in found.within[:_MOST_HOLDERS])
    return list(dict.fromkeys([*found.unread, *(name for each in around for name in each.unread)]))
