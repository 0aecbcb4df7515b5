"""What is fetched, evicted and noted here of a version, as the other server lists it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import NotFound, UpstreamMismatch
from pkgrepo.model import File, RepositoryType, VersionState
from pkgrepo.replication import files as room
from pkgrepo.replication.files import FileCopies
from pkgrepo.replication.source import RemotePath, RemoteVersion
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.policy.rules import Verdict
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository
from tests.unit.replication.test_files import kept

GOOD, OTHER = "a" * 64, "d" * 64  # of which the first is that of what is kept
REFUSED = Verdict()  # by a rule that does not matter here


class Scene:
    """
    One version here; ``fetched`` are the paths that were fetched, ``done`` the commands with what they were given.

    ``fails`` are the errors of some paths. Gems of yanked versions are below ``.yanked/``.
    """

    def __init__(self, *here: str, pinned: bool = False, **policy: bool) -> None:
        self.fetched: list[str] = []
        self.done: list[tuple[str, Any]] = []
        self.fails: dict[str, Exception] = {}
        routes = {"routes": [{"url": "https://there.example/repositories/main/a", "name": "there"}]}
        settings = {"replicate": {"files": ["*"]}, "policy": policy}
        found = MemoryCatalog().do(add_repository)
        self.repository = evolve(
            found, type=RepositoryType.PROXY, config={"type": "Proxy", "proxy": routes}, settings=settings
        )
        version: Any = SimpleNamespace(state=VersionState.LIVE)
        self.kept = room._Kept(version, {each: kept(each) for each in here}, pinned=pinned, bytes=0)
        format_: Any = SimpleNamespace(
            version_key=str, index=None, public_path=lambda path: path.removeprefix(".yanked/")
        )
        unused: Any = self
        self.copies = FileCopies(
            catalog=unused,
            content=unused,
            resolver=unused,
            formats={"python": format_},
            proxied={"python": SimpleNamespace(document_of=lambda package, path: package)},  # type: ignore[dict-item]
            fetch=self.fetch,
        )

    async def scan(self, query: Callable[..., Any], *_: Any) -> Any:
        return self.kept

    async def state(self, *_: Any) -> None:
        """The document is asked for again."""

    async def change(self, command: Any, _repository: Any, *given: Any) -> None:
        name = getattr(command, "func", command).__name__
        if name == "remove_files":
            self.done.append((name, (given[2], given[5])))
        elif name == "_take_back":
            self.done.append((name, given[1]))
        elif name == "burn":
            self.done.append((name, [each.path for each in given[1]]))

    async def fetch(self, _repository: Any, _package: str, path: str) -> File:
        self.fetched.append(path)
        if path in self.fails:
            raise self.fails[path]
        return kept(path)

    async def keep(self, *listed: str, sha256: str = GOOD) -> None:
        files = [RemotePath(each, 1, {"sha256": sha256}) for each in listed]
        await self.copies.keep(self.repository, "demo", RemoteVersion("1.0", files))


@pytest.mark.parametrize("error", [NotFound("file", "b"), RuleRefused("b", "here", "somebody", REFUSED)])
async def test_a_file_that_is_not_given_keeps_no_other_from_being_fetched_and_is_no_failure(error: Exception) -> None:
    scene = Scene()
    scene.fails["b"] = error
    await scene.keep("a", "b", "c")
    assert scene.fetched == ["a", "b", "c"]


@pytest.mark.parametrize("verdict", [evolve(REFUSED, opens_ms=9), evolve(REFUSED, waits=True)])
async def test_a_file_that_a_rule_lets_in_later_is_fetched_later(verdict: Verdict) -> None:
    scene = Scene()
    scene.fails["b"] = RuleRefused("b", "here", "somebody", verdict)
    with pytest.raises(RuleRefused):
        await scene.keep("a", "b", "c", ".yanked/d")
    assert scene.fetched == ["a", "b", "c"]
    assert scene.done == [("burn", [".yanked/d"])]


async def test_another_file_than_the_listed_one_keeps_no_other_from_being_fetched() -> None:
    scene = Scene()
    with pytest.raises(UpstreamMismatch, match="another a"):
        await scene.keep("a", "b", sha256=OTHER)
    assert scene.fetched == ["a", "b"]


async def test_what_was_replaced_there_is_fetched_again_and_what_went_is_not_published_anew() -> None:
    scene = Scene("a", "b")
    with pytest.raises(UpstreamMismatch):
        await scene.keep("a", sha256=OTHER)
    assert scene.done == [("remove_files", (["a"], False)), ("remove_files", (["b"], True))]
    assert scene.fetched == ["a"]


@pytest.mark.parametrize("scene", [Scene("a", pinned=True), Scene("a", keep_removed=True)])
async def test_what_is_held_here_stays(scene: Scene) -> None:
    await scene.keep()
    await scene.copies.drop(scene.repository, "demo", "1.0")
    assert scene.done == []


async def test_a_removed_version_is_evicted_and_its_names_are_not_used_again() -> None:
    scene = Scene("a")
    await scene.copies.drop(scene.repository, "demo", "1.0")
    assert scene.done == [("remove_files", (None, True))]


async def test_a_yank_takes_no_file_that_is_kept_and_burns_what_was_never_fetched() -> None:
    scene = Scene("a")
    await scene.keep(".yanked/a", ".yanked/b")
    assert (scene.fetched, scene.done) == ([], [("burn", [".yanked/b"])])
    taken_back = Scene(".yanked/a")
    await taken_back.keep("a")
    assert (taken_back.fetched, taken_back.done) == ([], [])


async def test_what_is_back_there_may_be_published_here_again() -> None:
    scene = Scene("a")
    scene.kept = evolve(scene.kept, burned=("b", "c", ".yanked/d", ".yanked/e"))
    await scene.keep("b", "d", ".yanked/e")
    assert ("_take_back", ["b", ".yanked/d"]) in scene.done


def test_what_nobody_gets_is_burned_once_and_the_layout_is_told() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    withdrawn = [RemotePath(".yanked/a", 1, {"sha256": GOOD}), RemotePath(".yanked/b", 1, {"sha256": "no digest"})]
    for _ in range(2):
        catalog.do(room.burn, repository, "demo", withdrawn, 1)
    assert [each.path for each in catalog.peek(room.files.tombstones_of_package, repository.id, "demo")] == [
        ".yanked/a"
    ]
    assert len(catalog.tx.all("SELECT 1 FROM event WHERE package_key = 'demo'")) == 1
