"""TLS that ends in this process, with certificates that can be replaced while the server runs."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from pkgrepo.tls_context import make_context

from .site import Site

POLL_S = 10.0

_log = Logger()


class BadCertificate(Exception):  # noqa: N818 - named like the file it speaks of
    """Certificate and key cannot be used; the message says which file, and why."""


@implementer(IOpenSSLServerConnectionCreator)
class ServerCertificate:
    """
    A certificate chain and its key, read from PEM files: TLS 1.2 and later, HTTP/1.1 only.

    L{reload} reads the files again; later connections use the new certificate, older ones keep theirs. A certificate
    and a key that do not match change nothing: the two files are seldom replaced in one instant. ``expires_at`` is the
    end of the chain in use (aware UTC).

    :raises BadCertificate: the files cannot be used
    """

    def __init__(self, certificate_path: str, key_path: str) -> None:
        self._certificate_path = certificate_path
        self._key_path = key_path
        self._loaded = self._file_versions()
        self._context = self._load()
        self._watching: LoopingCall | None = None

    def serverConnectionForTLS(self, protocol: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: ARG002 - Twisted's
        """A connection with the present certificate."""
        return SSL.Connection(self._context, None)

    def reload(self) -> None:
        """
        Read the files again.

        :raises BadCertificate: they cannot be used; the old certificate stays
        """
        self._context = self._load()

    def reload_and_log(self) -> None:
        """L{reload}, and log the outcome."""
        try:
            self.reload()
        except BadCertificate as error:
            _log.error("the changed certificate is not used: {error}", error=str(error))
        else:
            _log.info("the certificate in {path} is used from now on", path=self._certificate_path)

    def watch(self, reactor: Any) -> None:
        """Check every ten seconds whether a file has changed, until L{unwatch}."""
        self._watching = LoopingCall(self._reload_if_changed)
        self._watching.clock = reactor
        self._watching.start(POLL_S, now=False)

    def unwatch(self) -> None:
        """Stop the checks."""
        if self._watching is not None and self._watching.running:
            self._watching.stop()

    def _reload_if_changed(self) -> None:
        versions = self._file_versions()
        if versions == self._loaded:
            return
        self._loaded = versions
        self.reload_and_log()

    def _file_versions(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_stamp(path) for path in (self._certificate_path, self._key_path))

    def _load(self) -> SSL.Context:
        chain = _read(self._certificate_path, x509.load_pem_x509_certificates)
        key = _read(self._key_path, lambda data: load_pem_private_key(data, None))
        context = make_context()
        context.set_session_id(os.urandom(16))
        try:
            context.use_certificate(chain[0])
            for each in chain[1:]:
                context.add_extra_chain_cert(each)
            context.use_privatekey(key)
            context.check_privatekey()
        except SSL.Error as error:
            raise BadCertificate(f"{self._key_path} is not the key of {self._certificate_path}") from error
        self.expires_at: datetime = min(each.not_valid_after_utc for each in chain)
        return context


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _read(path: str, parse: Any) -> Any:
    try:
        with open(path, "rb") as file:
            return parse(file.read())
    except (OSError, ValueError, TypeError) as error:
        raise BadCertificate(f"{path} cannot be used: {error}") from error


def tls_factory(certificate: ServerCertificate, site: Site, reactor: Any) -> TLSMemoryBIOFactory:
    """A factory that serves ``site`` through TLS; listen with it as with the site itself."""
    return TLSMemoryBIOFactory(certificate, False, site, clock=reactor)
