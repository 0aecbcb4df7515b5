"""
Image layouts: folders, or tar archives of them, that have images (OCI image specification 1.1, image-layout.md).

=======================  ==============================================================================================
``oci-layout``           the version of the layout
``index.json``           the manifests that the layout is about; one with a name has it as an annotation
``blobs/ALGORITHM/HEX``  manifests, configurations and layers, by their digests
=======================  ==============================================================================================

``podman save --format oci-archive``, ``skopeo copy ... oci:DIR`` and ``docker save`` (25 and later) write such layouts.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import ERRORS

LAYOUT_FILE: Final = "oci-layout"
LAYOUT_CONTENT: Final = b'{"imageLayoutVersion":"1.0.0"}'
INDEX: Final = "index.json"
BLOBS: Final = "blobs"
ALGORITHMS: Final = ("sha256", "sha512")
BLOB_PATH: Final = re.compile(r"blobs/(sha256|sha512)/([0-9a-f]+)")
INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
INDEX_HEAD: Final = b'{"schemaVersion":2,"mediaType":"%s","manifests":[' % INDEX_TYPE.encode()
REF_NAME: Final = "org.opencontainers.image.ref.name"
_NAMES: Final = ("io.containerd.image.name", REF_NAME)  # annotations of an image's names
LARGEST_DOCUMENT: Final = 4 * 1024 * 1024  # bytes of an index or a manifest that is read into memory
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

Open = Callable[[str], IO[bytes]]  # opens a file of a layout by its path, and raises ``Invalid`` if there is none


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A blob or manifest that an index or a manifest refers to; ``size`` in bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] | None = None

    @property
    def name(self) -> str | None:
        """The name of an image in an index; None if it has none."""
        return (self.annotations or {}).get(REF_NAME)

    @classmethod
    def named(cls, media_type: str, digest: str, size: int, name: str | None) -> Descriptor:
        """Return the entry of an image in an index."""
        notes = None if name is None else {REF_NAME: name}
        return cls(media_type=media_type, digest=digest, size=size, annotations=notes)


def read_descriptor(value: Any) -> Descriptor:
    """Convert a descriptor. :raises Invalid: it is damaged, or its digest is no sha256"""
    try:
        found = msgspec.convert(value, Descriptor)
    except msgspec.ValidationError:
        raise Invalid("a manifest has a damaged descriptor") from None
    if not _DIGEST.fullmatch(found.digest):
        raise Invalid(f"the digest {found.digest!r} cannot be used; only sha256 can")
    return found


def names_of(annotations: Any) -> tuple[str, ...]:
    """Return the names that the annotations of an entry of an index give the image."""
    found = annotations if isinstance(annotations, dict) else {}
    return tuple(name for each in _NAMES if isinstance(name := found.get(each), str) and name)


def blob_path(digest: str) -> str:
    """Return the path of a blob, or of the bytes of a manifest, in a layout."""
    algorithm, _, text = digest.partition(":")
    return f"{BLOBS}/{algorithm}/{text}"


def render_index(entries: Iterable[Descriptor]) -> bytes:
    """Return the index of a layout."""
    return INDEX_HEAD + b",".join(map(msgspec.json.encode, entries)) + b"]}"


@contextmanager
def open_layout(path: Path) -> Iterator[Open]:
    """
    Open a layout in a folder, or in a tar archive that is not compressed.

    :raises Invalid: it is no layout; :raises OSError: it cannot be read
    """
    if path.is_dir():
        yield lambda inner: _open_file(path, inner)
        return
    try:
        with tarfile.open(path, "r:") as archive:  # not compressed, so that any file in it can be sought
            members = {each.name.removeprefix("./"): each for each in archive if each.isfile()}
            yield lambda inner: _open_member(path, archive, members.get(inner), inner)
    except tarfile.TarError as error:
        raise Invalid(
            f"{path} is no image layout: {error}; it is a folder, or a tar archive that is not packed"
        ) from None


def read_document(layout: Open, path: str) -> bytes:
    """Read a small file of a layout. :raises Invalid: there is none, or it is too large"""
    with layout(path) as file:
        data = file.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise Invalid(f"{path} is longer than {LARGEST_DOCUMENT} bytes")
    return data


def find_image(layout: Open, wanted: str) -> Descriptor:
    """
    Return the image in a layout that is called ``wanted``, or the only one if ``wanted`` is empty.

    :raises Invalid: there is none, or there are several
    """
    try:
        index = msgspec.json.decode(read_document(layout, INDEX))
    except ERRORS:
        raise Invalid("the index of the image layout is damaged") from None
    manifests = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(manifests, list) or not manifests:
        raise Invalid("the image layout has no images")
    if not all(isinstance(each, dict) and isinstance(each.get("annotations") or {}, dict) for each in manifests):
        raise Invalid("the index of the image layout is damaged")
    if wanted:
        manifests = [each for each in manifests if (each.get("annotations") or {}).get(REF_NAME) == wanted]
    if len({str(each.get("digest")) for each in manifests}) != 1:
        raise Invalid(
            f"the image layout has {len(manifests)} images{' called ' + wanted if wanted else ''}; see --source"
        )
    return read_descriptor(manifests[0])


def _open_file(folder: Path, path: str) -> IO[bytes]:
    try:
        return (folder / path).open("rb")
    except FileNotFoundError:
        raise _incomplete(folder, path) from None


def _open_member(file: Path, archive: tarfile.TarFile, member: tarfile.TarInfo | None, path: str) -> IO[bytes]:
    content = None if member is None else archive.extractfile(member)
    if content is None:
        raise _incomplete(file, path)
    return content


def _incomplete(layout: Path, path: str) -> Invalid:
    return Invalid(f"{layout} is no whole image layout: it has no {path}")
