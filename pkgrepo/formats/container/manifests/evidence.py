"""
Whether what calls itself a signature or a statement is one.

Readers see evidence before anybody has signed it, so nobody must be able to run it. The type of a layer does not
help: podman 4.3 unpacks a layer of any type by what it holds, and any type can be written before a layer of files.
"""

from __future__ import annotations

from pkgrepo.errors import BlobMissing
from pkgrepo.formats.container.admission import Target
from pkgrepo.formats.container.manifest_document import Document
from pkgrepo.gateway.services import Services
from pkgrepo.storage.catalog.images.linked_blobs import find_linked

HEAD = 512  # bytes: the first header of a tar archive, by which programs know one
_CHECKSUM = slice(148, 156)

# How documents begin: JSON, XML, SPDX's lines of tags, a signature in COSE. No compressed stream begins so.
_BEGINNINGS = (b"{", b"[", b"<", b"SPDX", b"#")
_COSE_SIGN1 = b"\xd2\x84"  # RFC 9052 section 4.2


async def is_evidence(services: Services, target: Target, document: Document) -> bool:
    """Whether a manifest about to be stored is only of layers that no program can unpack, all of them there."""
    if not document.evidence:
        return False
    repository = target.repository
    for digest in dict.fromkeys(digest for digest, kind in document.references if kind == "layer"):
        found = services.catalog.look_inline(find_linked, repository.storage_id, repository.id, target.image, digest)
        if found is None or not found.locator:
            return False
        try:
            head = await services.files.read(repository.storage_id, found.locator, min(found.size, HEAD))
        except BlobMissing:
            return False
        if not begins_document(head):
            return False
    return True


def begins_document(head: bytes) -> bool:
    """Whether the first 512 bytes are of a document, and not also of an archive; short ones are the whole of it."""
    start = head.lstrip(b" \t\r\n")
    if not start.startswith(_BEGINNINGS) and not head.startswith(_COSE_SIGN1):
        return False
    # an archive may begin with any text, for that is the name of its first file; what makes it one is the checksum
    return len(head) < HEAD or not _is_tar_header(head)


def _is_tar_header(block: bytes) -> bool:
    stated = _number(block[_CHECKSUM])
    others = block[: _CHECKSUM.start] + b" " * 8 + block[_CHECKSUM.stop : HEAD]
    unsigned = sum(others)
    # some old programs added the bytes up as signed ones, and readers still take both
    return stated in (unsigned, unsigned - 256 * sum(byte > 127 for byte in others))


def _number(field: bytes) -> int | None:
    """A number as headers of archives have it: octal digits, or binary after a byte with the first bit set."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    digits = field.strip(b" \0").partition(b"\0")[0].partition(b" ")[0]
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else None
