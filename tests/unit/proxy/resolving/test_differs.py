"""Versions of upstreams that differ from the newest one before them that is served."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest

from pkgrepo.archives.inside import Shape
from pkgrepo.errors import UpstreamFailed
from pkgrepo.formats.npm.packument.document import SHORT
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.proxy.resolving.package_files import keep_file
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.storage.catalog.file_facts import FileFacts, note_facts
from pkgrepo.storage.catalog.server.policy import decide_quarantined, list_quarantined
from tests.support.proxy_world import DAY_S, START_MS, ProxyWorld
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream

NAME = "demo"
SCRIPT = {"scripts": {"install": "node x.js"}}
BUSL = {"LICENSE": b"Business Source License 1.1\n\nChange License: MIT"}
LINE = b"x" * 5000
RULE: dict[str, Any] = {"name": "first", "match": {"differs": ["install_script"]}, "action": "quarantine"}


def days_ago(days: float) -> str:
    return f"{from_ms(round(START_MS - days * DAY_S * 1000)):%Y-%m-%dT%H:%M:%S.000Z}"


def tarball(version: str) -> str:
    return f"{NAME}/-/{NAME}-{version}.tgz"


async def mirror_of(world: ProxyWorld, up: NpmUpstream, *rules: dict[str, Any], **more: Any) -> Repository:
    return await world.proxy("mirror", up, policy={"rules": [*(rules or (RULE,))]}, **more)


async def ask(world: ProxyWorld, mirror: Repository, version: str) -> str:
    """Why a version is refused; empty if it is served."""
    try:
        await world.files.find(mirror, NAME, tarball(version))
    except RuleRefused as error:
        return str(error)
    return ""


async def shown(world: ProxyWorld, mirror: Repository) -> list[str]:
    """The versions in the document, which is made as for a client."""
    members = await world.resolver.members(mirror, NAME, Trace(), ahead=True)
    parts = await world.resolver.parts(members, NAME, SHORT)
    return [text for each in parts for _, text in each.versions]


def add(up: NpmUpstream, versions: Sequence[str], scripted: Sequence[str] = (), **more: Any) -> None:
    for number, each in enumerate(versions):
        published = days_ago(len(versions) - number)
        up.add(NAME, each, published=published, **(SCRIPT if each in scripted else {}), **more)


async def test_a_version_with_the_first_script_is_held_and_so_is_the_next_one_with_it(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1", "1.0.2", "1.0.3"), ("1.0.1", "1.0.2"))
    mirror = await mirror_of(world, up)
    assert not await ask(world, mirror, "1.0.3")
    for version in ("1.0.2", "1.0.1"):
        why = await ask(world, mirror, version)
        assert "quarantine by the rule 'first'" in why
        assert "(first install_script since 1.0.0)" in why
    assert await shown(world, mirror) == ["1.0.0", "1.0.3"]
    assert not await ask(world, mirror, "1.0.0")  # there is nothing before it


async def test_a_document_has_the_newest_version_read_before_it_is_answered(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"), ("1.0.1",))
    mirror = await mirror_of(world, up)
    assert await shown(world, mirror) == ["1.0.0"]


async def test_a_version_that_was_approved_is_what_later_ones_are_compared_with(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1", "1.0.2"), ("1.0.1", "1.0.2"))
    mirror = await mirror_of(world, up)
    for version in ("1.0.1", "1.0.2"):
        assert await ask(world, mirror, version)
    await world.proxies.rule_matches.flush()
    held = {each.version: each for each in await world.core.catalog.scan(list_quarantined, "", 2**62, 10)}
    assert held["1.0.2"].reason == "first install_script since 1.0.0"
    await world.core.catalog.write(
        decide_quarantined, held["1.0.1"].uid, approved=True, comment="", actor=SYSTEM, now_ms=world.clock.now_ms()
    )
    assert [await ask(world, mirror, version) for version in ("1.0.1", "1.0.2")] == ["", ""]
    assert await shown(world, mirror) == ["1.0.0", "1.0.1", "1.0.2"]


async def test_the_base_has_the_same_major_version_if_there_is_one(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "2.0.0", "2.1.0", "1.0.1"), ("2.0.0", "2.1.0", "1.0.1"))
    match = {"differs": ["install_script"], "versions": "!=2.0.0"}
    mirror = await mirror_of(world, up, {**RULE, "match": match})
    assert not await ask(world, mirror, "2.0.0")
    assert not await ask(world, mirror, "2.1.0")
    assert "since 1.0.0" in await ask(world, mirror, "1.0.1")


async def test_prereleases_are_no_base_of_stable_versions(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.1.0-rc.1", "1.1.0"), ("1.1.0-rc.1", "1.1.0"))
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["install_script"], "versions": "!=1.1.0-rc.1"}})
    assert not await ask(world, mirror, "1.1.0-rc.1")
    assert "since 1.0.0" in await ask(world, mirror, "1.1.0")


async def test_with_an_age_old_versions_are_neither_compared_nor_read(world: ProxyWorld) -> None:
    up = world.upstream()
    versions = [f"1.0.{number}" for number in range(40)]
    for number, each in enumerate(versions):
        up.add(NAME, each, published=days_ago(80 - number * 2), **(SCRIPT if number in (3, 39) else {}))
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["install_script"], "age_days": 5}})
    assert not await ask(world, mirror, "1.0.3")
    assert not any(up.count(f"/{tarball(each)}") for each in versions)
    assert "since 1.0.37" in await ask(world, mirror, "1.0.39")
    read = [each for each in versions if up.count(f"/{tarball(each)}")]
    assert read == ["1.0.37", "1.0.38", "1.0.39"]  # 1.0.38 is younger, too
    world.clock.advance(4 * DAY_S)
    assert not await ask(world, mirror, "1.0.39")


async def test_of_a_long_line_two_files_are_read_for_one(world: ProxyWorld) -> None:
    """The nearest, which may itself be held, and the first one, which is not."""
    up = world.upstream()
    versions = [f"1.0.{number}" for number in range(30)]
    add(up, versions, ("1.0.29",))
    mirror = await mirror_of(world, up)
    assert "first install_script since 1.0.0" in await ask(world, mirror, "1.0.29")
    assert [each for each in versions if up.count(f"/{tarball(each)}")] == ["1.0.0", "1.0.28", "1.0.29"]
    assert await shown(world, mirror) == versions[:-1]


async def test_what_lacks_reading_alone_is_in_documents(world: ProxyWorld) -> None:
    """A file that was read as the one before another is not missing for that."""
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1", "1.0.2", "1.0.3"))
    mirror = await mirror_of(world, up, {**RULE, "missing": "block"})
    assert not await ask(world, mirror, "1.0.3")
    assert not up.count(f"/{tarball('1.0.1')}")
    assert await shown(world, mirror) == ["1.0.0", "1.0.1", "1.0.2", "1.0.3"]
    assert [await ask(world, mirror, each) for each in ("1.0.1", "1.0.2")] == ["", ""]


async def test_what_was_taken_away_and_comes_again_is_different(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1", "1.0.2", "1.0.3"), ("1.0.0", "1.0.2", "1.0.3"))
    mirror = await mirror_of(world, up)
    assert [await ask(world, mirror, each) for each in ("1.0.0", "1.0.1")] == ["", ""]
    for version in ("1.0.2", "1.0.3"):  # also of the second one with it
        assert "first install_script since 1.0.1" in await ask(world, mirror, version)


@pytest.mark.parametrize(("missing", "refused"), [("block", True), ("quarantine", True), ("allow", False)])
async def test_what_cannot_be_read_is_missing_and_the_rule_says_what_that_means(
    world: ProxyWorld, missing: str, refused: bool
) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"))
    up.serve(up.tarball_path(NAME, "1.0.0"), Answer(status=404, body=b""))
    mirror = await mirror_of(world, up, {**RULE, "missing": missing})
    why = await ask(world, mirror, "1.0.1")
    assert bool(why) == refused
    assert not refused or "how it differs from the version before is not known" in why


async def test_while_the_upstream_fails_nothing_is_decided(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"))
    mirror = await mirror_of(world, up)
    up.serve(up.tarball_path(NAME, "1.0.0"), Answer(status=503, body=b""))
    with pytest.raises(UpstreamFailed):
        await ask(world, mirror, "1.0.1")


async def test_a_kept_file_is_compared_with_what_the_document_lists(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"), ("1.0.1",))
    mirror = await world.proxy("mirror", up)
    assert not await ask(world, mirror, "1.0.1")
    await world.settle()
    mirror = await world.change(mirror, settings={"policy": {"rules": [RULE]}})
    assert "since 1.0.0" in await ask(world, mirror, "1.0.1")
    await world.restart()
    mirror = world.now(mirror)
    assert "since 1.0.0" in await ask(world, mirror, "1.0.1")


async def test_where_no_version_before_is_served_it_is_missing(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"))
    block = {"name": "no", "match": {"versions": "1.0.0"}}
    mirror = await mirror_of(world, up, block, {**RULE, "missing": "block"})
    assert "how it differs from the version before is not known" in await ask(world, mirror, "1.0.1")


@pytest.mark.parametrize(
    ("word", "before", "after", "said"),
    [
        ("native_build", SCRIPT, {"scripts": {"install": "node-gyp rebuild"}}, "first native_build since 1.0.0"),
        ("dependency", {"dependencies": {"a": "1"}}, {"dependencies": {"a": "2", "b": "1"}}, "new dependency b since"),
        ("dependency", {}, {"optionalDependencies": {"c": "npm:d@1"}}, "new dependencies c d since"),
        ("git_dependency", {"dependencies": {"a": "1"}}, {"dependencies": {"a": "x/y"}}, "new git_dependency a since"),
        ("publisher", {"_npmUser": {"name": "ann"}}, {"_npmUser": {"name": "eve"}}, "another publisher eve since"),
        (
            "source",
            {"repository": "git+https://github.com/acme/a.git"},
            {"repository": {"url": "github:eve/a"}},
            "another source github.com/eve/a since",
        ),
        ("obfuscated", {}, {"files": {"bundle.js": LINE}}, "new obfuscated or minified code in bundle.js since 1.0.0"),
        ("obfuscated", {}, {"files": {"index.js": LINE}}, "new obfuscated or minified code in index.js since 1.0.0"),
        ("licence", {"license": "MIT"}, {"license": "BUSL-1.1"}, "another licence BUSL-1.1 since 1.0.0"),
        ("licence", {"license": "MIT"}, {"license": "MIT", "files": BUSL}, "another licence BUSL-1.1 since 1.0.0"),
        ("size", {}, {"pad": 300_000}, "size from 130 bytes to 293 KiB since"),
    ],
)
async def test_each_word_is_told(
    world: ProxyWorld, word: str, before: dict[str, Any], after: dict[str, Any], said: str
) -> None:
    up = world.upstream()
    up.add(NAME, "1.0.0", published=days_ago(9), **before)
    up.add(NAME, "1.0.1", published=days_ago(8), **before)
    up.add(NAME, "1.0.2", published=days_ago(7), **after)
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": [word]}})
    assert not await ask(world, mirror, "1.0.1")
    assert said in await ask(world, mirror, "1.0.2")
    assert await shown(world, mirror) == ["1.0.0", "1.0.1"]


async def test_who_could_have_published_the_version_before_is_no_other_publisher(world: ProxyWorld) -> None:
    up = world.upstream()
    people = [{"name": "ann"}, {"name": "bob"}]
    up.add(NAME, "1.0.0", maintainers=people, _npmUser={"name": "ann"})
    up.add(NAME, "1.0.1", maintainers=people, _npmUser={"name": "bob"})
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["publisher"]}})
    assert not await ask(world, mirror, "1.0.1")


async def test_a_dependency_that_only_the_document_has_is_told(world: ProxyWorld) -> None:
    """Clients install what the document says, whatever the manifest in the tarball has."""
    up = world.upstream()
    for version in ("1.0.0", "1.0.1"):
        up.add(NAME, version)
    up.change(NAME)["versions"]["1.0.1"]["dependencies"] = {"evil": "1"}
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["dependency"]}})
    assert "new dependency evil since 1.0.0" in await ask(world, mirror, "1.0.1")


async def test_a_version_below_all_others_is_compared_with_those_that_were_published_before(world: ProxyWorld) -> None:
    """The tag latest may name it."""
    up = world.upstream()
    add(up, ("1.0.0", "1.1.0", "0.9.9"), ("0.9.9",))
    mirror = await mirror_of(world, up)
    assert not await ask(world, mirror, "1.0.0")
    assert "since 1.0.0" in await ask(world, mirror, "0.9.9")


async def test_a_version_is_not_the_first_as_its_upstream_has_removed_those_before(world: ProxyWorld) -> None:
    up = world.upstream()
    add(up, ("1.0.0",))
    mirror = await mirror_of(world, up, cache_ttl=0)
    await keep_file(world.files, world.proxies.fetching, mirror, NAME, tarball("1.0.0"))
    await world.settle()
    add(up, ("1.0.1",), ("1.0.1",))
    del up.change(NAME)["versions"]["1.0.0"]
    assert "first install_script since 1.0.0" in await ask(world, mirror, "1.0.1")
    await world.settle()
    assert "first install_script since 1.0.0" in await ask(world, mirror, "1.0.1")


async def test_what_is_for_one_platform_is_read_when_it_is_asked_for(world: ProxyWorld) -> None:
    """Another package names its version: documents of many of these are read for one file of one of them."""
    up = world.upstream()
    add(up, ("1.0.0", "1.0.1"), ("1.0.1",), os=["linux"])
    mirror = await mirror_of(world, up)
    assert await shown(world, mirror) == ["1.0.0", "1.0.1"]
    assert not up.count(f"/{tarball('1.0.1')}")
    assert "since 1.0.0" in await ask(world, mirror, "1.0.1")
    assert await shown(world, mirror) == ["1.0.0"]


async def test_code_is_not_new_in_a_package_that_has_always_had_it_there(world: ProxyWorld) -> None:
    up = world.upstream()
    for number in range(3):
        up.add(NAME, f"1.0.{number}", published=days_ago(9 - number), files={"dist/a.min.js": LINE * (number + 1)})
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["obfuscated"]}})
    assert [await ask(world, mirror, f"1.0.{number}") for number in range(3)] == ["", "", ""]


async def test_a_licence_is_that_in_the_tarball_whatever_the_document_says(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add(NAME, "1.0.0", license="MIT")
    up.add(NAME, "1.0.1", license="MIT")
    up.add(NAME, "1.0.2", license="BUSL-1.1")
    versions = up.change(NAME)["versions"]
    versions["1.0.1"]["license"], versions["1.0.2"]["license"] = "BUSL-1.1", "MIT"
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["licence"]}})
    assert not await ask(world, mirror, "1.0.1")
    assert "another licence BUSL-1.1 since 1.0.0" in await ask(world, mirror, "1.0.2")


async def test_a_rule_may_be_about_the_licences_in_the_tarball_whatever_the_document_says(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add(NAME, "1.0.0", license="MIT")
    up.add(NAME, "1.0.1", license="MIT", files=BUSL)
    up.add(NAME, "1.0.2", license="MIT", files={"LICENSE": b"Pay us."})
    up.add(NAME, "1.0.3")
    up.change(NAME)["versions"]["1.0.0"]["license"] = "BUSL-1.1"
    up.change(NAME)["versions"]["1.0.3"]["license"] = "MIT"
    rule = {"name": "licences", "match": {"licences_inside": ["busl-*", "LicenseRef-*"]}, "missing": "block"}
    mirror = await mirror_of(world, up, rule)
    assert not await ask(world, mirror, "1.0.0")
    assert "(BUSL-1.1 inside)" in await ask(world, mirror, "1.0.1")
    assert "(LicenseRef-unknown inside)" in await ask(world, mirror, "1.0.2")
    assert "which licences its files have is not known" in await ask(world, mirror, "1.0.3")
    assert await shown(world, mirror) == ["1.0.0"]


async def test_licences_that_an_earlier_release_did_not_look_for_are_not_none(world: ProxyWorld) -> None:
    up = world.upstream()
    before, after = (up.add(NAME, f"1.0.{number}", license=("MIT", "BUSL-1.1")[number]) for number in range(2))
    for each in (before, after):
        facts = FileFacts(contents=(), shape=Shape(unpacked=10, files=3, unreadable=()))
        for name in ("sha256", "sha512"):
            digest = f"{name}:{hashlib.new(name, each).hexdigest()}"
            await world.core.catalog.write(note_facts, "npm", NAME, digest, facts, 1000, shown=True)
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["licence"]}})
    assert "another licence BUSL-1.1 since 1.0.0" in await ask(world, mirror, "1.0.1")


async def test_licences_inside_that_an_earlier_release_did_not_look_for_are_not_none(world: ProxyWorld) -> None:
    up = world.upstream()
    data = up.add(NAME, "1.0.0", license="BUSL-1.1")
    facts = FileFacts(contents=(), shape=Shape(unpacked=10, files=3, unreadable=()))
    for name in ("sha256", "sha512"):
        digest = f"{name}:{hashlib.new(name, data).hexdigest()}"
        await world.core.catalog.write(note_facts, "npm", NAME, digest, facts, 1000, shown=True)
    rule = {"name": "licences", "match": {"licences_inside": ["busl-*"]}, "missing": "allow"}
    assert "(BUSL-1.1 inside)" in await ask(world, await mirror_of(world, up, rule), "1.0.0")


@pytest.mark.parametrize("of_before", [True, False])
async def test_what_an_earlier_release_has_read_is_read_again(world: ProxyWorld, of_before: bool) -> None:
    """It did not look for such code: that there is none is not known."""
    up = world.upstream()
    before = up.add(NAME, "1.0.0", published=days_ago(9), files={"bundle.js": LINE} if of_before else {})
    after = up.add(NAME, "1.0.1", published=days_ago(8), files={"bundle.js": LINE})
    for each in (before, after):
        facts = FileFacts(contents=(), shape=Shape(unpacked=len(LINE), files=3))
        for name in ("sha256", "sha512"):
            digest = f"{name}:{hashlib.new(name, each).hexdigest()}"
            await world.core.catalog.write(note_facts, "npm", NAME, digest, facts, 1000, shown=True)
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["obfuscated"]}})
    why = await ask(world, mirror, "1.0.1")
    assert not why if of_before else "code in bundle.js since 1.0.0" in why
    assert [up.count(f"/{tarball(each)}") for each in ("1.0.0", "1.0.1")] == [1, 1]
