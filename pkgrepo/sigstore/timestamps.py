"""
Timestamps of authorities (RFC 3161), by which entries of Rekor 2 are dated: the time at which a signature was there.

A token is signed data (CMS, RFC 5652) around the time. It is read here as far as those of Sigstore go, in DER, and
everything else is refused: one signer, signed attributes, a certificate of the trusted root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512
from cryptography.x509.oid import ExtendedKeyUsageOID

from pkgrepo.errors import Invalid

from .certificates import is_issued
from .roots import Authority, TrustedRoot

LARGEST: Final = 16 * 1024  # bytes of a token; those of Sigstore have 1 KiB
_SEQUENCE, _SET, _INTEGER, _OCTETS, _OID, _GENERALIZED, _CONTEXT_0 = 0x30, 0x31, 0x02, 0x04, 0x06, 0x18, 0xA0

_SIGNED_DATA: Final = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2
_TST_INFO: Final = bytes.fromhex("2a864886f70d0109100104")  # 1.2.840.113549.1.9.16.1.4
_CONTENT_TYPE: Final = bytes.fromhex("2a864886f70d010903")  # 1.2.840.113549.1.9.3
_MESSAGE_DIGEST: Final = bytes.fromhex("2a864886f70d010904")  # 1.2.840.113549.1.9.4
_HASHES: Final[dict[bytes, Any]] = {  # 2.16.840.1.101.3.4.2.1 to 3
    bytes.fromhex("608648016503040201"): SHA256(),
    bytes.fromhex("608648016503040202"): SHA384(),
    bytes.fromhex("608648016503040203"): SHA512(),
}


@frozen
class _Value:
    """A value in DER: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes

    def inner(self, *tags: int) -> list[_Value]:
        """The values in it, the first of which have these tags. :raises ValueError: they have not"""
        found = [*_values(self.content)]
        if tuple(each.tag for each in found[: len(tags)]) != tags:
            raise ValueError("another structure")
        return found


def signed_at(token: bytes, signature: bytes, root: TrustedRoot) -> datetime:
    """
    When a signature was there (aware UTC), by the response of a timestamp authority in DER.

    :raises Invalid: it is not about this signature, or no trusted authority has signed it
    """
    if len(token) > LARGEST:
        raise Invalid(f"its timestamp has more than {LARGEST} bytes")
    try:
        info, attributes, digest, made = _read(token)
        at, imprint, of_imprint = _read_info(info)
    except (ValueError, IndexError, KeyError):
        raise Invalid("its timestamp cannot be read") from None
    if imprint != _hash(of_imprint, signature):
        raise Invalid("its timestamp is about another signature")
    for each in root.timestamp_authorities:
        if each.period.has(at) and _is_signed(each, at, b"\x31" + attributes[1:], made, digest):
            return at
    raise Invalid("no timestamp authority that is trusted has signed its timestamp")


def _read(token: bytes) -> tuple[bytes, bytes, Any, bytes]:
    """
    What a response is about: the bytes of its TSTInfo, the signed attributes, their hash algorithm, and the signature.

    :raises ValueError, IndexError, KeyError: it is another structure, or not granted
    """
    (response,) = _values(token)
    status, content = response.inner(_SEQUENCE, _SEQUENCE)[:2]
    if status.inner(_INTEGER)[0].content not in (b"\x00", b"\x01"):  # granted, granted with modifications
        raise ValueError("not granted")
    kind, explicit = content.inner(_OID, _CONTEXT_0)
    (signed,) = explicit.inner(_SEQUENCE)
    parts = signed.inner(_INTEGER, _SET, _SEQUENCE)
    kind_inside, wrapped = parts[2].inner(_OID, _CONTEXT_0)
    if (kind.content, kind_inside.content) != (_SIGNED_DATA, _TST_INFO):
        raise ValueError("other content")
    (info,) = wrapped.inner(_OCTETS)
    (signer,) = parts[-1].inner(_SEQUENCE)
    _, _, algorithm, attributes, _, signature = signer.inner(
        _INTEGER, _SEQUENCE, _SEQUENCE, _CONTEXT_0, _SEQUENCE, _OCTETS
    )[:6]
    digest = _HASHES[algorithm.inner(_OID)[0].content]
    found = {pair.inner(_OID, _SET)[0].content: pair.inner()[1].inner()[0].content for pair in attributes.inner()}
    if found[_CONTENT_TYPE] != _TST_INFO or found[_MESSAGE_DIGEST] != _hash(digest, info.content):
        raise ValueError("the attributes are of other content")
    return info.content, attributes.whole, digest, signature.content


def _read_info(info: bytes) -> tuple[datetime, bytes, Any]:
    """The time in a TSTInfo, and the digest that it is about, with its algorithm."""
    (whole,) = _values(info)
    _, _, imprint, _, time = whole.inner(_INTEGER, _OID, _SEQUENCE, _INTEGER, _GENERALIZED)[:5]
    algorithm, digest = imprint.inner(_SEQUENCE, _OCTETS)
    text = time.content.decode("ascii")
    at = datetime.strptime(text.partition(".")[0].removesuffix("Z"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    if not text.endswith("Z"):
        raise ValueError("a time that is not in UTC")
    return at, digest.content, _HASHES[algorithm.inner(_OID)[0].content]


def _is_signed(authority: Authority, at: datetime, data: bytes, signature: bytes, digest: Any) -> bool:
    """Whether an authority, whose own certificate is the first of its chain, signed data at a time."""
    leaf, *above = authority.chain
    try:
        purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        if [*purposes] != [ExtendedKeyUsageOID.TIME_STAMPING]:  # RFC 3161 section 2.3
            return False
        if not (leaf.not_valid_before_utc <= at <= leaf.not_valid_after_utc and above and is_issued(leaf, above, at)):
            return False
        key = leaf.public_key()
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(digest))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, padding.PKCS1v15(), digest)
        else:
            return False
    except (ValueError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False
    return True


def _hash(algorithm: Any, data: bytes) -> bytes:
    return hashlib.new(algorithm.name, data).digest()


def _values(data: bytes) -> Iterator[_Value]:
    """The values in DER one after another (X.690 section 8.1). :raises ValueError, IndexError: it is no DER"""
    place = 0
    while place < len(data):
        start, tag, length = place, data[place], data[place + 1]
        place += 2
        if tag & 0x1F == 0x1F:
            raise ValueError("a long tag")
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 3:
                raise ValueError("a length that is not definite, or too long")
            length = int.from_bytes(data[place : place + size])
            place += size
        if place + length > len(data):
            raise ValueError("it ends too early")
        yield _Value(tag, data[place : place + length], data[start : place + length])
        place += length
