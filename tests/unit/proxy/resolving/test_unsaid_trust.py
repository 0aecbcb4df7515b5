"""Rules about who published a gem of an upstream, whose documents do not say which versions have attestations."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.resolving import attested_files
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.refusals import RuleRefused
from tests.support.proxy_world import ProxyWorld
from tests.support.sigstore import FakeSigstore
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.rubygems import RubyUpstream

FAKE = FakeSigstore()
FELL = {"name": "fell", "match": {"trust": "fell"}, "missing": "block"}
NONE = {"name": "some", "match": {"trust": "none"}, "missing": "block"}


@pytest_twisted.async_fixture
async def trusting(world: ProxyWorld) -> ProxyWorld:
    world.core.trusted_root = FAKE.root
    await world.restart()
    return world


def path_of(version: str) -> str:
    return f"/api/v1/attestations/left-{version}.json"


def publish(up: RubyUpstream, version: str, created: str, attested: bytes | None = b"") -> bytes:
    """Publish a version of ``left`` on a day, attested unless None; ``attested`` are other bytes, if any."""
    data = up.add("left", version, created=f"{created}T00:00:00Z")
    body = b"[]" if attested is None else FAKE.gem(attested or data)
    up.serve(path_of(version), Answer(body=body, fields={"Content-Type": "application/json"}))
    return data


async def find(world: ProxyWorld, mirror: Repository, version: str) -> None:
    await world.files.find(mirror, "left", f"gems/left-{version}.gem", want=Want.BYTES)


async def refusal(world: ProxyWorld, mirror: Repository, version: str) -> str:
    with pytest.raises(RuleRefused) as caught:
        await find(world, mirror, version)
    return str(caught.value)


async def make(world: ProxyWorld, up: RubyUpstream, *rules: dict[str, Any], name: str = "mirror") -> Repository:
    return await world.proxy(name, up, format="ruby", policy={"rules": [*rules] or [FELL]})


async def test_a_gem_without_attestations_is_refused_if_one_before_had_any(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01", None)
    publish(up, "1.1.0", "2026-07-02")
    publish(up, "1.2.0", "2026-07-03", None)
    publish(up, "1.3.0", "2026-07-04", None)
    publish(up, "1.4.0", "2026-07-05")
    mirror = await make(trusting, up)
    for version in ("1.0.0", "1.1.0", "1.4.0"):
        await find(trusting, mirror, version)
    for version in ("1.2.0", "1.3.0"):
        why = await refusal(trusting, mirror, version)
        assert "(1.1.0 before it had provenance, and it has no provenance)" in why
    assert up.count("/gems/left-1.3.0.gem") == 0
    assert [up.count(path_of(f"1.{each}.0")) for each in range(5)] == [0, 1, 1, 1, 1]


async def test_provenance_of_a_gem_is_verified_and_forged_is_none(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01")
    publish(up, "1.1.0", "2026-07-02", b"other bytes")
    mirror = await make(trusting, up, NONE)
    await find(trusting, mirror, "1.0.0")
    why = await refusal(trusting, mirror, "1.1.0")
    assert "(it has no provenance that is verified: its entry in the transparency log is about a file with" in why
    assert up.count("/gems/left-1.1.0.gem") == 0


async def test_a_server_without_the_address_has_no_attestations_and_one_that_fails_makes_the_request_fail(
    trusting: ProxyWorld,
) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01")
    up.serve(path_of("1.0.0"), Answer(500))
    mirror = await make(trusting, up, NONE)
    with pytest.raises(UpstreamFailed):
        await find(trusting, mirror, "1.0.0")
    up.serve(path_of("1.0.0"), Answer(404))
    trusting.clock.advance(3600)
    assert "(it has no provenance)" in await refusal(trusting, mirror, "1.0.0")


async def test_if_those_of_a_version_before_cannot_be_had_the_request_fails(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01")
    publish(up, "1.1.0", "2026-07-02", None)
    up.serve(path_of("1.0.0"), Answer(503))
    mirror = await make(trusting, up)
    with pytest.raises(UpstreamFailed):
        await find(trusting, mirror, "1.1.0")


async def test_gems_older_than_attestations_are_not_asked_about(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2024-09-30")
    publish(up, "1.1.0", "2026-07-02", None)
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.0.0")
    await find(trusting, mirror, "1.1.0")
    assert up.count(path_of("1.0.0")) == 0
    assert "(it has no provenance)" in await refusal(trusting, await make(trusting, up, NONE, name="some"), "1.0.0")


async def test_prereleases_count_for_prereleases(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0.pre1", "2026-07-01")
    publish(up, "1.0.0", "2026-07-02", None)
    publish(up, "1.1.0.pre1", "2026-07-03", None)
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.0.0")
    assert "1.0.0.pre1 before it had provenance" in await refusal(trusting, mirror, "1.1.0.pre1")


async def test_no_more_than_a_limit_is_asked_about_for_one_question(
    trusting: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attested_files, "MOST_BEFORE", 12)
    up = trusting.started(RubyUpstream())
    for number in range(20):
        publish(up, f"1.{number}.0", f"2026-07-{number + 1:02}", None if number else b"")
    mirror = await make(trusting, up)
    why = await refusal(trusting, mirror, "1.19.0")
    assert "(whether it comes with less trust is not known)" in why
    assert "of versions before it the attestations were not all read" in why
    assert up.count(path_of("1.0.0")) == 0
    allowing = await make(trusting, up, {**FELL, "missing": "allow"}, name="allowing")
    assert "1.0.0 before it had provenance" in await refusal(trusting, mirror, "1.19.0")  # it went on there
    assert "1.0.0 before it had provenance" in await refusal(trusting, allowing, "1.19.0")
    assert sum(up.count(path_of(f"1.{number}.0")) for number in range(20)) == 20


async def test_a_gem_that_was_kept_is_judged_like_one_that_is_listed(trusting: ProxyWorld) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01")
    publish(up, "1.1.0", "2026-07-02", None)
    mirror = await trusting.proxy("mirror", up, format="ruby")
    for version in ("1.0.0", "1.1.0"):
        found = await trusting.files.find(mirror, "left", f"gems/left-{version}.gem", want=Want.BYTES)
        await trusting.proxies.fetching.finish(found.file)  # type: ignore[arg-type]
    await trusting.settle()
    up.yank("left", "1.0.0")
    trusting.clock.advance(100_000)
    mirror = await trusting.change(mirror, settings={**mirror.settings, "policy": {"rules": [FELL]}})
    await trusting.core.registry.refresh()
    mirror = trusting.now(mirror)
    assert "1.0.0 before it had provenance" in await refusal(trusting, mirror, "1.1.0")


@pytest.mark.parametrize("body", [b"{}", b"null", b"[" * 2000, json.dumps([{}] * 17).encode(), b"x"])
async def test_a_document_that_is_no_list_of_attestations_makes_the_request_fail(
    trusting: ProxyWorld, body: bytes
) -> None:
    up = trusting.started(RubyUpstream())
    publish(up, "1.0.0", "2026-07-01")
    up.serve(path_of("1.0.0"), Answer(body=body))
    mirror = await make(trusting, up, NONE)
    with pytest.raises(UpstreamFailed):
        await find(trusting, mirror, "1.0.0")


async def test_that_a_young_version_before_has_none_is_asked_again_after_an_hour(trusting: ProxyWorld) -> None:
    """Its attestation may still come, for which the next version is held."""
    up = trusting.started(RubyUpstream())
    today = from_ms(trusting.clock.now_ms())
    gems = {}
    for version, hours in (("1.0.0", 3), ("1.1.0", 2)):
        gems[version] = up.add("left", version, created=f"{today - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}")
        up.serve(path_of(version), Answer(body=b"[]", fields={"Content-Type": "application/json"}))
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.1.0")
    up.serve(path_of("1.0.0"), Answer(body=FAKE.gem(gems["1.0.0"]), fields={"Content-Type": "application/json"}))
    await find(trusting, mirror, "1.1.0")  # which is known for an hour
    trusting.clock.advance(3601)
    assert "1.0.0 before it had provenance" in await refusal(trusting, mirror, "1.1.0")
