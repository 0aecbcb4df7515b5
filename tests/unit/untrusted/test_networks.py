"""Networks of clients' addresses."""

from __future__ import annotations

import pytest

from pkgrepo.untrusted.networks import client_network


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1/32"),
        ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ("2001:db8:0:1:aaaa::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a socket", "a socket"),
    ],
)
def test_clients_are_counted_for_networks(address: str, network: str) -> None:
    assert client_network(address) == network
