"""What is kept and no upstream has any more: served for ``stale_if_gone``, whatever it is, and never longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_twisted
from attrs import evolve, frozen

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.proxied.holders import Places, tag_key
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.revalidation import Revalidation
from pkgrepo.repositories.images.cached import keep_tag
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.images import make_image
from tests.support.inprocess_server import until
from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.trust import SettableClock, stop_clock
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.faults import failing
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import ANY, UNKNOWN, ScriptedUpstream

JAR = "com/example/lit/1.0-SNAPSHOT/lit-1.0-SNAPSHOT.jar"
DAY_S = 86_400


@frozen
class Kind:
    """
    Something that clients ask for at a ``path``; ``default_s`` is its ``stale_if_gone`` if that is not set.

    ``warns``: a stale answer has a warning. ``query`` is that of its explanation.
    """

    format: str
    upstream: Callable[[], Any]
    add: Callable[[Any], object]
    path: str
    default_s: int = 0
    warns: bool = True
    query: Mapping[str, str] = {}


def _push(upstream: ContainerUpstream) -> None:
    upstream.push("demo", make_image("a"), "1", "1")


KINDS = {
    "document": Kind(
        "npm", NpmUpstream, lambda up: up.add("demo", "1.0.0"), "/repositories/main/mirror/demo", warns=False
    ),
    "file": Kind(
        "maven", MavenUpstream, lambda up: up.add(JAR, b"jar"), f"/repositories/main/mirror/{JAR}", query={"file": JAR}
    ),
    "tag": Kind(
        "docker", ContainerUpstream, _push, "/v2/main/mirror/demo/manifests/1", 7 * DAY_S, query={"version": "1"}
    ),
    "list": Kind("docker", ContainerUpstream, _push, "/v2/main/mirror/demo/tags/list", 7 * DAY_S),
}


@frozen
class Scene:
    """The proxy ``main/mirror`` in front of ``up``, which has what is asked for."""

    stack: Stack
    clock: SettableClock
    kind: Kind
    up: ScriptedUpstream

    async def build(self, **cache: Any) -> None:
        routes = [{"name": "up", "url": self.up.url, "priority": 0}]
        config = {
            "type": "Proxy",
            "proxy": {"routes": routes},
            "cache_ttl": 300,
            "cache": {"negative_ttl": 60, **cache},
        }
        await self.stack.add_repository("mirror", format=self.kind.format, config=config)

    @property
    def stale(self) -> tuple[int, bool]:
        """What ``get`` returns for a stale answer."""
        return 200, self.kind.warns

    async def get(self) -> tuple[int, bool]:
        """The status, and whether the answer has a warning."""
        reply: Reply = await self.stack.call("GET", self.kind.path)
        await until(lambda: not len(self.stack.assembly._proxies.transfers))  # recorded at the time of the clock
        await self.stack.assembly.core.wait_idle()
        return reply.status, "warning" in reply.headers

    def behave(self, step: Any = None) -> None:
        self.up.behave()
        if step is not None:
            self.up.misbehave(ANY, step, repeat=True)

    def advance(self, seconds: float) -> None:
        self.clock.ms += round(1000 * seconds)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Kind, Any]]:
    kind = KINDS[request.param]
    with kind.upstream() as up:
        kind.add(up)
        yield kind, up


@pytest_twisted.async_yield_fixture
async def scene(server: tuple[Kind, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = stop_clock(monkeypatch)
    async with running_stacks(tmp_path) as make:
        yield Scene(await make(proxy__allow_private=["127.0.0.1"]), clock, *server)


each_kind = pytest.mark.parametrize("server", KINDS, indirect=True)


@each_kind
async def test_what_no_upstream_has_any_more_is_served_for_stale_if_gone(scene: Scene) -> None:
    await scene.build(stale_if_gone="1d")
    assert await scene.get() == (200, False)
    scene.advance(301)
    scene.behave(UNKNOWN)
    assert await scene.get() == scene.stale
    asked = scene.up.count()
    scene.advance(59)
    assert await scene.get() == scene.stale
    assert scene.up.count() == asked, "no upstream is asked within negative_ttl"
    scene.advance(2)
    assert await scene.get() == scene.stale
    assert scene.up.count() > asked
    scene.advance(DAY_S - 62)
    assert await scene.get() == scene.stale, "it is counted from when it was first said"
    scene.advance(1)
    assert await scene.get() == (404, False)


@each_kind
async def test_failures_do_not_serve_it_for_longer_and_do_not_make_it_absent(scene: Scene) -> None:
    await scene.build(stale_if_gone="1d")
    await scene.get()
    scene.advance(301)
    scene.behave(UNKNOWN)
    await scene.get()
    scene.behave(failing(503))
    scene.advance(61)
    assert await scene.get() == scene.stale
    scene.advance(DAY_S)
    status, _ = await scene.get()
    assert status in (502, 503), "what could not be asked is not absent, and what was removed is not served"
    scene.behave(UNKNOWN)
    scene.advance(11)
    assert await scene.get() == (404, False)


@each_kind
async def test_what_comes_back_is_as_if_it_had_never_been_gone(scene: Scene) -> None:
    await scene.build(stale_if_gone="1d")
    await scene.get()
    for _ in range(2):
        scene.advance(301)
        scene.behave(UNKNOWN)
        assert await scene.get() == scene.stale
        scene.advance(DAY_S - 1)
        scene.behave()
        assert await scene.get() == (200, False)
    scene.advance(301)
    scene.behave(failing(503))
    assert await scene.get() == scene.stale


@each_kind
async def test_without_the_setting_only_tags_and_their_lists_stay_for_a_week(scene: Scene) -> None:
    await scene.build()
    await scene.get()
    scene.advance(301)
    scene.behave(UNKNOWN)
    assert await scene.get() == (scene.stale if scene.kind.default_s else (404, False))
    scene.advance(scene.kind.default_s)
    assert await scene.get() == (404, False)


@each_kind
async def test_a_route_that_is_not_asked_for_it_any_more_leaves_nothing_behind(scene: Scene) -> None:
    await scene.build(stale_if_gone="1d")
    await scene.get()
    routes = [{"name": "up", "url": scene.up.url, "priority": 0, "packages": ["other"]}]
    routes.append({"name": "more", "url": scene.up.url, "priority": 0, "packages": ["*demo*", "*lit*"]})
    core = scene.stack.assembly.core
    mirror = core.registry.find_path("main/mirror")
    assert mirror is not None
    config = {**mirror.config, "proxy": {"routes": routes}}
    await core.catalog.write(repositories.update_repository, mirror.id, now_ms=scene.clock.ms, config=config)
    scene.behave(UNKNOWN)
    scene.advance(301)
    assert await scene.get() == (404, False)


@each_kind
async def test_what_another_process_gets_meanwhile_stays_and_is_served(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.build(stale_if_gone=0)
    assert await scene.get() == (200, False)
    core, keep_absent = scene.stack.assembly.core, Revalidation._keep_absent
    mirror = core.registry.find_path("main/mirror")
    assert mirror is not None

    async def confirmed_meanwhile(self: Revalidation, cached: Any, *rest: Any) -> Any:
        (row,) = await core.catalog.look(upstream_documents.list_documents, mirror.id, after=cached.key[:-1], limit=1)
        now_ms = scene.clock.now_ms()
        row = evolve(row, checked_ms=now_ms, fresh_until_ms=now_ms + 300_000)
        await core.catalog.write(upstream_documents.renew_document, mirror, row, now_ms)
        return await keep_absent(self, cached, *rest)

    monkeypatch.setattr(Revalidation, "_keep_absent", confirmed_meanwhile)
    scene.advance(301)
    scene.behave(UNKNOWN)
    assert await scene.get() == (200, False)
    asked = scene.up.count()
    scene.advance(9)
    assert await scene.get() == (200, False)
    assert scene.up.count() == asked


@each_kind
async def test_what_is_of_a_time_before_the_clock_was_set_back_is_asked_again(scene: Scene) -> None:
    await scene.build(stale_if_gone=0)
    scene.behave(UNKNOWN)
    scene.advance(365 * DAY_S)
    assert await scene.get() == (404, False)
    scene.advance(-365 * DAY_S)
    scene.behave()
    assert await scene.get() == (200, False)
    asked = scene.up.count()
    assert await scene.get() == (200, False)
    assert scene.up.count() == asked, "it is fresh by the present clock"
    scene.advance(365 * DAY_S)
    assert await scene.get() == (200, False)
    scene.advance(-365 * DAY_S)
    scene.behave(UNKNOWN)
    assert await scene.get() == (404, False)


@pytest.mark.parametrize("server", ["tag"], indirect=True)
async def test_a_tag_that_another_process_moves_meanwhile_stays_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.up.push("demo", make_image("b"), "2", "2")
    await scene.build()
    path = scene.kind.path
    digests = [(await scene.stack.call("GET", f"{path[:-1]}{tag}")).headers["docker-content-digest"] for tag in "12"]
    catalog = scene.stack.assembly.core.catalog

    async def moved(self: Places, repository: Repository, image: str, *_: Any) -> Any:
        row = await catalog.look(upstream_documents.find_document, repository.id, tag_key(image, "1"))
        moved = evolve(row, meta={**row.meta, "digest": digests[1]})
        await catalog.write(keep_tag, repository, image, "1", digests[1], moved, admitted(repository), scene.clock.ms)
        raise NotFound("image", image)

    scene.advance(301)
    with monkeypatch.context() as patch:
        patch.setattr(Places, "first", moved)
        assert await scene.get() == scene.stale
    scene.behave(failing(503))
    scene.advance(61)
    reply = await scene.stack.call("GET", path)
    assert reply.headers["docker-content-digest"] == digests[1]


@pytest.mark.parametrize("server", ["tag"], indirect=True)
async def test_a_manifest_that_is_evicted_while_its_tag_is_confirmed_is_fetched(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.build()
    assert await scene.get() == (200, False)
    image = make_image("b")
    scene.up.push("demo", image, "1")
    scene.advance(301)

    async def was_kept(*_: Any) -> bool:
        return True

    monkeypatch.setattr(UpstreamManifests, "is_kept", was_kept)
    reply = await scene.stack.call("GET", scene.kind.path)
    assert (reply.headers["docker-content-digest"], "warning" in reply.headers) == (image.digest, False)


@each_kind
async def test_explanations_tell_until_when_it_is_served(scene: Scene) -> None:
    await scene.build(stale_if_gone="1d")
    await scene.get()
    scene.advance(301)
    scene.behave(UNKNOWN)
    query = {"repository": "main/mirror", "package": "com.example:lit" if scene.kind.format == "maven" else "demo"}
    query |= scene.kind.query
    for more in (set(), {"cached"}):
        found = (await scene.stack.call("GET", f"/api/explain?{urlencode(query)}")).json
        assert found["outcome"] == "served"
        steps = {each["step"]: each["sentence"] for each in found["steps"]}
        assert steps.keys() - {"file_kept"} == {"absent", "gone"} | more
        assert "any more; what is kept of it is served until" in steps["gone"]
