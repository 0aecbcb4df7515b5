"""Self-signed certificates for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from pkgrepo.http.tls import ServerCertificate


def write_certificate(folder: Path, name: str = "localhost", *, common_name_only: bool = False) -> tuple[Path, Path]:
    """
    Write a self-signed certificate for 127.0.0.1 and a host name as ``server.crt`` and ``server.key``.

    With ``common_name_only`` it has no alternative names of the subject, which clients require (RFC 9525 section 2).
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    if not common_name_only:
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    certificate_path, key_path = folder / "server.crt", folder / "server.key"
    certificate_path.write_bytes(certificate.public_bytes(Encoding.PEM))
    key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate_path, key_path


def make_certificate(folder: Path) -> ServerCertificate:
    certificate_path, key_path = write_certificate(folder)
    return ServerCertificate(str(certificate_path), str(key_path))
