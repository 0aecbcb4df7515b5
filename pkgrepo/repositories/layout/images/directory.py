"""
Images in the readable layout: an OCI image layout each, which client programs read as it is.

The directory of an image is its name below the repository's. Names may have slashes, so one image's directory can hold
another's; where a part of a name is what the layout itself calls a file or folder, a tilde follows it, which no name
has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package
from pkgrepo.repositories.layout.line_documents import Form
from pkgrepo.repositories.layout.sidecars import encode
from pkgrepo.repositories.layout.writer import LayoutWriter, Plan
from pkgrepo.storage.catalog.images import contents as image_contents
from pkgrepo.storage.catalog.images.contents import Named, StoredManifest, StoredTag
from pkgrepo.storage.catalog.images.manifests import has_manifests
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.layout_folder import LayoutFolder

from .sidecars import IMAGE, MANIFESTS, ManifestSidecar, tag_entry, tags_form

MARK = "oci-layout"
INDEX = "index.json"
BLOBS = "blobs"
ALGORITHMS = ("sha256", "sha512")
REF_NAME = "org.opencontainers.image.ref.name"
MOST_AT_ONCE = 32  # manifests, and tags, of an image that is read and shown at once; some 10 ms of a fast disk

MARKED = b'{"imageLayoutVersion":"1.0.0"}'

IndexKey = tuple[bool, str]  # tags by name come before what has none, by digest


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A manifest in the index of an OCI image layout; its tag is among the annotations."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}

    @property
    def key(self) -> IndexKey:
        """Its place in the order of the index."""
        name = self.annotations.get(REF_NAME)
        return loose_key(self.digest) if name is None else tag_key(name)


@frozen
class ImageContents:
    """All of a small image; ``loose`` are the manifests that neither a tag nor another manifest names."""

    manifests: Sequence[StoredManifest]
    tags: Sequence[StoredTag]
    loose: Sequence[Named]


@frozen
class ImagePlaces:
    """Where the layout has what of an image."""

    top: str

    @classmethod
    def of(cls, repository: str, image: str) -> ImagePlaces:
        """Those of an image by its name."""
        return cls(f"{repository}/{image_directory(image)}")

    @property
    def mark(self) -> str:
        """What says that the directory is an OCI image layout."""
        return f"{self.top}/{MARK}"

    @property
    def index(self) -> str:
        """The index of the OCI image layout."""
        return f"{self.top}/{INDEX}"

    @property
    def sidecar(self) -> str:
        """What this server keeps of the image beside it."""
        return f"{self.top}/{IMAGE}"

    def bytes_of(self, digest: str) -> str:
        """A blob, or the bytes of a manifest."""
        algorithm, _, text = digest.partition(":")
        return f"{self.top}/{BLOBS}/{algorithm}/{text}"

    def sidecar_of(self, digest: str) -> str:
        """What this server keeps of a manifest."""
        algorithm, _, text = digest.partition(":")
        return f"{self.top}/{MANIFESTS}/{algorithm}/{text}.json"

    @property
    def folders(self) -> Iterator[tuple[str, str, str]]:
        """The folders with a file for each digest, with the algorithm of these and how the files' names end."""
        for algorithm in ALGORITHMS:
            yield f"{self.top}/{BLOBS}/{algorithm}", algorithm, ""
            yield f"{self.top}/{MANIFESTS}/{algorithm}", algorithm, ".json"


class ImageLayoutWriter(LayoutWriter[ImageContents | None]):
    """
    Holds what an image is against its directory.

    None for an image is one with more in it than should be read at once, or with nothing left: see L{LargeImages}.
    """

    whole_packages = True

    @property
    def layout(self) -> LayoutFolder:
        """Where it is shown."""
        return self._layout

    def places(self, image: str) -> ImagePlaces:
        """Where an image of the repository is."""
        return ImagePlaces.of(self._repository.name, image)

    def package_id(self, reader: Reader, image: str) -> int | None:
        """The catalog key of an image that has a manifest, or None: there is nothing to show."""
        package = packages.find_package(reader, self._repository.id, image)
        return package.id if package is not None and has_manifests(reader, package.id) else None

    def read(self, reader: Reader, package_key: str, _version_key: str) -> ImageContents | None:
        """See L{LayoutWriter.read}."""
        found = self.package_id(reader, package_key)
        if found is None or not image_contents.has_at_most(reader, found, MOST_AT_ONCE):
            return None
        return ImageContents(
            manifests=self.read_manifests(reader, package_key, "", MOST_AT_ONCE),
            tags=image_contents.tags_after(reader, found, "", MOST_AT_ONCE),
            loose=image_contents.loose_after(reader, found, "", MOST_AT_ONCE),
        )

    def read_manifests(self, reader: Reader, image: str, after: str, limit: int) -> list[StoredManifest]:
        """Some manifests of an image by digest, from after one."""
        found = self.package_id(reader, image)
        if found is None:
            return []
        return image_contents.manifests_after(reader, self._repository.storage_id, found, after, limit)

    def entries(self, _reader: Reader, _package: Package) -> list[tuple[str, str]]:
        """See L{LayoutWriter.entries}."""
        return [("", "")]

    def place_of(self, package_key: str, _path: str, sha256: str) -> str:
        """See L{LayoutWriter.place_of}."""
        return self.places(package_key).bytes_of(f"sha256:{sha256}")

    def plan(self, package_key: str, _version: str, shown: ImageContents | None) -> Plan:
        """What it would take to make an image's directory show it; nothing for what is not read at once."""
        if shown is None:
            return Plan()
        places = self.places(package_key)
        parts = self.plan_manifests(package_key, shown.manifests)
        index = list(tag_index_entries(shown.tags))
        index += [index_entry(each) for each in shown.loose]
        documents = {
            places.mark: MARKED,
            places.index: INDEX_FORM.render(index),
            places.sidecar: tags_form(package_key).render(tag_entry(each) for each in shown.tags),
        }
        wanted = {*documents}
        for each in shown.manifests:
            wanted.update((places.sidecar_of(each.digest), places.bytes_of(each.digest)))
            wanted.update(places.bytes_of(blob.digest) for blob in each.blobs)
        return Plan(
            links=parts.links,
            documents=(*parts.documents, *self._different(documents)),
            doomed=tuple(place for place in self._present(places) if place not in wanted),
        )

    def plan_manifests(self, image: str, manifests: Iterable[StoredManifest]) -> Plan:
        """What it would take to have the bytes and the sidecars of some manifests right."""
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
        return Plan(links=links, documents=self._different(documents))

    def plan_documents(self, documents: Mapping[str, bytes]) -> Plan:
        """What it would take to have some documents right."""
        return Plan(documents=self._different(documents))

    def plan_rest(self, known: Mapping[str, Collection[str]]) -> Plan:
        """What shows images that do not exist."""
        top = self._repository.name
        expected = {top}
        for key in known:
            places = self.places(key)
            expected.update((places.top, *(folder for folder, _, _ in places.folders)))
        return Plan(doomed=tuple(p for p in self._layout.walk(top) if p.rpartition("/")[0] not in expected))

    def _present(self, places: ImagePlaces) -> Iterator[str]:
        for folder in (places.top, *(folder for folder, _, _ in places.folders)):
            for name in self._layout.names(folder):
                yield f"{folder}/{name}"


def image_directory(key: str) -> str:
    """The directory of the image of this name, below its repository's."""
    return "/".join(f"{part}~" if part in (MARK, INDEX, BLOBS) else part for part in key.split("/"))


def index_entry(manifest: Named, tag: str | None = None) -> bytes:
    """A manifest as the index names it, under a tag or without one."""
    notes = {} if tag is None else {REF_NAME: tag}
    return msgspec.json.encode(
        IndexEntry(media_type=manifest.media_type, digest=manifest.digest, size=manifest.size, annotations=notes)
    )


def tag_index_entries(tags: Iterable[StoredTag]) -> Iterator[bytes]:
    """What the index says of tags: what readers get by them."""
    return (index_entry(each.manifest, each.name) for each in tags if each.manifest is not None)


def tag_key(name: str) -> IndexKey:
    """The key of a tag in the index."""
    return (False, name)


def loose_key(digest: str) -> IndexKey:
    """The key of a manifest without a tag there."""
    return (True, digest)


def read_index_entry(entry: bytes) -> IndexEntry:
    """
    An entry of the index.

    :raises Invalid: it is none
    """
    try:
        return _DECODER.decode(entry)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{INDEX}: {error}") from error


_DECODER = msgspec.json.Decoder(IndexEntry)
INDEX_FORM: Form[IndexKey] = Form(
    b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[',
    lambda entry: read_index_entry(entry).key,
)
