"""Where packages go that clients publish."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import Conflict, Invalid, ReadOnly
from pkgrepo.model import SYSTEM, Repository, RepositoryType, Visibility
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.definitions import add_repository, configure_repository, remove_repository, shown_config
from pkgrepo.proxy.virtual import MOST_LEVELS, check_no_member, check_publishes, exposure_warnings, publish_target
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories, storages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW

HOSTED = evolve(make_placeholder(1, "main", "hosted"), uid="h")


class OneRepository:
    """A registry in which only the hosted repository is."""

    def find_uid(self, uid: str) -> Repository | None:
        return HOSTED if uid == "h" else None


def virtual(publish_to: str | None) -> Repository:
    config = {"type": "Virtual", "members": ["h"], "publish_to": publish_to, "resolution": "first"}
    return evolve(HOSTED, id=2, uid=f"v{publish_to}", name="all", type=RepositoryType.VIRTUAL, config=config)


def test_packages_go_to_the_hosted_repository() -> None:
    for repository in (HOSTED, virtual("h")):
        assert publish_target(OneRepository(), repository) is HOSTED  # type: ignore[arg-type]


def test_a_proxy_and_a_virtual_repository_without_target_take_none() -> None:
    proxy = evolve(HOSTED, type=RepositoryType.PROXY)
    for repository, words in ((proxy, "main/hosted is a proxy"), (virtual(None), "has no publish_to")):
        with pytest.raises(ReadOnly, match=words):
            check_publishes(repository)
        with pytest.raises(ReadOnly, match=words):
            publish_target(OneRepository(), repository)  # type: ignore[arg-type]


def test_a_target_that_is_gone_is_refused() -> None:
    with pytest.raises(ReadOnly, match="does not exist"):
        publish_target(OneRepository(), virtual("gone"))  # type: ignore[arg-type]


NO_COMPANIONS = Companions({})


class Scene:
    """A catalog with one storage, and repositories in it."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.storage = self.catalog.do(storages.add_storage, name="main", kind="Local", settings={}, now_ms=NOW)
        self.registry = Registry(self.catalog)

    def add(self, name: str, format: str = "python", visibility: str = "public", **config: Any) -> Repository:
        made: Repository = self.catalog.do(
            add_repository,
            companions=NO_COMPANIONS,
            storage_id=self.storage.id,
            name=name,
            format=format,
            visibility=visibility,
            config={"type": "Hosted", **config},
            now_ms=NOW,
        )
        return made

    def virtual(self, name: str, *members: Repository, publish_to: str | None = None) -> Repository:
        return self.add(name, **self.config(*members, publish_to=publish_to))

    def join(self, repository: Repository, *members: Repository) -> Repository:
        changed: Repository = self.catalog.do(
            configure_repository,
            repository,
            companions=NO_COMPANIONS,
            config=self.config(*members),
            settings={},
            now_ms=NOW,
        )
        return changed

    @staticmethod
    def config(*members: Repository, publish_to: str | None = None) -> dict[str, Any]:
        uids = [each.uid for each in members]
        return {"type": "Virtual", "members": uids, "publish_to": publish_to, "resolution": "first"}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_members_are_shown_by_their_present_path(scene: Scene) -> None:
    one, two = scene.add("one"), scene.add("two")
    virtual = scene.virtual("all", one, two, publish_to=one.uid)
    scene.catalog.do(repositories.update_repository, one.id, now_ms=NOW, name="first")
    shown = shown_config(virtual, scene.registry)
    assert (shown["members"], shown["publish_to"]) == (["main/first", "main/two"], "main/first")


def test_a_member_that_is_lost_is_shown_by_its_id(scene: Scene) -> None:
    one = scene.add("one")
    virtual = scene.virtual("all", one)
    scene.catalog.do(repositories.remove_repository, one.id, now_ms=NOW)
    assert shown_config(virtual, scene.registry)["members"] == [one.uid]


def test_wrong_members_are_refused_with_their_place(scene: Scene) -> None:
    one, npm = scene.add("one"), scene.add("js", format="npm")
    proxy = scene.add("mirror", type="Proxy", proxy={"routes": []})
    gone = scene.add("gone")
    scene.catalog.do(repositories.remove_repository, gone.id, now_ms=NOW)
    for members, target, pointer in (
        ((one, gone), None, "/members/1"),
        ((npm,), None, "/members/0"),
        ((one, proxy, one), None, "/members/2"),
        ((one, proxy), proxy.uid, "/publish_to"),
        ((proxy,), one.uid, "/publish_to"),
    ):
        with pytest.raises(Invalid) as raised:
            scene.virtual("all", *members, publish_to=target)
        assert raised.value.pointer == pointer
    assert [each.name for each in scene.registry.all()] == ["js", "mirror", "one"]


def test_a_virtual_repository_cannot_contain_itself(scene: Scene) -> None:
    one = scene.add("one")
    inner = scene.virtual("inner", one)
    middle = scene.virtual("middle", one, inner)
    outer = scene.virtual("outer", middle)
    for members, pointer in (((inner,), "/members/0"), ((one, middle), "/members/1"), ((one, outer), "/members/1")):
        with pytest.raises(Invalid, match="cannot contain itself") as raised:
            scene.join(inner, *members)
        assert raised.value.pointer == pointer
    assert scene.join(outer, inner, middle).config["members"] == [inner.uid, middle.uid]


def test_virtual_repositories_contain_each_other_to_a_limited_depth(scene: Scene) -> None:
    one = scene.add("one")
    chain = [scene.virtual("v1", one)]
    for level in range(2, MOST_LEVELS + 1):
        chain.append(scene.virtual(f"v{level}", chain[-1]))
    with pytest.raises(Invalid, match="at most 4 virtual") as raised:
        scene.virtual("v5", chain[-1])
    assert raised.value.pointer == "/members"
    deeper = scene.virtual("deeper", one)
    with pytest.raises(Invalid, match="at most 4 virtual"):
        scene.join(chain[0], deeper)
    scene.join(chain[1], one)
    scene.join(chain[1], deeper)


def test_a_member_cannot_be_removed(scene: Scene) -> None:
    one = scene.add("one")
    virtuals = [scene.virtual(f"v{number}", one) for number in range(7)]
    with pytest.raises(Conflict, match=r"member of main/v0, main/v1, main/v2, main/v3, main/v4 and 2 more"):
        scene.catalog.do(remove_repository, one, now_ms=NOW, purge=False, actor=SYSTEM)
    for virtual in virtuals:
        scene.catalog.do(remove_repository, virtual, now_ms=NOW, purge=False, actor=SYSTEM)
    scene.catalog.peek(check_no_member, one)


def test_readers_are_warned_of_members_that_are_less_visible(scene: Scene) -> None:
    public, private = scene.add("public"), scene.add("secret", visibility="private")
    hidden = scene.add("hidden", visibility="hidden")
    virtual = scene.virtual("all", public, private, hidden)
    (warning,) = exposure_warnings(scene.registry, virtual)
    assert "less visible than this repository: 2." in warning
    assert "secret" not in warning
    assert exposure_warnings(scene.registry, evolve(virtual, visibility=Visibility.PRIVATE)) == []
    assert "repository: 1." in exposure_warnings(scene.registry, evolve(virtual, visibility=Visibility.HIDDEN))[0]
    asking = evolve(scene.virtual("plain", public), settings={})
    assert exposure_warnings(scene.registry, asking) == []
    scene.catalog.do(repositories.update_repository, public.id, now_ms=NOW, settings={"auth": {"enabled": True}})
    assert "repository: 1." in exposure_warnings(scene.registry, asking)[0]
    assert exposure_warnings(scene.registry, public) == []
    member = next(
        each for each in scene.registry.all() if each.uid in virtual.config["members"] and each.uid != public.uid
    )
    for visibility, count in ((Visibility.PUBLIC, 0), (Visibility.HIDDEN, 1), (Visibility.PRIVATE, 1)):
        assert len(exposure_warnings(scene.registry, evolve(member, visibility=visibility))) == count


def test_credentials_over_plain_http_are_warned_of(scene: Scene) -> None:
    auth = {"token": "sealed"}
    plain = {"url": "http://a.example", "name": "a", "priority": 0}
    secure = {"url": "https://a.example", "name": "b", "priority": 0, "auth": auth}
    for routes, count in (([plain, secure], 0), ([{**plain, "auth": auth}, secure], 1)):
        proxy = scene.add(f"mirror{count}", type="Proxy", proxy={"routes": routes})
        assert len(exposure_warnings(scene.registry, proxy)) == count
