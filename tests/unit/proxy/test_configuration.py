"""Stored configurations of proxy and virtual repositories as values."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.configuration import (
    DEFAULT_NEGATIVE_TTL_S,
    DEFAULT_TTL_S,
    Rules,
    proxy_config_of,
    virtual_config_of,
)
from pkgrepo.proxy.schema import ProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations

ALL = Configurations("this format", ProxyConfig | VirtualConfig)


def repository(**config: Any) -> Repository:
    fixed, settings = ALL.validate(config)
    plain = make_placeholder(1, "main", "mirror")
    return evolve(plain, type=RepositoryType(fixed["type"]), config=fixed, settings=settings)


def proxy(*routes: Any, **settings: Any) -> Repository:
    return repository(type="Proxy", proxy={"routes": list(routes)}, **settings)


def test_routes_are_sorted_by_priority_and_then_as_they_are_listed() -> None:
    config = proxy_config_of(
        proxy(
            {"url": "http://a.example/"},
            {"url": "http://b.example/x/", "priority": 10},
            {"url": "http://c.example", "priority": -1},
            {"url": "http://d.example", "priority": 10},
            {"url": "http://e.example"},
        )
    )
    assert [route.url for route in config.routes] == [
        "http://b.example/x",
        "http://d.example",
        "http://a.example",
        "http://e.example",
        "http://c.example",
    ]


def test_timeouts_and_token_hosts_of_a_route() -> None:
    given = {
        "url": "http://a.example/",
        "connect_timeout": 3,
        "idle_timeout": "2m",
        "token_hosts": ["Auth.example:444"],
    }
    first, other = proxy_config_of(proxy(given, "http://b.example")).routes
    assert (first.connect_timeout_s, first.idle_timeout_s, first.token_hosts) == (3, 120, ("auth.example:444",))
    assert (other.connect_timeout_s, other.idle_timeout_s, other.token_hosts) == (None, None, ())


def test_defaults() -> None:
    config = proxy_config_of(proxy("http://a.example/"))
    assert (config.ttl_s, config.negative_ttl_s) == (DEFAULT_TTL_S, DEFAULT_NEGATIVE_TTL_S)
    assert (config.stale_if_gone_s, config.max_bytes, config.unused_days) == (None, None, None)
    assert config.rules == Rules()


@pytest.mark.parametrize(
    ("text", "seconds"), [("Default", DEFAULT_TTL_S), (0, 0), ("0", 0), ("90", 90), ("5m", 300), ("2d", 172_800)]
)
def test_durations_are_in_seconds(text: str | int, seconds: int) -> None:
    assert proxy_config_of(proxy("http://a.example/", cache_ttl=text)).ttl_s == seconds


def test_settings_of_the_cache() -> None:
    cache = {"negative_ttl": 0, "stale_if_gone": "1d", "max_bytes": 5, "unused_days": 3}
    config = proxy_config_of(proxy("http://a.example/", cache=cache))
    assert (config.negative_ttl_s, config.stale_if_gone_s) == (0, 86_400)
    assert (config.max_bytes, config.unused_days) == (5, 3)


def test_credentials_are_in_no_repr() -> None:
    auth = {"username": "ci", "password": "hidden-word"}
    config = proxy_config_of(
        proxy({"url": "http://a.example/", "auth": auth}, {"url": "http://b.example", "auth": {"token": "hidden-word"}})
    )
    basic, bearer = (route.credentials for route in config.routes)
    assert basic is not None
    assert bearer is not None
    assert (basic.username, basic.sealed) == ("ci", "hidden-word")
    assert (bearer.username, bearer.sealed) == (None, "hidden-word")
    assert "hidden-word" not in repr(config)


def test_a_virtual_repository() -> None:
    config = virtual_config_of(repository(type="Virtual", members=["b", "a"], publish_to="a", resolution="merge"))
    assert (config.members, config.publish_to, config.merges) == (("b", "a"), "a", True)
    plain = virtual_config_of(repository(type="Virtual", members=["b"]))
    assert (plain.publish_to, plain.merges) == (None, False)


def test_a_configuration_is_parsed_once_until_it_changes() -> None:
    first = proxy("http://a.example/")
    assert proxy_config_of(first) is proxy_config_of(evolve(first, serial=7))
    changed = proxy("http://b.example/")
    assert proxy_config_of(changed).routes[0].url == "http://b.example"
    assert proxy_config_of(first).routes[0].url == "http://a.example"


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("@acme/tool", "@acme/*"),
        ("@ACME/Tool", "@acme/*"),
        ("acme-x", "acme-*"),
        ("acme_x", "acme-*"),
        ("Acme.X", "acme-*"),
        ("acme--x", "acme-*"),
        ("acme", None),
        ("x/acme-x", None),
    ],
)
def test_reserved_names_match_in_any_spelling(name: str, glob: str | None) -> None:
    config = proxy_config_of(proxy("http://a.example/", policy={"reserved_names": ["@Acme/*", "Acme_*"]}))
    assert config.rules.reserved_by(name) == glob
