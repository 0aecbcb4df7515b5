"""
The directory of an image in the readable layout: an OCI image layout, which client programs can read.

The path of the directory is the image's name below the repository's directory. Names may have slashes, so the directory
of one image can contain that of another. A part of a name that is also the name of a file or folder of the OCI layout
gets a tilde at its end, which no image name has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from attrs import evolve, frozen

from pkgrepo.archives import image_layout
from pkgrepo.archives.image_layout import ALGORITHMS, BLOBS, INDEX, LAYOUT_CONTENT, LAYOUT_FILE, blob_path
from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, RepositoryType
from pkgrepo.model.structs import from_attributes
from pkgrepo.repositories.layout.line_documents import Form
from pkgrepo.repositories.layout.sidecars import BURNED, encode
from pkgrepo.repositories.layout.writer import LayoutWriter, Plan, read_package
from pkgrepo.storage.catalog.images import contents
from pkgrepo.storage.catalog.images.contents import Descriptor, StoredManifest, StoredTag
from pkgrepo.storage.catalog.images.manifests import has_manifests
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.packages import RetiredName
from pkgrepo.storage.layout_folder import LayoutFolder
from pkgrepo.untrusted.strict_json import ERRORS

IMAGE = ".image.json"
MANIFESTS = ".manifests"

MAX_AT_ONCE = 32  # manifests, and tags, of an image that is handled in one call; some 10 ms of a fast disk
IndexKey = tuple[bool, str]  # (False, tag), then (True, digest) of manifests without a tag


class BlobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A blob of a manifest; ``digest`` is the one in the manifest."""

    digest: str
    sha256: str
    size: int
    locator: str


class ManifestSidecar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A manifest of an image, with its blobs; ``references`` are (digest, kind).

    ``waiting`` says that it is in quarantine until it is signed.
    """

    image: str
    digest: str
    sha256: str
    media_type: str
    size: int
    locator: str
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    evidence: bool
    references: Sequence[tuple[str, str]]
    blobs: list[BlobEntry]
    created_at: datetime
    waiting: bool = False

    @classmethod
    def of(cls, image: str, manifest: StoredManifest) -> ManifestSidecar:
        """Make the sidecar of a manifest."""
        blobs = [from_attributes(BlobEntry, each) for each in manifest.blobs]
        return from_attributes(cls, manifest, image=image, blobs=blobs)


class TagEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag: ``digest`` is the manifest that readers get, if any; ``waiting`` the one that is not signed yet."""

    name: str
    digest: str | None
    updated_at: datetime
    actor: str
    waiting: str | None = None

    @classmethod
    def of(cls, tag: StoredTag) -> TagEntry:
        """Make the entry of a tag."""
        return from_attributes(cls, tag, digest=None if tag.manifest is None else tag.manifest.digest)


class ImageSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its tags; ``key`` is its name."""

    key: str
    tags: list[TagEntry]


def tags_form(key: str) -> Form[str]:
    """Return the form of the sidecar of an image."""
    return Form(b'{"key":%b,"tags":[' % msgspec.json.encode(key), _name)


def tag_entry(tag: StoredTag) -> bytes:
    """Return a tag as a line of the sidecar of its image."""
    return msgspec.json.encode(TagEntry.of(tag))


def _name(entry: bytes) -> str:
    try:
        return _TAG_DECODER.decode(entry).name
    except ERRORS as error:
        raise Invalid(f"{IMAGE}: {error}") from error


_TAG_DECODER = msgspec.json.Decoder(TagEntry)


@frozen
class ImageContents:
    """A small image; ``loose`` are the manifests that neither a tag nor another manifest refers to."""

    manifests: Sequence[StoredManifest]
    tags: Sequence[StoredTag]
    loose: Sequence[Descriptor]


@frozen
class ImagePlaces:
    """The paths of an image in the layout."""

    top: str

    @classmethod
    def of(cls, repository: str, image: str) -> ImagePlaces:
        """Make the paths for an image by its name."""
        return cls(f"{repository}/{image_directory(image)}")

    @property
    def layout_file(self) -> str:
        """The file that marks the directory as an OCI image layout."""
        return f"{self.top}/{LAYOUT_FILE}"

    @property
    def index(self) -> str:
        """The index of the OCI image layout."""
        return f"{self.top}/{INDEX}"

    @property
    def sidecar(self) -> str:
        """The sidecar with the tags of the image."""
        return f"{self.top}/{IMAGE}"

    @property
    def burned(self) -> str:
        """The sidecar that stays when the image is removed."""
        return f"{self.top}/{BURNED}"

    def bytes_of(self, digest: str) -> str:
        """Return the path of a blob, or of the bytes of a manifest."""
        return f"{self.top}/{blob_path(digest)}"

    def sidecar_of(self, digest: str) -> str:
        """Return the path of the sidecar of a manifest."""
        algorithm, _, text = digest.partition(":")
        return f"{self.top}/{MANIFESTS}/{algorithm}/{text}.json"

    @property
    def folders(self) -> Iterator[tuple[str, str, str]]:
        """The folders with one file per digest, as (folder, algorithm, suffix of the file names)."""
        for algorithm in ALGORITHMS:
            yield f"{self.top}/{BLOBS}/{algorithm}", algorithm, ""
            yield f"{self.top}/{MANIFESTS}/{algorithm}", algorithm, ".json"


class ImageLayoutWriter(LayoutWriter[ImageContents | None]):
    """
    Writes images into the readable layout.

    The snapshot of an image is None if it is too large to be read at once, or does not exist: see L{LargeImages}.
    """

    whole_packages = True

    @property
    def layout(self) -> LayoutFolder:
        """The readable layout that is written to."""
        return self._layout

    def places(self, image: str) -> ImagePlaces:
        """Return the paths of an image of the repository."""
        return ImagePlaces.of(self._repository.folder, image)

    def package_id(self, reader: Reader, image: str) -> int | None:
        """Return the catalog key of an image, or None if it has no manifests."""
        package = packages.find_package(reader, self._repository.id, image)
        return package.id if package is not None and has_manifests(reader, package.id) else None

    def read(self, reader: Reader, package_key: str, _version_key: str) -> ImageContents | None:
        """Read the manifests and tags of an image."""
        found = self.package_id(reader, package_key)
        if found is None or not contents.has_at_most(reader, found, MAX_AT_ONCE):
            return None
        return ImageContents(
            manifests=self.read_manifests(reader, package_key, "", MAX_AT_ONCE),
            tags=contents.tags_after(reader, found, "", MAX_AT_ONCE),
            loose=contents.unreferenced_after(reader, found, "", MAX_AT_ONCE),
        )

    def read_removed(self, reader: Reader, image: str) -> dict[str, bytes]:
        """
        The document that stays of an image that was removed, by its place; empty unless its name is retired.

        An image whose blobs the garbage collection has still to remove has its name, which is retired with them.
        """
        found = read_package(reader, self._repository.id, image)
        if self._repository.type is RepositoryType.HOSTED and found.package is not None and found.package.serial > 0:
            found = evolve(found, retired=RetiredName(image, found.package.updated_at))
        sidecar = found.burned_sidecar(image)
        return {} if sidecar is None else {self.places(image).burned: sidecar}

    def read_manifests(self, reader: Reader, image: str, after: str, limit: int) -> list[StoredManifest]:
        """Return up to ``limit`` manifests of an image after the digest ``after``, ordered by digest."""
        found = self.package_id(reader, image)
        if found is None:
            return []
        return contents.manifests_after(reader, self._repository.storage_id, found, after, limit)

    def entries(self, _reader: Reader, _package: Package) -> list[tuple[str, str]]:
        """Return the one entry of an image."""
        return [("", "")]

    def place_of(self, package_key: str, _path: str, sha256: str) -> str:
        """Return the place of a blob."""
        return self.places(package_key).bytes_of(f"sha256:{sha256}")

    def plan(self, package_key: str, _version: str, snapshot: ImageContents | None) -> Plan:
        """Plan the whole directory of an image; nothing without a snapshot."""
        if snapshot is None:
            return Plan()
        places = self.places(package_key)
        parts = self.plan_manifests(package_key, snapshot.manifests)
        index = list(tag_index_entries(snapshot.tags))
        index += [index_entry(each) for each in snapshot.loose]
        documents = {
            places.layout_file: LAYOUT_CONTENT,
            places.index: INDEX_FORM.render(index),
            places.sidecar: tags_form(package_key).render(tag_entry(each) for each in snapshot.tags),
        }
        wanted = {*documents}
        for each in snapshot.manifests:
            wanted.update((places.sidecar_of(each.digest), places.bytes_of(each.digest)))
            wanted.update(places.bytes_of(blob.digest) for blob in each.blobs)
        return Plan(
            links=parts.links,
            documents=(*parts.documents, *self._changed(documents)),
            removals=tuple(place for place in self._present(places) if place not in wanted),
        )

    def plan_manifests(self, image: str, manifests: Iterable[StoredManifest]) -> Plan:
        """Return the changes that make the bytes and the sidecars of some manifests up to date."""
        places = self.places(image)
        wanted: dict[str, str] = {}
        documents: dict[str, bytes] = {}
        for each in manifests:
            documents[places.sidecar_of(each.digest)] = encode(ManifestSidecar.of(image, each))
            wanted.update((places.bytes_of(blob.digest), blob.locator) for blob in each.blobs)
            wanted[places.bytes_of(each.digest)] = each.locator
        links = tuple(
            (locator, place)
            for place, locator in wanted.items()
            if locator and not self._layout.is_linked(locator, place)
        )
        return Plan(links=links, documents=self._changed(documents))

    def plan_documents(self, documents: Mapping[str, bytes]) -> Plan:
        """Return the changes that make some documents up to date."""
        return Plan(documents=self._changed(documents))

    def plan_leftovers(self, known: Mapping[str, Collection[str]]) -> Plan:
        """Plan the removal of what belongs to no known image."""
        top = self._repository.folder
        expected = {top}
        for key in known:
            places = self.places(key)
            expected.update((places.top, *(folder for folder, _, _ in places.folders)))
        return Plan(removals=tuple(p for p in self._layout.walk(top) if p.rpartition("/")[0] not in expected))

    def _present(self, places: ImagePlaces) -> Iterator[str]:
        for folder in (places.top, *(folder for folder, _, _ in places.folders)):
            for name in self._layout.names(folder):
                yield f"{folder}/{name}"


def image_directory(key: str) -> str:
    """Return the directory of the image with this name, relative to its repository's."""
    return "/".join(f"{part}~" if part in (LAYOUT_FILE, INDEX, BLOBS) else part for part in key.split("/"))


def index_entry(manifest: Descriptor, tag: str | None = None) -> bytes:
    """Return the line of a manifest in the index, with a tag or without one."""
    return msgspec.json.encode(image_layout.Descriptor.named(manifest.media_type, manifest.digest, manifest.size, tag))


def tag_index_entries(tags: Iterable[StoredTag]) -> Iterator[bytes]:
    """Return the lines of tags in the index: the manifests that readers get."""
    return (index_entry(each.manifest, each.name) for each in tags if each.manifest is not None)


def tag_key(name: str) -> IndexKey:
    """Return the key of a tag in the index."""
    return (False, name)


def loose_key(digest: str) -> IndexKey:
    """Return the key of a manifest without a tag in the index."""
    return (True, digest)


def read_index_entry(entry: bytes) -> image_layout.Descriptor:
    """
    Parse a line of the index.

    :raises Invalid: it is not valid
    """
    try:
        return _DECODER.decode(entry)
    except ERRORS as error:
        raise Invalid(f"{INDEX}: {error}") from error


def _index_key(entry: bytes) -> IndexKey:
    found = read_index_entry(entry)
    return loose_key(found.digest) if found.name is None else tag_key(found.name)


_DECODER = msgspec.json.Decoder(image_layout.Descriptor)
INDEX_FORM: Form[IndexKey] = Form(image_layout.INDEX_HEAD, _index_key)
