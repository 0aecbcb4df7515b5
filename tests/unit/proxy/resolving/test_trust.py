"""Rules about who published a version, of packages of upstreams: what is claimed, and what is verified."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import UpstreamFailed
from pkgrepo.formats.python.names import file_path
from pkgrepo.model import File, Repository
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.repositories.policy.refusals import RuleRefused
from tests.support.proxy_world import ProxyWorld
from tests.support.sigstore import FakeSigstore
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream

FAKE = FakeSigstore()
CLAIM = {"attestations": {"url": "https://elsewhere.example/", "provenance": {"predicateType": "slsa"}}}
PUBLISHER = {"name": "bot", "trustedPublisher": {"id": "forge", "oidcConfigId": "oidc:1"}}
FELL = {"name": "fell", "match": {"trust": "fell"}, "missing": "block"}


@pytest_twisted.async_fixture
async def trusting(world: ProxyWorld) -> ProxyWorld:
    world.core.trusted_root = FAKE.root
    await world.restart()
    return world


def day(number: int) -> str:
    return f"2026-08-{number:02}T00:00:00.000Z"


def attest(up: NpmUpstream, name: str, version: str, tarball: bytes, **changes: Any) -> str:
    """Serve the attestation of a tarball. Returns its path."""
    path = f"/-/npm/v1/attestations/{name.replace('/', '%2f')}@{version}"
    body = json.dumps(FAKE.npm(name, version, tarball, **changes)).encode()
    up.serve(path, Answer(body=body, fields={"Content-Type": "application/json"}))
    return path


def publish(up: NpmUpstream, version: str, number: int, *, claims: bool, attested: bytes | None = None) -> bytes:
    """Publish a version of ``left`` on a day; ``attested`` are the bytes that the attestation is about."""
    dist = CLAIM if claims else None
    tarball = up.add("left", version, published=day(number), dist=dist)
    if claims and attested is None:
        attest(up, "left", version, tarball)
    elif attested:
        attest(up, "left", version, attested)
    return tarball


async def find(world: ProxyWorld, mirror: Repository, version: str) -> None:
    await world.files.find(mirror, "left", f"left/-/left-{version}.tgz", want=Want.BYTES)


async def refusal(world: ProxyWorld, mirror: Repository, version: str) -> str:
    with pytest.raises(RuleRefused) as caught:
        await find(world, mirror, version)
    return str(caught.value)


async def make(world: ProxyWorld, up: NpmUpstream, *rules: dict[str, Any]) -> Repository:
    return await world.proxy("mirror", up, policy={"rules": [*rules] or [FELL]})


async def test_a_version_with_less_than_one_before_is_hidden_and_refused(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=False)
    publish(up, "1.1.0", 2, claims=True)
    publish(up, "1.2.0", 3, claims=False)
    publish(up, "1.0.1", 4, claims=False)
    mirror = await make(trusting, up)
    assert await trusting.versions(mirror, "left") == ["1.0.0", "1.1.0"]
    await find(trusting, mirror, "1.0.0")
    await find(trusting, mirror, "1.1.0")
    assert await refusal(trusting, mirror, "1.2.0") == (
        "left-1.2.0.tgz is blocked by the rule 'fell' of main/mirror (1.1.0 before it had provenance, and it has no "
        "provenance); who has the action admin in main/mirror can lift that"
    )
    await refusal(trusting, mirror, "1.0.1")


async def test_ranks_are_those_of_pnpm(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    every = {"1.0.0": {"name": "a", "approver": {"name": "b"}}, "1.1.0": PUBLISHER, "1.2.0": {"name": "a"}}
    for number, (version, user) in enumerate(every.items(), 1):
        tarball = up.add("left", version, published=day(number), dist=CLAIM, _npmUser=user)
        attest(up, "left", version, tarball)
    mirror = await make(trusting, up)
    assert await trusting.versions(mirror, "left") == ["1.0.0"]
    assert "1.0.0 before it had a staged publish, and it has a trusted publisher" in await refusal(
        trusting, mirror, "1.1.0"
    )
    assert "and it has provenance" in await refusal(trusting, mirror, "1.2.0")


async def test_provenance_is_verified_before_the_first_byte_is_sent(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=True, attested=b"other bytes")
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.0.0")
    why = await refusal(trusting, mirror, "1.1.0")
    assert "no provenance that is verified: the statement is about a file with other bytes" in why
    assert up.count("/left/-/left-1.1.0.tgz") == 0
    assert await trusting.versions(mirror, "left") == ["1.0.0"]


async def test_a_version_that_nothing_is_compared_with_asks_for_no_attestation(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    tarball = publish(up, "1.0.0", 1, claims=True)
    path = attest(up, "left", "1.0.0", tarball)
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.0.0")
    assert up.count(path) == 0


async def test_an_attestation_that_is_not_there_is_missing_and_one_that_fails_makes_the_request_fail(
    trusting: ProxyWorld,
) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    tarball = publish(up, "1.1.0", 2, claims=True)
    mirror = await make(trusting, up)
    path = "/-/npm/v1/attestations/left@1.1.0"
    up.serve(path, Answer(500))
    with pytest.raises(UpstreamFailed):
        await find(trusting, mirror, "1.1.0")
    up.serve(path, Answer(404))
    trusting.clock.advance(3600)
    why = await refusal(trusting, mirror, "1.1.0")
    assert "(whether it comes with less trust is not known) (the attestation that is claimed is not there)" in why
    assert await trusting.versions(mirror, "left") == ["1.0.0"]
    allowing = await trusting.proxy("allowing", up, policy={"rules": [{**FELL, "missing": "allow"}]})
    await find(trusting, allowing, "1.1.0")
    attest(up, "left", "1.1.0", tarball)
    trusting.clock.advance(3601)
    await find(trusting, mirror, "1.1.0")


async def test_what_other_rules_hide_still_counts(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=False)
    publish(up, "1.2.0", 3, claims=False)
    block = {"name": "no", "match": {"versions": "1.0.0"}}
    mirror = await make(trusting, up, FELL, block)
    await refusal(trusting, mirror, "1.2.0")


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "stripped"])
async def test_a_version_that_was_kept_counts_when_the_upstream_has_it_no_more(
    trusting: ProxyWorld, gone: bool
) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=False)
    mirror = await make(trusting, up)
    kept = await trusting.files.find(mirror, "left", "left/-/left-1.0.0.tgz", want=Want.BYTES)
    await trusting.proxies.fetching.finish(kept.file)  # type: ignore[arg-type]
    await trusting.settle()
    if gone:
        up.change("left")["versions"].pop("1.0.0")
    else:
        up.change("left")["versions"]["1.0.0"]["dist"].pop("attestations")
    trusting.clock.advance(100_000)
    assert "1.0.0 before it had provenance" in await refusal(trusting, mirror, "1.1.0")


async def test_files_that_were_kept_without_the_rule_are_verified(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=True, attested=b"other bytes")
    mirror = await trusting.proxy("mirror", up)
    for version in ("1.0.0", "1.1.0"):
        found = await trusting.files.find(mirror, "left", f"left/-/left-{version}.tgz", want=Want.BYTES)
        await trusting.proxies.fetching.finish(found.file)  # type: ignore[arg-type]
    await trusting.settle()
    mirror = await trusting.change(mirror, settings={**mirror.settings, "policy": {"rules": [FELL]}})
    await trusting.core.registry.refresh()
    mirror = trusting.now(mirror)
    await find(trusting, mirror, "1.0.0")
    assert "a file with other bytes" in await refusal(trusting, mirror, "1.1.0")


async def test_an_attestation_is_fetched_once_for_all_repositories(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=True)
    mirrors = [await trusting.proxy(name, up, policy={"rules": [FELL]}) for name in ("one", "two")]
    for mirror in mirrors:
        for _ in range(2):
            found = await trusting.files.find(mirror, "left", "left/-/left-1.1.0.tgz", want=Want.BYTES)
            if not isinstance(found.file, File):
                await trusting.proxies.fetching.finish(found.file)
                await trusting.settle()
            trusting.clock.advance(100_000)
    assert up.count("/-/npm/v1/attestations/left@1.1.0") == 1


async def test_with_another_trusted_root_what_was_verified_is_verified_again(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=True)
    publish(up, "1.1.0", 2, claims=True)
    mirror = await make(trusting, up)
    await find(trusting, mirror, "1.1.0")
    trusting.core.trusted_root = FakeSigstore().root
    await trusting.restart()
    assert "a transparency log that is not trusted" in await refusal(trusting, mirror, "1.1.0")
    trusting.core.trusted_root = FAKE.root
    await trusting.restart()
    await find(trusting, mirror, "1.1.0")


async def test_a_version_without_a_time_is_what_the_rule_says(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=False)
    publish(up, "1.1.0", 2, claims=True)
    for version in ("1.0.0", "1.1.0"):
        up.change("left")["time"].pop(version)
    mirror = await make(trusting, up)
    assert "(whether it comes with less trust is not known)" in await refusal(trusting, mirror, "1.0.0")
    allowing = await trusting.proxy("allowing", up, policy={"rules": [{**FELL, "missing": "allow"}]})
    await find(trusting, allowing, "1.0.0")


async def test_a_rule_about_no_provenance_refuses_what_has_none(trusting: ProxyWorld) -> None:
    up = trusting.upstream()
    publish(up, "1.0.0", 1, claims=False)
    publish(up, "1.1.0", 2, claims=True)
    publish(up, "1.2.0", 3, claims=True, attested=b"other bytes")
    mirror = await make(trusting, up, {"name": "some", "match": {"trust": "none"}, "exempt": ["left@1.0.0"]})
    await find(trusting, mirror, "1.0.0")
    await find(trusting, mirror, "1.1.0")
    assert "(it has no provenance that is verified: " in await refusal(trusting, mirror, "1.2.0")


async def test_distributions_are_verified_by_their_provenance_documents(trusting: ProxyWorld) -> None:
    up = trusting.started(PythonUpstream())
    names = []
    for number, (version, said) in enumerate([("1.0", True), ("1.1", True), ("1.2", False), ("1.3", True)], 1):
        name, data = up.add("widget", version, published=day(number).replace(".000", ".000000"))
        names.append(name)
        if said:
            member = next(each for each in up.projects["widget"] if each["filename"] == name)
            member["provenance"] = f"{up.url}/{name}.provenance"
            document = FAKE.python(name, data if version != "1.3" else b"other bytes")
            up.serve(f"/{name}.provenance", Answer(body=json.dumps(document).encode()))
    mirror = await trusting.proxy("mirror", up, format="python", policy={"rules": [FELL]})
    for name, version, why in zip(names, ("1.0", "1.1", "1.2", "1.3"), ("", "", "no prov", "other bytes"), strict=True):
        ask = trusting.files.find(mirror, "widget", file_path("widget", version, name), want=Want.BYTES)
        if why:
            with pytest.raises(RuleRefused, match=why):
                await ask
        else:
            await ask
