"""
The certificates of signers: who they name (Fulcio, "Sigstore OID information"), and whether an authority issued them.

=========  =============================================================================================================
extension  what it names
=========  =============================================================================================================
8 (1)      the issuer of the identity token; in brackets the number in older certificates
12 (5)     the source repository
13 (3)     the commit
14 (6)     the ref of the source
15         the number of the source repository
18 (4)     the definition of the pipeline, with its ref; in older certificates its name alone
=========  =============================================================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from attrs import frozen
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.certificate_transparency import LogEntryType, SignedCertificateTimestamp
from cryptography.x509.oid import ExtendedKeyUsageOID

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.public_keys import KeyInvalid, PublicKey, check_key

from .roots import TrustedRoot

FULCIO: Final = "1.3.6.1.4.1.57264.1."
LARGEST: Final = 64 * 1024  # bytes

_UNREADABLE: Final = (
    ValueError,
    KeyInvalid,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
_KNOWN: Final = (x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName, x509.BasicConstraints)


@frozen
class Signer:
    """A certificate of a signer, its key, and the texts of the extensions of Fulcio by their numbers."""

    certificate: x509.Certificate
    key: PublicKey
    named: Mapping[int, str]

    def says(self, *numbers: int) -> str:
        """The text of the first of some extensions that it has; empty if it has none."""
        return next((self.named[each] for each in numbers if self.named.get(each)), "")

    @property
    def repository(self) -> str:
        """The address of the source repository; older certificates have its name, and the address in their own name."""
        short = self.says(5)
        front, found, _ = self.name.partition(f"/{short}/")
        return self.says(12) or (f"{front}/{short}" if short and found else "")

    @property
    def name(self) -> str:
        """The first name in it, which is that of a pipeline or of a person; empty if there is none."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, x509.ExtensionNotFound):
            return ""
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        return next(iter([*uris, *names.get_values_for_type(x509.RFC822Name)]), "")


def read_signer(der: bytes) -> Signer:
    """The signer in a certificate. :raises ValueError: it cannot be read"""
    if len(der) > LARGEST:
        raise ValueError("a certificate is too long")
    try:
        certificate = x509.load_der_x509_certificate(der)
        return Signer(certificate, check_key(certificate.public_key()), _extensions(certificate))
    except _UNREADABLE as error:
        raise ValueError("a certificate cannot be read") from error


def check_issued(signer: Signer, root: TrustedRoot, at: datetime) -> None:
    """
    Check that an authority issued the certificate of a signer for signing code, and that all of it held at a time.

    :raises Invalid: none did; it was not valid then; or no log of certificates has it
    """
    leaf = signer.certificate
    if not leaf.not_valid_before_utc <= at <= leaf.not_valid_after_utc:
        raise Invalid(f"the certificate of the signer was not valid at {at:%Y-%m-%d %H:%M:%S} UTC, when it signed")
    issuers = (each for each in root.authorities if each.period.has(at) and is_issued(leaf, each.chain, at))
    issuer = next(issuers, None)
    if issuer is None:
        raise Invalid("no certificate authority that is trusted has issued the certificate of the signer")
    _check_purpose(leaf)
    _check_logged(leaf, issuer.chain[0], root)


def is_issued(leaf: x509.Certificate, above: Sequence[x509.Certificate], at: datetime) -> bool:
    """Whether the first of the certificates ``above``, which end with a root, issued one, and all held at a time."""
    chain = [leaf, *above]
    try:
        for each, issuer in zip(chain, [*chain[1:], chain[-1]], strict=True):
            each.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return all(
        _is_authority(each) and each.not_valid_before_utc <= at <= each.not_valid_after_utc for each in chain[1:]
    )


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        found = certificate.extensions
        constraints = found.get_extension_for_class(x509.BasicConstraints).value
        return constraints.ca and found.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False


def _check_purpose(leaf: x509.Certificate) -> None:
    try:
        found = leaf.extensions
        signs = found.get_extension_for_class(x509.KeyUsage).value.digital_signature
        purposes = found.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        raise Invalid("the certificate of the signer does not say that it is for signatures") from None
    if not signs or ExtendedKeyUsageOID.CODE_SIGNING not in purposes or _is_authority(leaf):
        raise Invalid("the certificate of the signer is not one for signing code")
    if any(each.critical and not isinstance(each.value, _KNOWN) for each in found):
        raise Invalid("the certificate of the signer has a critical extension that is not known (RFC 5280 4.2)")


def _check_logged(leaf: x509.Certificate, issuer: x509.Certificate, root: TrustedRoot) -> None:
    """Check the timestamp of a log in a certificate (RFC 6962 3.2). :raises Invalid: no trusted log has signed it"""
    try:
        stamps = leaf.extensions.get_extension_for_class(x509.PrecertificateSignedCertificateTimestamps).value
        signed = [(each, _logged_bytes(each, leaf, issuer)) for each in stamps]
    except (ValueError, x509.ExtensionNotFound, UnsupportedAlgorithm):
        raise Invalid("the certificate of the signer has no timestamp of a certificate log") from None
    for stamp, data in signed:
        log = root.certificate_logs.get(stamp.log_id)
        if log is None or not log.period.has(stamp.timestamp.replace(tzinfo=UTC)):
            continue
        if isinstance(stamp.signature_hash_algorithm, SHA256) and log.key.has_signed(stamp.signature, data):
            return
    raise Invalid("no certificate log that is trusted has the certificate of the signer")


def _logged_bytes(stamp: SignedCertificateTimestamp, leaf: x509.Certificate, issuer: x509.Certificate) -> bytes:
    """What a log signs of a precertificate. :raises ValueError: this is the timestamp of something else"""
    if stamp.entry_type is not LogEntryType.PRE_CERTIFICATE:
        raise ValueError("no precertificate")
    key = issuer.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    body, at_ms = leaf.tbs_precertificate_bytes, round(stamp.timestamp.replace(tzinfo=UTC).timestamp() * 1000)
    parts = (
        stamp.version.value.to_bytes(1),
        b"\x00",  # certificate_timestamp
        at_ms.to_bytes(8),
        stamp.entry_type.value.to_bytes(2),
        hashlib.sha256(key).digest(),
        len(body).to_bytes(3),
        body,
        len(stamp.extension_bytes).to_bytes(2),
        stamp.extension_bytes,
    )
    return b"".join(parts)


def _extensions(certificate: x509.Certificate) -> dict[int, str]:
    """The texts of the extensions of Fulcio by number. :raises ValueError: one is no text"""
    found: dict[int, str] = {}
    for each in certificate.extensions:
        oid, value = each.oid.dotted_string, each.value
        number = oid.removeprefix(FULCIO)
        if number != oid and number.isdigit() and isinstance(value, x509.UnrecognizedExtension):
            found[int(number)] = value.value.decode() if int(number) < 7 else _read_utf8_string(value.value)
    return found


def _read_utf8_string(data: bytes) -> str:
    """The text of a UTF8String in DER (X.690 section 8.23). :raises ValueError: the bytes are no UTF8String"""
    if len(data) < 2 or data[0] != 0x0C:
        raise ValueError("this is no UTF8String")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if not 0 <= length == len(data) - start:
        raise ValueError("the length of this UTF8String is not right")
    return data[start:].decode()
