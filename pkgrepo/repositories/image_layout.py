"""
Images in the readable layout: an OCI image layout each, which client programs read as it is.

The directory of an image is its name below the repository's. Names may have slashes, so one image's directory can hold
another's; where a part of a name is what the layout itself calls a file or folder, a tilde follows it, which no name
has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from pkgrepo.interfaces import Reader
from pkgrepo.model import Package
from pkgrepo.storage.catalog.image_contents import ImageContents, read_image

from .image_sidecar import IMAGE, ImageSidecar
from .layout_writer import LayoutWriter, Plan
from .sidecar import encode

MARK = "oci-layout"
INDEX = "index.json"
BLOBS = "blobs"
ALGORITHMS = ("sha256", "sha512")
REF_NAME = "org.opencontainers.image.ref.name"

_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_MARKED = b'{"imageLayoutVersion":"1.0.0"}'


def image_directory(key: str) -> str:
    """The directory of the image of this name, below its repository's."""
    return "/".join(f"{part}~" if part in (MARK, INDEX, BLOBS) else part for part in key.split("/"))


class ImageLayoutWriter(LayoutWriter[ImageContents | None]):
    """Holds what an image is against its directory."""

    shows_packages = True

    def read(self, reader: Reader, package_key: str, _version_key: str) -> ImageContents | None:
        """See L{LayoutWriter.read}."""
        return read_image(reader, self._repository.id, package_key)

    def entries(self, _reader: Reader, _package: Package) -> list[tuple[str, str]]:
        """See L{LayoutWriter.entries}."""
        return [("", "")]

    def plan(self, package_key: str, _version: str, shown: ImageContents | None) -> Plan:
        """What it would take to make an image's directory show it."""
        top = f"{self._repository.name}/{image_directory(package_key)}"
        if shown is None or not shown.manifests:
            return Plan(doomed=self._present(top))
        wanted = {_place(top, each.digest): each.locator for each in shown.blobs}
        wanted.update((_place(top, each.digest), each.locator) for each in shown.manifests)
        documents = {
            f"{top}/{MARK}": _MARKED,
            f"{top}/{INDEX}": render_index(shown),
            f"{top}/{IMAGE}": encode(ImageSidecar.of(shown)),
        }
        links = tuple(
            (locator, place)
            for place, locator in wanted.items()
            if locator and not self._layout.is_linked(locator, place)
        )
        doomed = tuple(place for place in self._present(top) if place not in wanted and place not in documents)
        return Plan(links=links, documents=self._different(documents), doomed=doomed)

    def plan_rest(self, known: Mapping[str, Collection[str]]) -> Plan:
        """What shows images that do not exist."""
        top = self._repository.name
        expected = {top}
        for key in known:
            expected.update(_folders(f"{top}/{image_directory(key)}"))
        return Plan(doomed=tuple(p for p in self._layout.walk(top) if p.rpartition("/")[0] not in expected))

    def _present(self, top: str) -> tuple[str, ...]:
        return tuple(f"{folder}/{name}" for folder in _folders(top) for name in self._layout.files(folder))


def render_index(image: ImageContents) -> bytes:
    """The index of an OCI image layout: every tag, then what neither a tag nor another manifest names."""
    by_digest = {each.digest: each for each in image.manifests}
    named = {each.digest for each in image.tags}
    named.update(digest for each in image.manifests for digest, kind in each.references if kind == "manifest")
    entries = [(each.digest, {REF_NAME: each.name}) for each in image.tags if each.digest in by_digest]
    entries += [(digest, {}) for digest in by_digest if digest not in named]
    manifests: list[dict[str, Any]] = []
    for digest, notes in entries:
        found = by_digest[digest]
        entry: dict[str, Any] = {"mediaType": found.media_type, "digest": digest, "size": found.size}
        if notes:
            entry["annotations"] = notes
        manifests.append(entry)
    index = {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": manifests}
    return msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n"


def _place(top: str, digest: str) -> str:
    algorithm, _, text = digest.partition(":")
    return f"{top}/{BLOBS}/{algorithm}/{text}"


def blob_place(repository: str, key: str, digest: str) -> str:
    """Where the layout has a blob or manifest of an image."""
    return _place(f"{repository}/{image_directory(key)}", digest)


def _folders(top: str) -> tuple[str, ...]:
    return (top, *(f"{top}/{BLOBS}/{algorithm}" for algorithm in ALGORITHMS))
