"""Whether upstreams get what people search for."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from pkgrepo.model import Repository, RepositoryType, Visibility
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.uncached import passes_searches


def repository(number: int, type_: RepositoryType, visibility: Visibility, passes: bool | None = None) -> Repository:
    config: dict[str, Any] = {
        "members": [],
        "publish_to": None,
        "resolution": "first",
        "proxy": {"routes": [{"url": "http://a.example"}]},
    }
    plain = make_placeholder(number, "main", f"r{number}")
    settings = {} if passes is None else {"policy": {"pass_searches": passes}}
    return evolve(plain, uid=f"u{number}", type=type_, visibility=visibility, config=config, settings=settings)


@pytest.mark.parametrize(
    ("own", "around", "proxy", "passed"),
    [
        (Visibility.PUBLIC, None, None, True),
        (Visibility.PRIVATE, None, None, False),
        (Visibility.PRIVATE, True, None, True),
        (Visibility.PRIVATE, None, True, True),
        (Visibility.PRIVATE, True, False, False),
        (Visibility.PUBLIC, False, True, False),
    ],
)
def test_searches_beside_hosted_packages_are_passed_on_as_the_rules_say(
    own: Visibility, around: bool | None, proxy: bool | None, passed: bool
) -> None:
    virtual = repository(1, RepositoryType.VIRTUAL, Visibility.PUBLIC, around)
    mirror = repository(2, RepositoryType.PROXY, Visibility.PRIVATE, proxy)
    hosted = repository(3, RepositoryType.HOSTED, own)
    assert passes_searches([hosted, mirror], FlatMember(mirror, [virtual])) is passed


@pytest.mark.parametrize(("rule", "passed"), [(None, True), (True, True), (False, False)])
def test_private_proxy_alone_passes_searches_on_unless_a_rule_forbids_it(rule: bool | None, passed: bool) -> None:
    mirror = repository(2, RepositoryType.PROXY, Visibility.PRIVATE, rule)
    assert passes_searches([mirror], FlatMember(mirror)) is passed
