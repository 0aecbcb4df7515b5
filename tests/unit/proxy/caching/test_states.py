"""What becomes of a kept answer, by its times, its route, and the configuration as it is now."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import StorageFull, UpstreamDenied, UpstreamFailed
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.caching.states import KeptState, fresh_until_ms, state_of
from pkgrepo.proxy.schema import ProxyConfig
from pkgrepo.repositories.configuration import Configurations
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

CONFIGURATIONS = Configurations("this format", ProxyConfig)
T = 1_800_000_000_000
URL = "http://a.example"


def proxy(url: str = URL, **settings: Any) -> Repository:
    config = {"type": "Proxy", "proxy": {"routes": [{"name": "a", "url": url}]}, **settings}
    fixed, others = CONFIGURATIONS.validate(config)
    plain = make_placeholder(1, "main", "mirror")
    return evolve(plain, type=RepositoryType.PROXY, config=fixed, settings=others)


def kept(route: str = "a", ttl_s: int = 300, **fields: Any) -> UpstreamDocument:
    times = {"fetched_ms": T, "checked_ms": T, "fresh_until_ms": T + 1000 * ttl_s}
    return UpstreamDocument(key="demo", route=route, **{"meta": {"address": URL}, **times, **fields})


@pytest.mark.parametrize(
    ("after_s", "options", "state"),
    [
        (299, {}, KeptState.FRESH),
        (300, {}, KeptState.OLD),
        (9, {"revalidate": True}, KeptState.FRESH),
        (10, {"revalidate": True}, KeptState.OLD),
        (30, {"most_ttl_s": 60}, KeptState.FRESH),
        (60, {"most_ttl_s": 60}, KeptState.OLD),
        (400, {"failed_until_ms": T + 401_000}, KeptState.STALE),
        (400, {"failed_until_ms": T + 401_000, "revalidate": True}, KeptState.STALE),
        (401, {"failed_until_ms": T + 401_000}, KeptState.OLD),
    ],
)
def test_times(after_s: int, options: dict[str, Any], state: KeptState) -> None:
    assert state_of(proxy(cache_ttl=300), kept(), T + 1000 * after_s, **options) is state


def test_nothing_is_kept() -> None:
    assert state_of(proxy(), None, T) is KeptState.NONE
    assert state_of(proxy(), None, T, failed_until_ms=T + 1) is KeptState.STALE


def test_a_shorter_time_in_the_configuration_holds_for_what_is_kept_already() -> None:
    long = kept(ttl_s=86_400)
    assert state_of(proxy(cache_ttl=60), long, T + 61_000) is KeptState.OLD
    assert fresh_until_ms(proxy(cache_ttl=60), long) == T + 60_000
    assert state_of(proxy(cache_ttl=172_800), long, T + 86_400_000) is KeptState.OLD, "no longer than it was promised"


def test_what_no_route_has_is_fresh_for_its_own_time() -> None:
    absent = kept(route="", ttl_s=3600, meta={})
    assert state_of(proxy(cache={"negative_ttl": "30s"}), absent, T + 29_000) is KeptState.FRESH
    assert state_of(proxy(cache={"negative_ttl": "30s"}), absent, T + 30_000) is KeptState.OLD


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (kept(), KeptState.FORMER),
        (kept(route="b", meta={}), KeptState.FORMER),
        (kept(meta={}), KeptState.FRESH),
        (kept(meta={"address": None}), KeptState.FRESH),
        (kept(route="", meta={}), KeptState.FRESH),
    ],
)
def test_what_came_from_a_former_address_is_not_served_whatever_happens(
    document: UpstreamDocument, state: KeptState
) -> None:
    moved = proxy("http://elsewhere.example")
    assert state_of(moved, document, T) is state
    if state is KeptState.FORMER:
        assert state_of(moved, document, T, failed_until_ms=T + 1) is KeptState.FORMER
        assert not state.serves_after(UpstreamFailed("a", "it is down"), of_many=True)


@pytest.mark.parametrize(
    ("failure", "of_many", "serves"),
    [
        (UpstreamFailed("a", "it is down"), False, True),
        (StorageFull("main"), False, True),
        (UpstreamDenied("a", "no"), False, False),
        (UpstreamDenied("a", "no"), True, True),
    ],
)
def test_after_failures_it_is_served_and_after_refusals_not(failure: Exception, of_many: bool, serves: bool) -> None:
    assert KeptState.OLD.serves_after(failure, of_many=of_many) is serves
    assert not KeptState.NONE.serves_after(failure, of_many=of_many)
