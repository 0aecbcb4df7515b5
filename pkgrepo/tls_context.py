"""What connections by TLS have in common, those of clients to this server and those to upstreams."""

from __future__ import annotations

from typing import Final

from OpenSSL import SSL

# Of TLS 1.2; those of Twisted's CertificateOptions.
_CIPHERS: Final = (
    b"ECDH+AESGCM:ECDH+CHACHA20:DH+AESGCM:DH+CHACHA20:ECDH+AES256:DH+AES256:ECDH+AES128:DH+AES:RSA+AESGCM:RSA+AES"
    b":!aNULL:!MD5:!DSS"
)


def make_context() -> SSL.Context:
    """
    A context for TLS 1.2 and later that has no certificates yet.

    It has no callbacks, and none may be added: pyOpenSSL makes them in memory that is written and executed, which
    ``MemoryDenyWriteExecute=`` of the systemd unit forbids. Twisted's CertificateOptions has one for ALPN. Without ALPN
    clients speak HTTP/1.1 (RFC 9113 section 3.2), which is the only protocol here.
    """
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_CIPHER_SERVER_PREFERENCE | SSL.OP_NO_TICKET)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_cipher_list(_CIPHERS)
    return context
