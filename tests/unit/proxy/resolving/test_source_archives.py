"""Files of versions that the archives of their tags do not explain."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from pkgrepo.formats.python.names import file_path
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.proxy.purge import Selection
from pkgrepo.proxy.resolving import source_archives
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.proxy.resolving.source_archives import LARGEST
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.upkeep.jobs import NoProgress
from tests.support.npm_packages import make_manifest
from tests.support.proxy_world import DAY_S, ProxyWorld
from tests.support.python_packages import make_wheel
from tests.support.tarballs import make_tar_gz
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.server import ScriptedUpstream
from tests.unit.proxy.resolving.test_differs import NAME, ask, days_ago, shown

RULE: dict[str, Any] = {
    "name": "source",
    "match": {"differs": ["unexplained"]},
    "action": "quarantine",
    "missing": "block",
}
HERE = {"repository": "https://git.example.com/acme/demo"}
OLD, NEW = "1.0.0", "1.0.1"
UNKNOWN = "how it differs from the version before is not known"


class Hub(ScriptedUpstream):
    """A host of sources; what has no tag is not there."""

    def tag(self, name: str, files: Mapping[str, bytes]) -> None:
        archive = make_tar_gz({f"demo-{name}/{path}": data for path, data in files.items()})
        self.serve(f"/acme/demo/{name}.tar.gz", Answer(body=archive))


def files_of(version: str, **more: bytes) -> dict[str, bytes]:
    """The files in a tarball of a version, beside its manifest, as they are in the source."""
    return {"index.js": f'module.exports = "{NAME}@{version}";\n'.encode(), "lib/a.js": b"a", "lib/b.js": b"b", **more}


def publish(up: NpmUpstream, version: str, days: float, files: Mapping[str, bytes] | None = None, **more: Any) -> None:
    fields = {**HERE, **more}
    files = {key: data for key, data in (files or files_of(version)).items() if key != "index.js"}
    up.add(NAME, version, published=days_ago(days), files=files, **fields)


def source_of(version: str, **more: Any) -> dict[str, bytes]:
    manifest = msgspec.json.format(msgspec.json.encode(make_manifest(NAME, version, **{**HERE, **more})), indent=2)
    return {**files_of(version), "package.json": manifest}


async def settled(
    world: ProxyWorld, hub: Hub, *rules: dict[str, Any], **settings: Any
) -> tuple[NpmUpstream, Repository]:
    """An upstream and its proxy, in a server that knows where archives are."""
    archives = {"git.example.com": f"{hub.url}/{{owner}}/{{repo}}/{{tag}}.tar.gz"}
    changed = msgspec.structs.replace(world.config.proxy, source_archives=archives, idle_timeout_s=1)
    world.config = msgspec.structs.replace(world.config, proxy=changed)
    await world.restart()
    up = world.upstream()
    return up, await world.proxy("mirror", up, policy={"rules": [*(rules or (RULE,))]}, **settings)


async def test_a_changed_file_that_the_source_does_not_have_is_held(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    for version in (OLD, NEW):
        hub.tag(f"v{version}", source_of(version))
    publish(up, OLD, 90, files_of(OLD, **{"dist/x.js": b"x1"}))
    publish(up, NEW, 1, files_of(NEW, **{"dist/x.js": b"x2", "lib/a.js": b"evil"}))
    assert "(new unexplained lib/a.js since 1.0.0)" in await ask(world, mirror, NEW)
    assert await shown(world, mirror) == [OLD]
    assert not await ask(world, mirror, OLD)
    assert all("authorization" not in each.fields for each in hub.requests())


async def test_what_is_built_anew_in_each_version_is_served_and_asked_for_once(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    for version, days in ((OLD, 90), (NEW, 1)):
        hub.tag(version, source_of(version))  # the second name that is tried
        publish(up, version, days, files_of(version, **{f"dist/{version}.js": version.encode()}))
    for _ in range(2):
        assert not await ask(world, mirror, NEW)
        assert await shown(world, mirror) == [OLD, NEW]
        await world.restart()
        mirror = world.now(mirror)
    asked = [each.path for each in hub.requests()]
    assert sorted(asked) == sorted(f"/acme/demo/{tag}.tar.gz" for each in (OLD, NEW) for tag in (f"v{each}", each))


async def test_the_first_version_without_a_tag_is_held_until_it_has_one(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    hub.tag(f"v{OLD}", source_of(OLD))
    publish(up, OLD, 90)
    publish(up, NEW, 0.5)
    assert "(first version without a tag of its source since 1.0.0)" in await ask(world, mirror, NEW)
    assert await shown(world, mirror) == [OLD]
    hub.tag(f"v{NEW}", source_of(NEW))
    assert await ask(world, mirror, NEW)  # which is known for an hour
    world.clock.advance(3601)
    assert not await ask(world, mirror, NEW)
    assert await shown(world, mirror) == [OLD, NEW]


async def test_the_same_bytes_as_another_version_are_compared_with_the_tag_of_that(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    other = await world.proxy("other", up, policy={"rules": [RULE]})
    publish(up, OLD, 90)
    hub.tag(f"v{OLD}", source_of(OLD))
    hub.tag(f"v{NEW}", source_of(NEW))
    publish(up, NEW, 1, files_of(NEW, **{"lib/a.js": b"evil"}))
    hub.tag("v1.0.2", {**source_of(NEW), "evil.js": b"evil"})
    manifest = up.change(NAME)
    manifest["versions"]["1.0.2"] = {**manifest["versions"][NEW], "version": "1.0.2"}
    manifest["time"]["1.0.2"] = days_ago(0.5)
    up.serve(f"/{NAME}/-/{NAME}-1.0.2.tgz", up.tarballs[NAME, NEW])
    up.change(NAME)
    assert not await ask(world, other, "1.0.2")
    assert "new unexplained lib/a.js" in await ask(world, mirror, NEW)


async def test_without_tags_before_nothing_is_news(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    publish(up, OLD, 90)
    publish(up, NEW, 1)
    assert not await ask(world, mirror, NEW)
    hub.tag(f"v{NEW}", {"other": b"x"})
    world.clock.advance(40 * DAY_S)
    assert not await ask(world, mirror, NEW)


@pytest.mark.parametrize("repository", ["https://other.example.org/acme/demo", "", "https://git.example.com/../x"])
async def test_of_hosts_without_an_address_there_is_no_archive(world: ProxyWorld, repository: str) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    publish(up, OLD, 90, repository=repository)
    publish(up, NEW, 1, repository=repository)
    assert not await ask(world, mirror, NEW)
    assert not hub.requests()


async def test_a_version_whose_source_is_elsewhere_is_the_first_without_a_tag(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    hub.tag(f"v{OLD}", source_of(OLD))
    publish(up, OLD, 90)
    publish(up, NEW, 1, repository="")
    assert "first version without a tag" in await ask(world, mirror, NEW)


def bomb() -> bytes:
    """A zip of a few MiB that unpacks to more than any archive may."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(12):
            archive.writestr(f"{number}", bytes(64 * 1024 * 1024))
    return made.getvalue()


def device() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        entry = tarfile.TarInfo("x")
        entry.type = tarfile.CHRTYPE
        archive.addfile(entry)
    return made.getvalue()


LIES = {
    "html": lambda: Answer(body=b"<html>200</html>"),
    "empty": lambda: Answer(body=b""),
    "cut": lambda: Answer(body=make_tar_gz({"a": random.Random(1).randbytes(5000)})[:2000]),
    "server error": lambda: Answer(503, b""),
    "denied": lambda: Answer(403, b""),
    "teapot": lambda: Answer(418, b""),
    "redirect to a private address": lambda: Answer(302, b"", {"Location": "http://127.0.0.2:1/x"}),
    "redirect in a circle": lambda: Answer(302, b"", {"Location": f"/acme/demo/v{NEW}.tar.gz"}),
    "too long": lambda: Answer(body=b"x", fault=Fault(length=LARGEST + 1)),
    "silence": lambda: Answer(body=bytes(5000), fault=Fault(pause_at=100)),
    "connection lost": lambda: Answer(body=bytes(5000), fault=Fault(cut_at=100)),
    "bomb": lambda: Answer(body=bomb()),
    "device": lambda: Answer(body=device()),
}


@pytest.mark.parametrize("lie", LIES)
async def test_what_cannot_be_asked_is_missing_and_explains_nothing(world: ProxyWorld, lie: str) -> None:
    hub = world.started(Hub())
    allowing = {**RULE, "name": "allowing", "missing": "allow", "action": "block"}
    up, mirror = await settled(world, hub)
    lenient = await world.proxy("lenient", up, policy={"rules": [allowing]})
    hub.tag(f"v{OLD}", source_of(OLD))
    publish(up, OLD, 90)
    publish(up, NEW, 1)
    hub.misbehave(f"/acme/demo/v{NEW}.tar.gz", LIES[lie](), repeat=True)
    assert UNKNOWN in await ask(world, mirror, NEW)
    assert not await ask(world, lenient, NEW)
    await world.restart()
    hub.misbehave(f"/acme/demo/v{NEW}.tar.gz")
    hub.tag(f"v{NEW}", source_of(NEW))
    assert not await ask(world, world.now(mirror), NEW)  # nothing was noted


async def test_an_archive_of_another_repository_explains_nothing(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    moved = {"repository": "https://git.example.com/new/demo"}
    hub.tag(f"v{OLD}", source_of(OLD))
    hub.serve(
        f"/new/demo/v{NEW}.tar.gz", Answer(body=make_tar_gz({f"x/{k}": v for k, v in source_of(NEW, **moved).items()}))
    )
    publish(up, OLD, 90)
    publish(up, NEW, 1, **moved)  # all of whose files are there
    assert "another repository as its source" in await ask(world, mirror, NEW)


FAILURES = {
    "endless": Answer(body=random.Random(2).randbytes(64 * 1024), fault=Fault(chunked=True, endless_body=True)),
    "silence": Answer(body=bytes(5000), fault=Fault(pause_at=100)),
    "limited": Answer(429, b"", {"Retry-After": "3600"}),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_an_archive_that_is_too_much_is_not_asked_for_by_each_request(
    world: ProxyWorld, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_archives, "LARGEST", 500_000)
    monkeypatch.setattr(source_archives, "LONGEST_S", 1.5)
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    hub.tag(f"v{OLD}", source_of(OLD))
    publish(up, OLD, 90)
    publish(up, NEW, 1)
    path = f"/acme/demo/v{NEW}.tar.gz"
    hub.misbehave(path, FAILURES[failure], repeat=True)
    assert UNKNOWN in await ask(world, mirror, NEW)
    count = hub.count(path)
    assert UNKNOWN in await ask(world, mirror, NEW)
    assert hub.count(path) == count


async def test_a_source_with_a_name_that_no_url_can_have_has_no_archive(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    up, mirror = await settled(world, hub)
    hub.tag(f"v{OLD}", source_of(OLD))
    publish(up, OLD, 90)
    publish(up, NEW, 1, repository=f"https://git.example.com/{chr(0x1F600) * 900}/demo")
    assert "another repository as its source" in await ask(world, mirror, NEW)


@pytest.mark.parametrize("match", [{"differs": ["unexplained"]}, {"contents": ["pth"]}])
async def test_another_file_in_the_place_of_one_without_digests_is_judged_anew(
    world: ProxyWorld, match: dict[str, Any]
) -> None:
    hub = world.started(Hub())
    await settled(world, hub)
    up = world.started(PythonUpstream(digests=False))
    mirror = await world.proxy("old", up, format="python", policy={"rules": [{**RULE, "match": match}]})
    fields = [("Project-URL", "Source, https://git.example.com/acme/demo")]
    name = ""

    def put(version: str, **more: bytes) -> str:
        files = {"demo/a.py": b"a", **{key.replace("_", "."): value for key, value in more.items()}}
        name, data = make_wheel("demo", version, fields=fields, extra_files=files)
        up.serve(up.file_path(name), data)
        return name

    for version, days in (("1.0", 90), ("1.1", 1)):
        init = f'__version__ = "{version}"\n'.encode()
        hub.tag(f"v{version}", {"demo/__init__.py": init, "demo/a.py": b"a"})
        up.add("demo", version, published=days_ago(days), metadata=False)
        del up.projects["demo"][-1]["size"]
        name = put(version)

    async def why() -> str:
        try:
            await world.files.find(mirror, "demo", file_path("demo", "1.1", name), want=Want.BYTES)
        except RuleRefused as error:
            return str(error)
        return ""

    assert not await why()
    put("1.1", evil_pth=b"import evil")
    await world.settle()
    await world.proxies.purge.purge(mirror, Selection(), SYSTEM, NoProgress())
    assert ("new unexplained evil.pth" if "differs" in match else "pth inside") in await why()


async def test_without_a_readable_version_before_it_is_not_known_whether_that_was_explained(world: ProxyWorld) -> None:
    hub = world.started(Hub())
    await settled(world, hub)
    up = world.started(PythonUpstream())
    mirror = await world.proxy("wheels", up, format="python", policy={"rules": [RULE]})
    name = ""
    for version, days in (("1.0", 90), ("1.1", 1)):
        name, _ = up.add("demo", version, published=days_ago(days), metadata=False)
        if version == "1.0":
            broken = b"PK no zip"
            up.serve(up.file_path(name), broken)
            up.projects["demo"][0].update(hashes={"sha256": sha256(broken).hexdigest()}, size=len(broken))
    with pytest.raises(RuleRefused, match=UNKNOWN):
        await world.files.find(mirror, "demo", file_path("demo", "1.1", name), want=Want.BYTES)
