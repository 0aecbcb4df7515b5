"""
What a few changes did to an image, so that no more than that of its directory has to be touched.

Events name manifests and tags; what these are now is in the catalog. What they were is in the directory, which showed
it: the manifest that a tag stood for may have no tag any more, and the parts of a manifest that went may have become
superfluous.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import Factory, define, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.repositories.layout.line_documents import open_document
from pkgrepo.repositories.layout.sidecars import decode
from pkgrepo.storage.catalog.images import contents as image_contents
from pkgrepo.storage.catalog.images.contents import Named, StoredManifest, StoredTag
from pkgrepo.storage.catalog.packages.events import Event

from .directory import INDEX_FORM, ImageLayoutWriter, read_index_entry, tag_key
from .sidecars import ManifestSidecar

MOST = 1000  # manifests, and tags, that are looked at one by one; more of them is the whole image


@define
class ImageChanges:
    """
    What events say of an image: manifests and tags by what changed, blobs that came, manifests that were trusted.

    ``whole`` is for what only a look at everything can tell.
    """

    digests: set[str] = Factory(set)
    tags: set[str] = Factory(set)
    completed: set[str] = Factory(set)
    trusted: set[str] = Factory(set)
    whole: bool = False

    @classmethod
    def of(cls, told: Iterable[Event]) -> ImageChanges:
        """What these events say."""
        changes = cls()
        for event in told:
            changes._add(event)
        return changes

    @property
    def many(self) -> bool:
        """Whether a look at the whole image is no more work."""
        return self.whole or max(map(len, (self.digests, self.tags, self.completed, self.trusted))) > MOST

    def _add(self, event: Event) -> None:
        digest = event.data.get("digest")
        if digest is None:
            self.whole = True
        elif event.kind == "completed":
            self.completed.add(digest)
        elif event.kind == "trusted":
            self.trusted.add(digest)
        else:
            self.digests.add(digest)
            for kind in ("tags", "hidden", "released"):
                self.tags.update(event.data.get(kind, ()))


@frozen
class Before:
    """What the directory showed: manifests by the tags that changed, and what the manifests referred to that did."""

    tagged: Mapping[str, str]
    references: frozenset[tuple[str, str]]


@frozen
class Changed:
    """
    What an image has now of what changed.

    ``tags`` and ``loose`` are by name and digest, with None for what is not one (any more); ``gone`` are manifests,
    ``superfluous`` blobs and manifests by their digests.
    """

    manifests: Sequence[StoredManifest]
    tags: Mapping[str, StoredTag | None]
    loose: Mapping[str, Named | None]
    gone: frozenset[str]
    superfluous: frozenset[str]


def widen(reader: Reader, writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> ImageChanges | None:
    """The changes with manifests and tags alone; None when that is the whole image."""
    package_id = writer.package_id(reader, image)
    if changes.many or package_id is None:
        return None
    digests, tags = set(changes.digests), set(changes.tags)
    for digest in changes.completed:
        names = image_contents.names_of_blob(reader, package_id, digest)
        digests.update(image_contents.manifests_naming(reader, package_id, names, MOST))
    waiting = set(changes.trusted)
    seen: set[str] = set()
    while waiting:
        digest = waiting.pop()
        seen.add(digest)
        tags.update(image_contents.tags_of(reader, package_id, digest, MOST))
        waiting.update(set(image_contents.children_of(reader, package_id, digest)) - seen)
    wider = ImageChanges(digests=digests | seen, tags=tags)
    return None if wider.many else wider


def read_before(writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> Before:
    """
    What the directory of an image shows of what changed; blocks.

    :raises Invalid: the directory is not as it was written
    """
    places = writer.places(image)
    tagged: dict[str, str] = {}
    with open_document(INDEX_FORM, writer.layout.file(places.index)) as index:
        for tag in changes.tags:
            entry = index.find(tag_key(tag))
            if entry is not None:
                tagged[tag] = read_index_entry(entry).digest
    references: set[tuple[str, str]] = set()
    for digest in changes.digests:
        place = places.sidecar_of(digest)
        data = writer.layout.read(place)
        if data is not None:
            references.update(decode(data, ManifestSidecar, place).references)
    return Before(tagged=tagged, references=frozenset(references))


def read_changed(
    reader: Reader, writer: ImageLayoutWriter, image: str, changes: ImageChanges, before: Before
) -> Changed | None:
    """What an image has now of what changed; None when it is gone."""
    package_id = writer.package_id(reader, image)
    if package_id is None:
        return None
    storage_id = writer.repository.storage_id
    manifests = image_contents.find_manifests(reader, storage_id, package_id, changes.digests)
    tags = {each.name: each for each in image_contents.find_tags(reader, package_id, changes.tags)}
    gone = changes.digests.difference(each.digest for each in manifests)
    references = before.references.union(*(each.references for each in manifests))
    # Whoever a tag stood for, or stands for, or whom a list named, or names, may be with or without a tag since.
    shown = (each.manifest.digest for each in tags.values() if each.manifest is not None)
    named = changes.digests.union(before.tagged.values(), shown)
    named.update(digest for digest, kind in references if kind == "manifest")
    loose = {each.digest: each for each in image_contents.find_loose(reader, package_id, named)}
    parts = gone.union(digest for digest, _ in before.references)
    return Changed(
        manifests=manifests,
        tags={name: tags.get(name) for name in changes.tags},
        loose={digest: loose.get(digest) for digest in named},
        gone=frozenset(gone),
        superfluous=frozenset(parts - image_contents.find_parts(reader, storage_id, package_id, parts)),
    )
