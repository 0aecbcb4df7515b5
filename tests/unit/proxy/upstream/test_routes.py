"""Where the hosts are that an upstream names."""

from __future__ import annotations

import pytest

from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.routes import Route

ROUTE = Route(
    "up",
    parse_url("https://up.example"),
    hosts=(("auth.example", "http://10.0.0.1:81/auth/"), ("cdn.example:8443", "https://mirror.example")),
)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("https://auth.example/token?a=b", "http://10.0.0.1:81/auth/token?a=b"),
        ("https://auth.example:5000/token", "http://10.0.0.1:81/auth/token"),
        ("https://cdn.example:8443/a%2fb", "https://mirror.example/a%2fb"),
        ("https://cdn.example/a", "https://cdn.example/a"),
        ("https://up.example/", "https://up.example/"),
    ],
)
def test_named_hosts_are_located(named: str, expected: str) -> None:
    assert ROUTE.locate(parse_url(named)).text == expected
