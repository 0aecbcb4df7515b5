"""Where the registry API of a route is, the next page of its lists, and who gets its credentials."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.proxied.registry_client import api_of, next_page
from pkgrepo.formats.container.proxied.tokens import may_entrust
from pkgrepo.outbound.urls import parse_url


@pytest.mark.parametrize(
    ("url", "base", "prefix"),
    [
        ("https://up.example", "https://up.example/v2", ""),
        ("https://up.example:5000/v2", "https://up.example:5000/v2", ""),
        ("https://up.example/v2/main/images", "https://up.example/v2", "main/images/"),
        ("https://up.example/registry", "https://up.example/registry/v2", ""),
        ("https://up.example/repositories/v2/images/v2", "https://up.example/repositories/v2/images/v2", ""),
        ("https://v2", "https://v2/v2", ""),
    ],
)
def test_the_api_is_below_the_url_of_the_route(url: str, base: str, prefix: str) -> None:
    assert api_of(url) == (base, prefix)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (None, None),
        ('</v2/app/tags/list?last=b&n=2>; rel="next"', "tags/list?last=b&n=2"),
        ("<https://other.example/app/tags/list?n=2&last=b>;rel=next", "tags/list?n=2&last=b"),
        ('</v2/app/tags/list?n=2>; rel="prev"', None),
        ('</v2/app/tags/list>; rel="next"', None),
        ("tags/list?last=b", None),
        ('</v2/odd</a?n=2>; rel="next"', "tags/list?n=2"),
    ],
)
def test_the_next_page_is_that_of_the_link(link: str | None, expected: str | None) -> None:
    assert next_page("tags/list?n=1000", link) == expected


def test_a_hostile_link_is_searched_once() -> None:
    assert next_page("tags/list", "<" * 2_000_000 + '</x?n=2>; rel="next"') == "tags/list?n=2"


@pytest.mark.parametrize(
    ("route", "realm", "expected"),
    [
        ("https://up.example", "https://auth.example/token", True),
        ("https://up.example", "http://up.example/token", False),
        ("http://up.example", "http://up.example:81/token", True),
        ("http://up.example", "http://auth.example/token", False),
        ("http://up.example", "https://auth.example/token", False),
    ],
)
def test_credentials_go_to_token_services_that_nobody_else_can_have_named(
    route: str, realm: str, *, expected: bool
) -> None:
    assert may_entrust(parse_url(route), parse_url(realm)) is expected
