"""Connections to upstreams by TLS, up to the first message of the handshake."""

from __future__ import annotations

from typing import Any

import pytest
from OpenSSL import SSL

from pkgrepo.tls_policy import make_policy


@pytest.mark.parametrize(("host", "is_named"), [(b"mirror.example", True), (b"192.0.2.17", False), (b"::1", False)])
def test_the_server_is_told_the_name_that_is_asked_for(host: bytes, is_named: bool) -> None:
    protocol: Any = None  # it is needed at the end of the handshake
    connection = make_policy([]).creatorForNetloc(host, 443).clientConnectionForTLS(protocol)
    connection.set_connect_state()
    with pytest.raises(SSL.WantReadError):
        connection.do_handshake()
    assert (host in connection.bio_read(16_384)) is is_named


def test_certificates_are_required() -> None:
    connection = make_policy([]).creatorForNetloc(b"mirror.example", 443).clientConnectionForTLS(None)
    assert connection.get_verify_mode() == SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
