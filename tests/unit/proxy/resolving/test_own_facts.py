"""What is noted of files of upstreams: of those that there are, and of no others."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import md5, sha256, sha512
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.archives.inside import Inside, Signs
from pkgrepo.errors import BlobMissing, NotFound
from pkgrepo.formats.maven.metadata.joining import ARTIFACT
from pkgrepo.formats.npm import inside
from pkgrepo.model import Repository
from pkgrepo.proxy.resolving import fact_reading
from pkgrepo.proxy.resolving.fact_reading import PIECE, FactReading
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.rules import PolicyJudges
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.storage.catalog.file_facts import Known, facts_of_package
from tests.support.inprocess_server import until
from tests.support.proxy_world import ProxyWorld
from tests.support.upstreams.maven import MavenUpstream, pom
from tests.support.upstreams.messages import HEAD, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.rubygems import RubyUpstream

KEY = "com.acme:lib"
RULE = {"name": "no GPL", "match": {"licences": ["GPL*"]}, "missing": "block"}


def jar(version: str) -> str:
    return f"com/acme/lib/{version}/lib-{version}.jar"


async def known(world: ProxyWorld) -> Known:
    _, found = await world.core.catalog.look(facts_of_package, "maven", KEY)
    return found


async def make_mirror(world: ProxyWorld, up: MavenUpstream) -> Repository:
    return await world.proxy("mirror", up, format="maven", policy={"rules": [RULE]})


@pytest.mark.parametrize("want", Want)
async def test_of_versions_that_clients_make_up_nothing_is_noted(world: ProxyWorld, want: Want) -> None:
    mirror = await make_mirror(world, world.started(MavenUpstream()))
    for version in ("1.0", "2.0", "3.0"):
        with pytest.raises(NotFound):
            await world.files.find(mirror, KEY, jar(version), want=want)
    assert await known(world) == {}


@pytest.mark.parametrize("want", Want)
async def test_a_version_without_a_file_that_describes_it_is_noted_when_it_is_refused(
    world: ProxyWorld, want: Want
) -> None:
    up = world.started(MavenUpstream())
    mirror = await make_mirror(world, up)
    up.add(jar("1.0"), b"PK a jar")
    for _ in range(2):
        with pytest.raises(RuleRefused, match="the licence is not known"):
            await world.files.find(mirror, KEY, jar("1.0"), want=want)
        assert [each.licences for each in (await known(world)).values()] == [()]


@pytest.mark.parametrize("missing", ["allow", "block"])
async def test_versions_with_one_text_of_two_packages_are_each_read(world: ProxyWorld, missing: str) -> None:
    up = world.started(MavenUpstream())
    mirror = await world.proxy("mirror", up, format="maven", policy={"rules": [{**RULE, "missing": missing}]})
    licence = b"<licenses><license><name>%s</name></license></licenses></project>"
    for name, its in (("free", b"MIT"), ("bound", b"GPL-3.0-only")):
        for ending, data in (
            ("pom", pom("com.acme", name, "1.0").replace(b"</project>", licence % its)),
            ("jar", b"PK a jar"),
        ):
            up.add(f"com/acme/{name}/1.0/{name}-1.0.{ending}", data)
    described = "/com/acme/free/1.0/free-1.0.pom"
    up.misbehave(described, Fault(pause_at=HEAD))

    def ask(name: str) -> Deferred[Any]:
        path = f"com/acme/{name}/1.0/{name}-1.0.jar"
        return Deferred.fromCoroutine(world.files.find(mirror, f"com.acme:{name}", path, want=Want.DIGESTS))

    free = ask("free")
    await until(lambda: any(each.paused for each in up.exchanges_of(described)))
    bound = ask("bound")
    await until(lambda: up.count("/com/acme/bound/1.0/bound-1.0.pom") or bound.called)
    up.release(described)
    with pytest.raises(RuleRefused, match="no GPL"):
        await bound
    assert await free


async def versions(world: ProxyWorld, mirror: Repository) -> list[str]:
    """The versions that the metadata of the artifact show."""
    parts = await world.resolver.parts(await world.resolver.members(mirror, KEY, Trace()), KEY, ARTIFACT)
    return [text for each in parts for _, text in each.versions]


@pytest.mark.parametrize("want", Want)
async def test_of_a_file_that_may_change_only_the_present_digests_are_noted(world: ProxyWorld, want: Want) -> None:
    up = world.started(MavenUpstream(fields={"X-Checksum-Sha1": "{}"}))
    path = "com/acme/lib/1.0-SNAPSHOT/lib-1.0-SNAPSHOT.jar"
    old = {data: f"sha256:{sha256(data).hexdigest()}" for data in (b"one", b"two")}
    rules = [{"name": "no such bytes", "match": {"digests": [*old.values()]}}]
    mirror = await world.proxy("mirror", up, format="maven", cache_ttl=0, policy={"rules": rules})
    up.deploy("com.acme", "lib", "1.0-SNAPSHOT", jar=False)
    for data, digest in old.items():
        up.add(path, data)
        with pytest.raises(RuleRefused):
            await world.files.find(mirror, KEY, path, want=Want.BYTES if want is Want.HEAD else want)
        await world.settle()  # its transfer has ended
        noted = {each for facts in (await known(world)).values() for each in facts.digests}
        assert noted & {*old.values()} == {digest}
        assert await versions(world, mirror) == []
    up.add(path, b"three")
    await world.files.find(mirror, KEY, path, want=want)
    assert await versions(world, mirror) == ["1.0-SNAPSHOT"]


@pytest.mark.parametrize("want", Want)
async def test_a_file_by_its_path_is_judged_once(
    world: ProxyWorld, want: Want, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.started(MavenUpstream())
    mirror = await make_mirror(world, up)
    up.add(jar("1.0"), b"PK a jar")
    licence = b"<licenses><license><name>MIT</name></license></licenses></project>"
    up.add(jar("1.0").replace(".jar", ".pom"), pom("com.acme", "lib", "1.0").replace(b"</project>", licence))
    judge = PolicyJudges.of_member
    judged: list[FlatMember] = []

    async def counted(judges: PolicyJudges, flat: FlatMember, **options: Any) -> Any:
        judged.append(flat)
        return await judge(judges, flat, **options)

    monkeypatch.setattr(PolicyJudges, "of_member", counted)
    for _ in range(2):  # from the upstream, and as it is kept
        judged.clear()
        assert await world.files.find(mirror, KEY, jar("1.0"), want=want)
        assert len(judged) == 1
        await world.settle()


async def test_a_kept_file_of_which_less_is_known_than_rules_ask_for_is_read_once(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.started(RubyUpstream())
    data = up.add("demo", "1.0.0", extra="licenses:\n- GPL-3.0\n")
    path, name = "gems/demo-1.0.0.gem", f"sha256:{sha256(data).hexdigest()}"
    other = {"rules": [{"name": "r", "match": {"digests": [f"sha512:{'0' * 128}"]}}]}
    mirror = await world.proxy("mirror", up, format="ruby", cache_ttl="1d", policy=other)
    assert (await world.files.find(mirror, "demo", path)).file
    await world.settle()  # it is kept
    _, noted = await world.core.catalog.look(facts_of_package, "ruby", "demo")
    assert (noted[name].digests, noted[name].licences) == ((name, f"sha512:{sha512(data).hexdigest()}"), None)
    read = FactReading._read
    files: list[str] = []

    async def counted(own: FactReading, judge: Any, file: Any, *more: Any) -> Any:
        files.append(file.path)
        return await read(own, judge, file, *more)

    monkeypatch.setattr(FactReading, "_read", counted)

    async def refused(rule: dict[str, Any]) -> bool:
        ruled = await world.change(mirror, settings={"cache_ttl": "1d", "policy": {"rules": [{"name": "r", **rule}]}})
        for _ in range(2):
            try:
                await world.files.find(ruled, "demo", path)
            except RuleRefused:
                continue
            return False
        return True

    assert await refused({"match": {"licences": ["GPL*"]}})
    assert not await refused({"match": {"licences": ["MIT"]}})
    assert files == [path]


async def test_each_digest_of_a_kept_file_is_computed_once(world: ProxyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    up = world.started(RubyUpstream())
    data, path = up.add("demo", "1.0.0"), "gems/demo-1.0.0.gem"
    mirror = await world.proxy("mirror", up, format="ruby", cache_ttl="1d")
    assert (await world.files.find(mirror, "demo", path)).file
    await world.settle()  # it is kept
    compute = fact_reading._digests
    computed: list[set[str]] = []

    def counted(content: int | bytes, algorithms: Collection[str]) -> dict[str, str]:
        computed.append({*algorithms})
        return compute(content, algorithms)

    monkeypatch.setattr(fact_reading, "_digests", counted)

    async def refused(*digests: str) -> bool:
        policy = {"rules": [{"name": "r", "match": {"digests": digests}}]}
        ruled = await world.change(mirror, settings={"cache_ttl": "1d", "policy": policy})
        try:
            await world.files.find(ruled, "demo", path)
        except RuleRefused:
            return True
        return False

    others = f"sha512:{'0' * 128}", f"sha1:{'0' * 40}"
    for _ in range(2):
        assert not await refused(f"sha256:{'0' * 64}")
        assert not await refused(*others)
        assert await refused(f"md5:{md5(data).hexdigest()}", *others)
        assert await refused(f"SHA512:{sha512(data).hexdigest()}")
    assert computed == [{"sha512", "sha1"}, {"md5"}]


async def test_bytes_that_are_others_than_those_that_were_stored_have_no_digests(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.started(RubyUpstream())
    data, path = up.add("demo", "1.0.0"), "gems/demo-1.0.0.gem"
    policy = {"rules": [{"name": "r", "match": {"digests": [f"md5:{md5(data).hexdigest()}"]}}]}
    mirror = await world.proxy("mirror", up, format="ruby", cache_ttl="1d", policy=policy)
    compute = fact_reading._digests
    monkeypatch.setattr(fact_reading, "_digests", lambda content, named: compute(content[:-1], named))
    with pytest.raises(BlobMissing):
        await world.files.find(mirror, "demo", path)
    monkeypatch.undo()
    with pytest.raises(RuleRefused):
        await world.files.find(mirror, "demo", path)


@pytest.mark.parametrize("size", [0, 1, 2 * PIECE + 1])
def test_digests_of_a_file_are_read_of_all_of_it(tmp_path: Path, size: int) -> None:
    data = bytes(size)
    (tmp_path / "file").write_bytes(data)
    expected = {"sha256": sha256(data).hexdigest(), "md5": md5(data).hexdigest()}
    with (tmp_path / "file").open("rb") as file:
        assert fact_reading._digests(file.fileno(), ["md5"]) == expected
    assert fact_reading._digests(data, ["md5"]) == expected


async def test_looking_into_files_keeps_nobody_else_waiting(world: ProxyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = Event(), Event()

    def look(content: int | bytes, filename: str, signs: Signs) -> Inside:
        begun.set()
        assert end.wait(60)
        return Inside()

    monkeypatch.setattr(inside, "look_inside", look)
    up = world.started(NpmUpstream())
    for name in ("one", "two", "three"):
        up.add(name)
    policy = {"rules": [{"name": "r", "match": {"contents": ["executable"]}, "missing": "block"}]}
    mirror = await world.proxy("mirror", up, policy=policy)
    asked = [
        Deferred.fromCoroutine(world.files.find(mirror, name, f"{name}/-/{name}-1.0.0.tgz"))
        for name in ("one", "two", "three")
    ]
    try:
        await until(begun.is_set)
        assert await world.core.pools.cpu(lambda: "computed") == "computed"
    finally:
        end.set()
    for each in asked:
        assert (await each).file
