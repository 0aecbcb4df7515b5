"""Rules about files of upstreams hold before the first byte of a file is sent, and in documents once it is judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_twisted
from attrs import define, field
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.proxy.resolving import read_ahead
from tests.support.maven_files import make_pom
from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.upstreams.conda import CondaUpstream
from tests.support.upstreams.faults import STALL_IN_BODY, failing
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream
from tests.support.upstreams.server import ScriptedUpstream

U = TypeVar("U", bound=ScriptedUpstream)
SHA256 = "sha256:" + "0" * 64
GPL = {"name": "no copyleft", "match": {"licences": ["GPL*"]}}
SCRIPTS = {"name": "no programs", "match": {"install_scripts": True}}
DIGEST = {"name": "no such bytes", "match": {"digests": [SHA256]}}


@define
class Mirrors:
    """A server with a proxy of an upstream of each format, and a virtual repository of that, ``main/NAME``."""

    stack: Stack
    upstreams: list[ScriptedUpstream] = field(factory=list)

    def start(self, upstream: U) -> U:
        self.upstreams.append(upstream.start())
        return upstream

    async def add(self, upstream: ScriptedUpstream, format: str, **config: Any) -> None:
        routes = [{"url": upstream.url, "name": "up"}]
        made = await self.stack.add_repository(
            "mirror", format=format, config={"type": "Proxy", "proxy": {"routes": routes}, "cache_ttl": "1d", **config}
        )
        await self.stack.add_repository("all", format=format, config={"type": "Virtual", "members": [made["id"]]})

    async def rules(self, *rules: Any, repository: str = "mirror") -> None:
        path = f"/repository/main%2F{repository}/config/policy"
        await self.stack.ok("PATCH", path, {"rules": list(rules)})

    async def get(self, path: str, *, repository: str = "mirror", **fields: str) -> Reply:
        return await self.stack.call("GET", f"/repositories/main/{repository}/{path}", headers=fields)

    async def explain(self, repository: str, **query: str) -> str:
        asked = "&".join(f"{key}={value}" for key, value in query.items())
        found = await self.stack.ok("GET", f"/explain?repository=main/{repository}&{asked}")
        return str(found["outcome"])


@pytest_twisted.async_yield_fixture
async def mirrors(tmp_path: Path) -> AsyncIterator[Mirrors]:
    async with running_stacks(tmp_path) as make:
        made = Mirrors(await make(proxy__allow_private=["127.0.0.1"]))
        yield made
        for each in made.upstreams:
            each.stop()


@pytest.fixture(params=["mirror", "all"])
def place(request: pytest.FixtureRequest) -> str:
    """The repository that is asked, and has the rules."""
    return str(request.param)


@pytest.mark.parametrize("rule", [GPL, SCRIPTS], ids=["licence", "scripts"])
@pytest.mark.parametrize("pad", [0, 300_000], ids=["small", "large"])
async def test_an_npm_version_is_judged_by_its_manifest(
    mirrors: Mirrors, place: str, rule: dict[str, Any], pad: int
) -> None:
    up = mirrors.start(NpmUpstream())
    up.add("tool", "1.0.0", license="MIT")
    scripts = {"install": "node-gyp rebuild"}
    up.add("tool", "1.1.0", license="GPL-3.0-only", scripts=scripts, keywords=["x" * pad], hasInstallScript=True)
    await mirrors.add(up, "npm")
    before = await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)
    assert before.status == 200
    await mirrors.stack.assembly.core.wait_idle()  # it is kept
    await mirrors.rules(rule, repository=place)
    assert list((await mirrors.get("tool", repository=place)).json["versions"]) == ["1.0.0"]
    assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 403
    assert (await mirrors.get("tool/-/tool-1.0.0.tgz", repository=place)).status == 200
    assert await mirrors.explain(place, package="tool", version="1.1.0") == "blocked"


async def test_an_npm_version_is_judged_before_its_first_byte(mirrors: Mirrors, place: str) -> None:
    up = mirrors.start(NpmUpstream())
    up.add("tool", "1.1.0", license="GPL-3.0-only")
    await mirrors.add(up, "npm")
    await mirrors.rules(GPL, repository=place)
    assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 403
    assert up.count("/tool/-/tool-1.1.0.tgz") == 0


async def test_digest_rules_let_metadata_through_that_are_only_in_wheels(mirrors: Mirrors, place: str) -> None:
    up = mirrors.start(PythonUpstream())
    name, data = up.add("demo", "1.0", metadata=False)
    await mirrors.add(up, "python")
    await mirrors.rules(DIGEST, repository=place)
    path = f"packages/demo/1.0/{name}"
    for _ in range(2):
        assert (await mirrors.get(f"{path}.metadata", repository=place)).status == 200
    assert (await mirrors.get(path, repository=place)).body == data
    assert (await mirrors.get(f"{path}.metadata", repository=place)).status == 200
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    await mirrors.rules({**DIGEST, "match": {"digests": [digest]}}, repository=place)
    assert (await mirrors.get(f"{path}.metadata", repository=place)).status == 403


@pytest.mark.parametrize("kept", [False, True], ids=["remote", "kept"])
async def test_what_cannot_be_read_of_a_version_is_refused(mirrors: Mirrors, place: str, kept: bool) -> None:
    up = mirrors.start(NpmUpstream())
    up.add("tool", "1.0.0", license="MIT", other="TOO LARGE")
    up.add("tool", "1.1.0", license="TOO LARGE")
    body = json.dumps(up.change("tool")).encode().replace(b'"TOO LARGE"', b"1e999")
    up.serve(up.path("tool"), Answer(body=body, fields={"Content-Type": "application/json"}))
    await mirrors.add(up, "npm")
    if kept:
        assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 200
        await mirrors.stack.assembly.core.wait_idle()
    await mirrors.rules({**GPL, "missing": "allow"}, repository=place)
    assert list((await mirrors.get("tool", repository=place)).json["versions"]) == ["1.0.0"]
    assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 403
    assert (await mirrors.get("tool/-/tool-1.0.0.tgz", repository=place)).status == 200


PYPI = "packages/demo/1.0/"


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "inside"])
@pytest.mark.parametrize("first", ["", ".metadata"])
async def test_a_wheel_is_judged_by_its_metadata_at_its_first_request(
    mirrors: Mirrors, place: str, announced: bool, first: str
) -> None:
    up = mirrors.start(PythonUpstream())
    good, data = up.add("demo", "0.9", license="MIT", metadata=announced, pad=300_000)
    bad, _ = up.add("demo", "1.0", license="GPL-3.0-only", metadata=announced, pad=300_000)
    await mirrors.add(up, "python")
    await mirrors.rules(GPL, repository=place)
    if announced:
        assert await mirrors.explain(place, package="demo", version="1.0") == "blocked"
    for path in (first, ".metadata", ""):
        reply = await mirrors.get(f"{PYPI}{bad}{path}", repository=place)
        assert (reply.status, b"no copyleft" in reply.body) == (403, True), path
    if announced:
        assert up.count(up.file_path(bad)) == 0
    page = (await mirrors.get("simple/demo/", repository=place)).body
    assert (good.encode() in page, bad.encode() in page) == (True, False)
    assert (await mirrors.get(f"packages/demo/0.9/{good}", repository=place)).body == data
    assert await mirrors.explain(place, package="demo", version="1.0") == "blocked"


async def test_metadata_that_are_kept_alone_are_judged_as_their_wheel(mirrors: Mirrors, place: str) -> None:
    up = mirrors.start(PythonUpstream())
    name, data = up.add("demo", "1.0", metadata=True)
    await mirrors.add(up, "python")
    path = f"{PYPI}{name}.metadata"
    assert (await mirrors.get(path, repository=place)).status == 200
    digest = hashlib.sha256(data).hexdigest()
    await mirrors.rules({"name": "no such bytes", "match": {"digests": [f"sha256:{digest}"]}}, repository=place)
    assert (await mirrors.get(path, repository=place)).status == 403
    assert up.count(up.file_path(name)) == 0


async def test_what_an_upstream_says_of_bytes_that_it_does_not_have_is_believed_of_nobody_else(
    mirrors: Mirrors, place: str
) -> None:
    honest, hostile = mirrors.start(PythonUpstream()), mirrors.start(PythonUpstream())
    name, data = honest.add("demo", "1.0", license="GPL-3.0-only")
    hashes = {"sha256": hashlib.sha256(data).hexdigest()}
    hostile.add("demo", "1.0", license="MIT", hashes=hashes, size=len(data))
    await mirrors.add(honest, "python")
    config = {"type": "Proxy", "proxy": {"routes": [{"url": hostile.url, "name": "up"}]}}
    await mirrors.stack.add_repository("other", format="python", config=config)
    for each in ("other", place):
        await mirrors.rules(GPL, repository=each)
    said = await mirrors.get(f"{PYPI}{name}.metadata", repository="other")
    assert (said.status, b"MIT" in said.body) == (200, True)
    assert (await mirrors.get(f"{PYPI}{name}", repository=place)).status == 403
    assert name.encode() not in (await mirrors.get("simple/demo/", repository=place)).body


@pytest.mark.parametrize("digests", [True, False])
async def test_a_source_distribution_is_judged_by_its_metadata(mirrors: Mirrors, place: str, digests: bool) -> None:
    up = mirrors.start(PythonUpstream(digests=digests))
    bad, _ = up.add("demo", "1.0", license="GPL-3.0-only", sdist=True)
    await mirrors.add(up, "python")
    assert bad.encode() in (await mirrors.get("simple/demo/", repository=place)).body
    await mirrors.rules(GPL, repository=place)
    for _ in range(3):
        assert (await mirrors.get(PYPI + bad, repository=place)).status == 403
    assert bad.encode() not in (await mirrors.get("simple/demo/", repository=place)).body


async def test_kept_files_are_judged_by_their_own_metadata(mirrors: Mirrors, place: str) -> None:
    up = mirrors.start(PythonUpstream())
    wheel, _ = up.add("demo", "1.0", license="MIT")
    sdist, _ = up.add("demo", "1.0", license="GPL-3.0-only", sdist=True)
    await mirrors.add(up, "python")
    for each in (wheel, sdist):
        assert (await mirrors.get(PYPI + each, repository=place)).status == 200
    await mirrors.stack.assembly.core.wait_idle()
    await mirrors.rules(GPL, repository=place)
    assert (await mirrors.get(PYPI + sdist, repository=place)).status == 403
    assert (await mirrors.get(PYPI + wheel, repository=place)).status == 200
    page = (await mirrors.get("simple/demo/", repository=place)).body
    assert (wheel.encode() in page, sdist.encode() in page) == (True, False)


async def test_an_upstream_that_fails_before_the_facts_are_there_fails_the_request(
    mirrors: Mirrors, place: str
) -> None:
    up = mirrors.start(PythonUpstream())
    name, _ = up.add("demo", "1.0", license="MIT")
    up.serve(f"{up.file_path(name)}.metadata", Answer(500))
    await mirrors.add(up, "python")
    await mirrors.rules({**GPL, "missing": "allow"}, repository=place)
    assert (await mirrors.get(PYPI + name, repository=place)).status == 502


async def test_metadata_that_cannot_be_read_are_refused_and_missing_ones_are_missing(
    mirrors: Mirrors, place: str
) -> None:
    up = mirrors.start(PythonUpstream())
    name, _ = up.add("demo", "1.0", metadata=False, extra_files={"other-1.0.dist-info/METADATA": b""})
    plain, data = up.add("demo", "1.1")
    await mirrors.add(up, "python")
    await mirrors.rules({**GPL, "missing": "allow"}, repository=place)
    assert (await mirrors.get(PYPI + name, repository=place)).status == 403
    assert (await mirrors.get(f"packages/demo/1.1/{plain}", repository=place)).body == data
    await mirrors.rules({**GPL, "missing": "block"}, repository=place)
    assert (await mirrors.get(f"packages/demo/1.1/{plain}", repository=place)).status == 403


async def test_facts_are_read_once_for_all_who_wait(mirrors: Mirrors) -> None:
    up = mirrors.start(PythonUpstream())
    name, _ = up.add("demo", "1.0", license="MIT")
    await mirrors.add(up, "python")
    await mirrors.rules(GPL)
    asked = [Deferred.fromCoroutine(mirrors.get(PYPI + name)) for _ in range(4)]
    assert {reply.status for reply in await gatherResults(asked)} == {200}
    assert up.count(f"{up.file_path(name)}.metadata") == 1


@pytest.mark.parametrize(("record", "own", "status"), [("MIT", "GPL-3.0", 403), ("GPL-3.0", "MIT", 200)])
async def test_a_conda_package_is_judged_by_itself_before_and_after_it_is_kept(
    mirrors: Mirrors, place: str, record: str, own: str, status: int
) -> None:
    up = mirrors.start(CondaUpstream())
    up.add("demo", "1.0", license=own, record={"license": record})
    await mirrors.add(up, "conda")
    await mirrors.rules(GPL, repository=place)
    for _ in range(2):
        assert (await mirrors.get("noarch/demo-1.0-py_0.conda", repository=place)).status == status
        await mirrors.stack.assembly.core.wait_idle()
        listed = (await mirrors.get("noarch/repodata.json", repository=place)).json["packages.conda"]
        assert list(listed) == ([] if status == 403 else ["demo-1.0-py_0.conda"])


@pytest.mark.parametrize("rule", [GPL, SCRIPTS], ids=["licence", "scripts"])
async def test_a_gem_is_judged_by_its_specification(mirrors: Mirrors, place: str, rule: dict[str, Any]) -> None:
    up = mirrors.start(RubyUpstream())
    up.add("demo", "0.9.0", extra="licenses:\n- MIT\nextensions: []\n")
    up.add("demo", "1.0.0", extra="licenses:\n- GPL-3.0\nextensions:\n- ext/extconf.rb\n")
    await mirrors.add(up, "ruby")
    await mirrors.rules(rule, repository=place)
    for path in ("quick/Marshal.4.8/demo-1.0.0.gemspec.rz", "gems/demo-1.0.0.gem") * 2:
        assert (await mirrors.get(path, repository=place)).status == 403, path
    assert (await mirrors.get("gems/demo-0.9.0.gem", repository=place)).status == 200
    info = (await mirrors.get("info/demo", repository=place)).body
    assert (b"0.9.0" in info, b"1.0.0" in info) == (True, False)


@pytest.mark.parametrize("first", ["jar", "pom", "jar.sha1"])
async def test_a_jar_is_judged_by_the_pom_of_its_version(mirrors: Mirrors, place: str, first: str) -> None:
    up = mirrors.start(MavenUpstream())
    for version, licence in (("0.9", "MIT"), ("1.0", "GPL-3.0")):
        up.deploy("com.acme", "demo", version)
        about = f"<licenses><license><name>{licence}</name></license></licenses>"
        up.add(f"com/acme/demo/{version}/demo-{version}.pom", make_pom("com.acme", "demo", version, about))
    await mirrors.add(up, "maven")
    await mirrors.rules(GPL, repository=place)
    for ending in (first, "jar", "pom", "jar.sha1"):
        assert (await mirrors.get(f"com/acme/demo/1.0/demo-1.0.{ending}", repository=place)).status == 403
        assert (await mirrors.get(f"com/acme/demo/0.9/demo-0.9.{ending}", repository=place)).status == 200
    metadata = (await mirrors.get("com/acme/demo/maven-metadata.xml", repository=place)).body
    assert (b"<version>0.9<" in metadata, b"<version>1.0<" in metadata) == (True, False)


@pytest.mark.parametrize("kept", [False, True], ids=["remote", "kept"])
async def test_a_version_whose_digest_was_found_to_be_blocked_is_not_listed(
    mirrors: Mirrors, place: str, kept: bool
) -> None:
    up = mirrors.start(NpmUpstream())
    up.add("tool", "1.0.0")
    bad = up.add("tool", "1.1.0", tag="next")  # its document announces other digests
    await mirrors.add(up, "npm")
    if kept:
        assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 200
        await mirrors.stack.assembly.core.wait_idle()
    await mirrors.rules(
        {"name": "no such bytes", "match": {"digests": [f"sha256:{hashlib.sha256(bad).hexdigest()}"]}}, repository=place
    )
    assert (await mirrors.get("tool", repository=place)).status == 200
    for _ in range(2):
        assert (await mirrors.get("tool/-/tool-1.1.0.tgz", repository=place)).status == 403
    assert list((await mirrors.get("tool", repository=place)).json["versions"]) == ["1.0.0"]
    assert (await mirrors.get("tool/-/tool-1.0.0.tgz", repository=place)).status == 200


async def test_the_newest_files_are_read_before_a_document_is_answered(mirrors: Mirrors, place: str) -> None:
    up = mirrors.start(PythonUpstream())
    names = {version: up.add("demo", version, license=licence)[0] for version, licence in VERSIONS.items()}
    names["1.2s"], _ = up.add("demo", "1.2", license="GPL-3.0", sdist=True)
    await mirrors.add(up, "python")
    await mirrors.rules(GPL, repository=place)
    page = (await mirrors.get("simple/demo/", repository=place)).body
    assert [each for each, name in names.items() if name.encode() in page] == ["0.8", "0.9", "1.0", "2.0rc1"]
    read = [each for each, name in names.items() if up.count(f"{up.file_path(name)}.metadata")]
    assert read == ["1.0", "1.1", "1.2"]  # the prerelease is not what a client chooses, and 1.0 is served
    assert [each for each, name in names.items() if up.count(up.file_path(name))] == ["1.2s"]
    await mirrors.get("simple/demo/", repository=place)
    assert up.count(f"{up.file_path(names['1.2'])}.metadata") == 1


VERSIONS = {"0.8": "GPL-2.0", "0.9": "MIT", "1.0": "MIT", "1.1": "GPL-3.0", "1.2": "GPL-3.0", "2.0rc1": "GPL-3.0"}


async def test_so_many_versions_are_read_ahead_as_the_setting_says(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        for most in (0, 2):
            mirrors = Mirrors(await make(proxy__allow_private=["127.0.0.1"], proxy__facts_ahead=most))
            up = mirrors.start(RubyUpstream())
            for version in ("1.0.0", "1.1.0", "1.2.0"):
                up.add("demo", version, extra="licenses:\n- GPL-3.0\n")
            await mirrors.add(up, "ruby")
            await mirrors.rules(GPL)
            info = (await mirrors.get("info/demo")).body
            assert [each for each in ("1.0.0", "1.1.0", "1.2.0") if each.encode() in info] == (
                ["1.0.0"] if most else ["1.0.0", "1.1.0", "1.2.0"]
            )
            up.stop()


async def test_a_document_is_answered_though_a_kept_file_is_lost(mirrors: Mirrors) -> None:
    up = mirrors.start(PythonUpstream())
    name, _ = up.add("demo", "1.0", license="GPL-3.0", sdist=True)
    await mirrors.add(up, "python")
    body = (await mirrors.get(f"packages/demo/1.0/{name}")).body
    await mirrors.stack.assembly.core.wait_idle()
    blobs = mirrors.stack.assembly.core.config.data.dir / "storages" / "main" / "blobs"
    [copy] = [each for each in blobs.rglob("*") if each.is_file() and each.read_bytes() == body]
    copy.unlink()
    await mirrors.rules(GPL)
    page = await mirrors.get("simple/demo/")
    assert (page.status, f">{name}<".encode() in page.body) == (200, True)
    assert (await mirrors.get(f"packages/demo/1.0/{name}")).status >= 400


@pytest.mark.parametrize("status", [404, 503])
async def test_a_document_is_answered_though_some_of_its_newest_files_cannot_be_had(
    mirrors: Mirrors, status: int
) -> None:
    up = mirrors.start(PythonUpstream())
    wheel, _ = up.add("demo", "1.0", license="GPL-3.0")
    sdist, _ = up.add("demo", "1.0", license="GPL-3.0", sdist=True)
    up.misbehave(up.file_path(sdist), failing(status), repeat=True)
    await mirrors.add(up, "python")
    await mirrors.rules(GPL)
    page = await mirrors.get("simple/demo/")
    assert (page.status, wheel.encode() in page.body, sdist.encode() in page.body) == (200, False, True)
    up.behave()


async def test_a_document_does_not_wait_for_a_file_that_takes_long(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "LONGEST_S", 0.01)
    up = mirrors.start(PythonUpstream())
    name, _ = up.add("demo", "1.0", license="GPL-3.0", sdist=True)
    up.misbehave(up.file_path(name), STALL_IN_BODY)
    await mirrors.add(up, "python")
    await mirrors.rules(GPL)
    page = await mirrors.get("simple/demo/")
    assert (page.status, f">{name}<".encode() in page.body) == (200, True)
    up.release(up.file_path(name))
    assert (await mirrors.get(f"packages/demo/1.0/{name}")).status == 403
    assert f">{name}<".encode() not in (await mirrors.get("simple/demo/")).body
    assert up.count(up.file_path(name)) == 1  # it was read on, for all who ask for it
