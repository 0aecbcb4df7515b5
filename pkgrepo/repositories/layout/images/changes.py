"""
Finds out which files of a large image's directory a few changes affect, so that only these are written.

Events name manifests and tags. Their new state is in the catalog, their old state in the directory. The old state is
needed because a manifest may have lost its tag, and because the blobs of a removed manifest may have become unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import Factory, define, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.repositories.layout.images.directory import ManifestSidecar
from pkgrepo.repositories.layout.line_documents import open_document
from pkgrepo.repositories.layout.sidecars import decode
from pkgrepo.storage.catalog.images import contents
from pkgrepo.storage.catalog.images.contents import Descriptor, StoredManifest, StoredTag
from pkgrepo.storage.catalog.packages.events import Event

from .directory import INDEX_FORM, ImageLayoutWriter, read_index_entry, tag_key

MAX_CHANGES = 1000  # manifests, and tags, that are handled one by one; beyond, the whole image is compared


@define
class ImageChanges:
    """
    The changes of an image that events name: manifests, tags, uploaded blobs, and manifests that became trusted.

    ``whole`` means that the whole image must be compared.
    """

    digests: set[str] = Factory(set)
    tags: set[str] = Factory(set)
    completed: set[str] = Factory(set)
    trusted: set[str] = Factory(set)
    whole: bool = False

    @classmethod
    def of(cls, events: Iterable[Event]) -> ImageChanges:
        """Collect the changes that these events name."""
        changes = cls()
        for event in events:
            changes._add(event)
        return changes

    @property
    def are_many(self) -> bool:
        """Whether comparing the whole image is no more work."""
        return self.whole or max(map(len, (self.digests, self.tags, self.completed, self.trusted))) > MAX_CHANGES

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
    """The old state: digests by changed tag, and the references of changed manifests as (digest, kind)."""

    tagged: Mapping[str, str]
    references: frozenset[tuple[str, str]]


@frozen
class Changed:
    """
    The new state of what changed.

    ``tags`` are by name and ``loose`` manifests by digest, with None for those that must not be in the index. ``gone``
    are digests of removed manifests, ``superfluous`` digests of blobs and manifests that nothing refers to.
    """

    manifests: Sequence[StoredManifest]
    tags: Mapping[str, StoredTag | None]
    loose: Mapping[str, Descriptor | None]
    gone: frozenset[str]
    superfluous: frozenset[str]


def resolve_changes(
    reader: Reader, writer: ImageLayoutWriter, image: str, changes: ImageChanges
) -> ImageChanges | None:
    """Reduce the changes to manifests and tags. Returns None if the whole image must be compared."""
    package_id = writer.package_id(reader, image)
    if changes.are_many or package_id is None:
        return None
    digests, tags = set(changes.digests), set(changes.tags)
    for digest in changes.completed:
        names = contents.digests_of_blob(reader, package_id, digest)
        digests.update(contents.manifests_referring_to(reader, package_id, names, MAX_CHANGES))
    waiting = set(changes.trusted)
    seen: set[str] = set()
    while waiting:
        digest = waiting.pop()
        seen.add(digest)
        tags.update(contents.tags_of(reader, package_id, digest, MAX_CHANGES))
        waiting.update(set(contents.children_of(reader, package_id, digest)) - seen)
    resolved = ImageChanges(digests=digests | seen, tags=tags)
    return None if resolved.are_many else resolved


def read_before(writer: ImageLayoutWriter, image: str, changes: ImageChanges) -> Before:
    """
    Read the old state of the changes from the directory of an image. Blocks.

    :raises Invalid: the directory was changed by hand
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
    """Read the new state of the changes. Returns None if the image does not exist."""
    package_id = writer.package_id(reader, image)
    if package_id is None:
        return None
    storage_id = writer.repository.storage_id
    manifests = contents.find_manifests(reader, storage_id, package_id, changes.digests)
    tags = {each.name: each for each in contents.find_tags(reader, package_id, changes.tags)}
    gone = changes.digests.difference(each.digest for each in manifests)
    references = before.references.union(*(each.references for each in manifests))
    # Manifests that a changed tag or index referred to, before or now, may have gained or lost their last reference.
    shown = (each.manifest.digest for each in tags.values() if each.manifest is not None)
    named = changes.digests.union(before.tagged.values(), shown)
    named.update(digest for digest, kind in references if kind == "manifest")
    loose = {each.digest: each for each in contents.find_unreferenced(reader, package_id, named)}
    parts = gone.union(digest for digest, _ in before.references)
    return Changed(
        manifests=manifests,
        tags={name: tags.get(name) for name in changes.tags},
        loose={digest: loose.get(digest) for digest in named},
        gone=frozenset(gone),
        superfluous=frozenset(parts - contents.find_parts(reader, storage_id, package_id, parts)),
    )
