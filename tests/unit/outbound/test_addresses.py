"""Addresses to which upstream connections may go."""

import pytest

from pkgrepo.outbound.addresses import AddressGuard, check_exception, is_loopback

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:0a00:0001::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "168.63.129.17",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("address", REFUSED)
def test_address_that_is_not_public_needs_an_exception(address):
    assert not AddressGuard().permits("mirror.example", address)
    assert AddressGuard(["mirror.example"]).permits("mirror.example", address)
    assert AddressGuard(["0.0.0.0/0", "::/0"]).permits("mirror.example", address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_permitted(address):
    assert AddressGuard().permits("mirror.example", address)


@pytest.mark.parametrize(
    ("exception", "host", "address", "permitted"),
    [
        ("10.0.0.1", "a.example", "10.0.0.1", True),
        ("10.0.0.1", "a.example", "10.0.0.2", False),
        ("10.0.0.1", "a.example", "::ffff:10.0.0.1", True),
        ("10.1.2.3/8", "a.example", "10.200.0.1", True),
        ("fd00::/8", "a.example", "fd12::1", True),
        ("fd00::/8", "a.example", "fe80::1", False),
        ("127.0.0.1", "localhost", "::1", False),
        ("localhost", "localhost", "::1", True),
        ("A.Example", "a.example.", "10.0.0.1", True),
        ("a.example", "b.a.example", "10.0.0.1", False),
        ("*.corp.example", "a.corp.example", "10.0.0.1", True),
        ("*.corp.example", "a.b.CORP.example", "10.0.0.1", True),
        ("*.corp.example", "corp.example", "10.0.0.1", False),
        ("*.corp.example", "evilcorp.example", "10.0.0.1", False),
        ("*.corp.example", "corp.example.evil.example", "10.0.0.1", False),
    ],
)
def test_exceptions(exception, host, address, permitted):
    assert AddressGuard([exception]).permits(host, address) is permitted


@pytest.mark.parametrize(
    "text", ["", "*", "*.", "a.*.example", "http://a.example", "a b", "10.0.0.0/33", "a.example:80"]
)
def test_text_that_is_no_exception(text):
    with pytest.raises(ValueError, match="is no host"):
        check_exception(text)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.0.0.1.",
        "0",
        "localhost",
        "localhost.",
        "a.localhost",
        "::1",
        "::ffff:127.0.0.1",
    ],
)
def test_host_that_no_proxy_is_asked_for(host):
    assert not AddressGuard().permits_unresolved(host)
    assert AddressGuard([host] if ":" in host else ["*.localhost", "localhost", "0.0.0.0/0"]).permits_unresolved(host)


@pytest.mark.parametrize("host", ["mirror.example", "8.8.8.8", "localhost.example", "10.example", "2606:4700::1111"])
def test_host_that_a_proxy_may_resolve(host):
    assert AddressGuard().permits_unresolved(host)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.8.9.1", True),
        ("0x7f000001", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("a.b", False),
    ],
)
def test_hosts_that_are_this_machine(host, expected):
    assert is_loopback(host) is expected
