"""TLS to upstreams: certificates are always verified, against the system's authorities and private ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from OpenSSL.crypto import Error as CertificateError
from twisted.internet._sslverify import IOpenSSLTrustRoot
from twisted.internet.ssl import Certificate, platformTrust, trustRootFromCertificates
from twisted.web.client import BrowserLikePolicyForHTTPS, HostnameCachingHTTPSPolicy
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from pkgrepo.errors import Invalid

CACHED_HOSTS = 50  # TLS contexts; making one may read all of the system's certificates

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def make_policy(ca_files: Sequence[Path]) -> IPolicyForHTTPS:
    """
    How certificates are verified: by the system's authorities, and those in ``ca_files`` (PEM).

    Files are read here, once; they are small.

    :raises Invalid: a file cannot be read, or holds no certificate
    """
    roots = [platformTrust(), *(trustRootFromCertificates(_read(path)) for path in ca_files)]
    policy: IPolicyForHTTPS = HostnameCachingHTTPSPolicy(
        BrowserLikePolicyForHTTPS(_TrustRoots(roots)), cacheSize=CACHED_HOSTS
    )
    return policy


def _read(path: Path) -> list[Certificate]:
    try:
        found = [Certificate.loadPEM(text) for text in _CERTIFICATE.findall(path.read_bytes())]
    except (OSError, CertificateError, ValueError):
        found = []
    if not found:
        raise Invalid(f"{path} is no readable file of certificates in PEM", "ca_file")
    return found


@implementer(IOpenSSLTrustRoot)
class _TrustRoots:
    """Several trust roots as one."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = roots

    def _addCACertsToContext(self, context: Any) -> None:
        """See L{IOpenSSLTrustRoot}, which names it so."""
        for root in self._roots:
            root._addCACertsToContext(context)  # noqa: SLF001 - the interface names it so
