"""
TLS to upstreams: certificates are always verified, against the system's authorities and private ones.

The identity of the host is checked at the end of the handshake, before anything is sent, and not in a callback of
OpenSSL (see L{make_context}); that of Twisted 26.10 accepts certificates without alternative names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from attrs import frozen
from OpenSSL import SSL, crypto
from service_identity import CertificateError, VerificationError
from service_identity.pyopenssl import verify_hostname, verify_ip_address
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from pkgrepo.errors import Invalid
from pkgrepo.tls_context import make_context

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def make_policy(ca_files: Sequence[Path]) -> IPolicyForHTTPS:
    """
    How certificates are verified: by the system's authorities, and those in ``ca_files`` (PEM).

    Files are read here, once; they are small.

    :raises Invalid: a file cannot be read, or holds no certificate
    """
    return _Policy([certificate for path in ca_files for certificate in _read(path)])


def _read(path: Path) -> list[crypto.X509]:
    try:
        texts = _CERTIFICATE.findall(path.read_bytes())
        found = [crypto.load_certificate(crypto.FILETYPE_PEM, text) for text in texts]
    except (OSError, crypto.Error, ValueError):
        found = []
    if not found:
        raise Invalid(f"{path} is no readable file of certificates in PEM", "ca_file")
    return found


@implementer(IPolicyForHTTPS)
class _Policy:
    def __init__(self, authorities: Sequence[crypto.X509]) -> None:
        self._authorities = authorities

    @cached_property
    def _context(self) -> SSL.Context:
        # One for all hosts, because it reads all of the system's certificates.
        context = make_context()
        context.set_default_verify_paths()
        store = context.get_cert_store()
        assert store is not None
        for certificate in self._authorities:
            store.add_cert(certificate)
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT)
        return context

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:  # noqa: ARG002 - Twisted's
        """What makes TLS connections to a host."""
        return _Creator(self._context, hostname.decode("ascii"))


@implementer(IOpenSSLClientConnectionCreator)
@frozen
class _Creator:
    context: SSL.Context
    host: str

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """A connection that verifies the host."""
        return _VerifiedConnection(self.context, self.host, tlsProtocol)


class _VerifiedConnection(SSL.Connection):
    """A connection whose handshake fails if the certificate is for another host than this name or address."""

    def __init__(self, context: SSL.Context, host: str, protocol: TLSMemoryBIOProtocol) -> None:
        super().__init__(context, None)
        self._host = host
        self._protocol = protocol
        self._is_address = isIPAddress(host) or isIPv6Address(host)
        if not self._is_address:  # RFC 6066 section 3
            self.set_tlsext_host_name(host.encode("ascii"))

    def do_handshake(self) -> None:
        """Continue the handshake; the protocol's connection is lost with a L{VerificationError} as reason."""
        super().do_handshake()
        try:
            (verify_ip_address if self._is_address else verify_hostname)(self, self._host)
        except (VerificationError, CertificateError, ValueError) as error:
            found = error if isinstance(error, VerificationError) else VerificationError(errors=[])
            self._protocol.failVerification(Failure(found))
            # a list as OpenSSL's own errors have: Twisted reads the last reason in it
            raise SSL.Error([("", "do_handshake", "the certificate is for another host")]) from error
