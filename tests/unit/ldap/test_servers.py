from __future__ import annotations

import pytest

from pkgrepo.ldap.servers import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ldap://Ldap.Corp.example", Address("ldap.corp.example", 389, False)),
        ("ldaps://ldap.corp.example/", Address("ldap.corp.example", 636, True)),
        ("ldaps://[2001:db8::1]:3269", Address("2001:db8::1", 3269, True)),
        ("ldap://127.0.0.1:1389", Address("127.0.0.1", 1389, False)),
    ],
)
def test_addresses(url, address):
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "ldapi:///run/x",
        "https://x",
        "ldap://",
        "ldap://a/dc=corp",
        "ldap://a b",
        "ldap://u@a",
        "ldap://a:0",
        "ldap://a?x",
    ],
)
def test_what_is_no_address(url):
    with pytest.raises(ValueError, match="it"):
        parse_address(url)
