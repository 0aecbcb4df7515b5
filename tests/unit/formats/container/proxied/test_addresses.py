"""Where the registry API of a route is, the next page of its lists, and who gets its credentials."""

from __future__ import annotations

from typing import NoReturn

import pytest

from pkgrepo.errors import UpstreamFailed, UpstreamMisconfigured
from pkgrepo.formats.container.proxied.registry_client import UpstreamTokens, api_of, may_entrust, next_page
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.upstream.routes import Credentials, Route


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
    ("url", "realm", "expected"),
    [
        ("https://up.example:5000", "https://up.example/token", True),
        ("https://registry.up.example", "https://auth.up.example/token", True),
        ("https://registry.up.example", "https://up.example/token", True),
        ("https://up.example", "https://auth.up.example/token", True),
        ("https://registry.up.example", "https://auth.other.example/token", False),
        ("https://up.example", "https://auth.example/token", False),
        ("https://up.example", "https://evil-up.example/token", False),
        ("https://registry.co.uk", "https://evil.co.uk/token", False),
        ("https://10.0.0.1", "https://10.0.0.2/token", False),
        ("https://1.0.0.1", "https://0.0.1/token", False),
        ("https://[fd00::1]", "https://[fd00::2]/token", False),
        ("https://up.example", "http://up.example/token", False),
        ("http://up.example", "http://up.example:81/token", True),
        ("http://up.example", "https://up.example/token", True),
        ("http://registry.up.example", "http://auth.up.example/token", False),
        ("http://registry.up.example", "https://auth.up.example/token", False),
        ("https://up.example", "https://tokens.named:444/token", True),
        ("https://up.example", "https://tokens.named/token", False),
        ("https://up.example", "https://mapped.named/token", True),
    ],
)
def test_credentials_go_to_the_token_service_of_the_site_and_to_named_hosts(
    url: str, realm: str, *, expected: bool
) -> None:
    hosts = (("mapped.named", "https://10.0.0.1"),)
    route = Route("main", parse_url(url), hosts=hosts, token_hosts=("tokens.named:444",))
    assert may_entrust(route, parse_url(realm)) is expected


@pytest.mark.parametrize(
    ("realm", "error", "sentence"),
    [
        ("http://up.example/token", UpstreamFailed, "without TLS"),
        ("http://tokens.named/token", UpstreamFailed, "without TLS"),
        ("https://strange.example/token", UpstreamMisconfigured, "token_hosts"),
    ],
)
async def test_token_service_that_gets_no_credentials_is_not_asked(
    realm: str, error: type[UpstreamFailed], sentence: str
) -> None:
    credentials = Credentials("user", "sealed")
    route = Route("main", parse_url("https://up.example"), credentials=credentials, token_hosts=("tokens.named",))
    tokens, place = UpstreamTokens(lambda: 0.0), Place(1, route, "app")
    challenge = f'Bearer realm="{realm}",service="x"'
    with pytest.raises(error, match=sentence) as caught:
        await tokens.renew(_Unasked(), place, "repository:app:pull", challenge, None)
    assert "example" not in str(caught.value)


class _Unasked:
    """The client of a route by which no request is sent."""

    def open(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("the token service is asked")

    def misconfigured(self, reason: str, detail: str = "") -> UpstreamMisconfigured:
        assert detail == "strange.example:443"
        return UpstreamMisconfigured("main", reason)
