"""
The content of evidence: signatures, attestations and SBOMs, which rules and trust in keys let pass.

The media type of a layer proves nothing: podman 4.3 unpacks a layer of any type by its content, and whoever pushes
chooses the type. So the first bytes of each layer must be those of a document.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = 512  # bytes: the first header of a tar archive, by which programs recognize it
_CHECKSUM: Final = slice(148, 156)

# First bytes of JSON, XML and SPDX tag-value documents. No compressed stream begins with them.
_BEGINNINGS: Final = (b"{", b"[", b"<", b"SPDX", b"#")
_COSE_SIGN1: Final = b"\xd2\x84"  # RFC 9052 section 4.2


def begins_document(head: bytes) -> bool:
    """Whether ``head`` (512 bytes, or a whole shorter blob) is the start of a document, and not of an archive."""
    start = head.lstrip(b" \t\r\n")
    if not start.startswith(_BEGINNINGS) and not head.startswith(_COSE_SIGN1):
        return False
    # a tar archive begins with the name of its first file, which can be any text: only the checksum shows what it is
    return len(head) < HEAD or not _is_tar_header(head)


def _is_tar_header(block: bytes) -> bool:
    stated = _number(block[_CHECKSUM])
    others = block[: _CHECKSUM.start] + b" " * 8 + block[_CHECKSUM.stop : HEAD]
    unsigned = sum(others)
    # some old programs computed the sum with signed bytes, and readers still accept both sums
    return stated in (unsigned, unsigned - 256 * sum(byte > 127 for byte in others))


def _number(field: bytes) -> int | None:
    """A number in a tar header: octal digits, or binary if the first bit is set."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    digits = field.strip(b" \0").partition(b"\0")[0].partition(b" ")[0]
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else None
