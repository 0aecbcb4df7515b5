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

from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
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
