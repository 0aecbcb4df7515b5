"""What the event log tells of the past of packages, on every engine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pkgrepo.model import SYSTEM, Repository, VersionState
from pkgrepo.repositories.past import Changes, PackagePast, changes_since, package_past
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.package_changes import append_package_event
from pkgrepo.storage.catalog.packages import packages, tags, versions
from tests.support.admission import admitted
from tests.support.catalogs import NOW, add_repository, publish

SECOND = 1000


def highest(texts: Iterable[str]) -> str | None:
    return max(texts, default=None)


def ignore(*_: object) -> None:
    """Index nothing."""


class Log:
    """A repository with one package, which is changed once a second."""

    def __init__(self, catalog: Any, repository: Repository) -> None:
        self.catalog, self.repository, self.now_ms = catalog, repository, NOW

    async def publish(self, version: str, *, package: str = "demo") -> int:
        def add(tx: Any) -> None:
            path = f"{package}-{version}"
            publish(tx, self.repository, path, package=package, version=version, now_ms=self.now_ms)
            found = packages.find_package(tx, self.repository.id, package)
            assert found is not None
            release = versions.find_version(tx, found.id, version)
            append_package_event(tx, found, "published", {}, SYSTEM, self.now_ms, version=release)
            packages.touch_package(tx, found.id, serial=found.serial, now_ms=self.now_ms)

        return await self._do(add)

    async def tag(self, **data: Any) -> int:
        return await self._event("tagged", data)

    async def untag(self, name: str) -> int:
        return await self._event("untagged", {"tag": name})

    async def set_state(self, version: str, state: VersionState) -> int:
        return await self._do(
            lambda tx: package_changes.set_version_state(
                tx,
                self.repository,
                "demo",
                version,
                state,
                "" if state is VersionState.LIVE else "why",
                admitted(self.repository),
                ignore,
                self.now_ms,
            )
        )

    async def remove(self, version: str, *, package: str = "demo") -> int:
        return await self._do(
            lambda tx: package_changes.remove_files(
                tx, self.repository, package, version, None, SYSTEM, ignore, False, self.now_ms
            )
        )

    async def past(self, at_ms: int) -> PackagePast:
        def read(reader: Any) -> PackagePast:
            package = packages.find_package(reader, self.repository.id, "demo")
            assert package is not None
            present = {each.key: (each.state, each.reason) for each in versions.list_versions(reader, package.id)}
            return package_past(reader, package.id, at_ms, present=present, highest=highest)

        found: PackagePast = await self.catalog.scan(read)
        return found

    async def since(self, at_ms: int, package: str = "demo") -> Changes:
        found: Changes = await self.catalog.scan(changes_since, self.repository, package, at_ms, highest)
        return found

    async def _event(self, kind: str, data: dict[str, Any]) -> int:
        def append(tx: Any) -> None:
            package = packages.find_package(tx, self.repository.id, "demo")
            assert package is not None
            append_package_event(tx, package, kind, data, SYSTEM, self.now_ms)

        return await self._do(append)

    async def _do(self, command: Any) -> int:
        """The time of a change, which is the last moment before the next one."""
        self.now_ms += SECOND
        await self.catalog.write(command)
        return self.now_ms + SECOND - 1


async def begin(catalog: Any) -> Log:
    return Log(catalog, await catalog.write(add_repository))


async def test_tags_are_those_of_then(catalog: Any) -> None:
    log = await begin(catalog)
    one = await log.publish("1.0")
    two = await log.publish("2.0")
    moved = await log.tag(tags={"latest": "2.0", "old": "1.0"})
    single = await log.tag(tag="next", target="1.0")
    named = await log.tag(tags=["next", "old"], version="2.0")
    targets = await log.tag(tags=["old"], targets={"old": "1.0"})
    gone = await log.untag("next")
    removed = await log.remove("2.0")
    expected = {
        NOW: None,
        one: {"latest": "1.0"},
        two: {"latest": "1.0"},  # nobody moved it
        moved: {"latest": "2.0", "old": "1.0"},
        single: {"latest": "2.0", "old": "1.0", "next": "1.0"},
        named: {"latest": "2.0", "old": "2.0", "next": "2.0"},
        targets: {"latest": "2.0", "old": "1.0", "next": "2.0"},
        gone: {"latest": "2.0", "old": "1.0"},
        removed: {"latest": "1.0", "old": "1.0"},
    }
    assert {at_ms: (await log.past(at_ms)).tags for at_ms in expected} == expected
    assert (await log.past(gone)).removed == ["2.0"]
    assert (await log.past(removed)).removed == []


async def test_the_last_change_until_then_is_known(catalog: Any) -> None:
    log = await begin(catalog)
    one = await log.publish("1.0")
    tagged = await log.tag(tag="next", target="1.0")
    await log.publish("2.0")
    changed = {at_ms: (await log.past(at_ms)).changed_ms for at_ms in (NOW, one, tagged)}
    assert changed == {NOW: None, one: NOW + SECOND, tagged: NOW + 2 * SECOND}


async def test_states_are_those_of_then(catalog: Any) -> None:
    log = await begin(catalog)
    live = await log.publish("1.0")
    yanked = await log.set_state("1.0", VersionState.YANKED)
    restored = await log.set_state("1.0", VersionState.LIVE)
    later = await log.publish("2.0")
    await log.set_state("2.0", VersionState.DEPRECATED)
    found = {at_ms: (await log.past(at_ms)).states for at_ms in (live, yanked, restored, later)}
    was_live = {"2.0": (VersionState.LIVE, "")}
    assert found == {live: {}, yanked: {"1.0": (VersionState.YANKED, "why")}, restored: {}, later: was_live}
    assert (await log.past(restored)).unknown == {"2.0"}


async def test_changes_since_a_time(catalog: Any) -> None:
    log = await begin(catalog)
    await log.publish("1.0")
    then = await log.publish("2.0")
    await log.publish("1.0", package="other")
    assert not await log.since(then)
    await log.publish("3.0")
    await log.set_state("1.0", VersionState.YANKED)
    await log.remove("2.0")
    found = await log.since(then)
    assert (found.added, found.removed) == (["3.0"], ["2.0"])
    assert found.states == {"1.0": (VersionState.LIVE, VersionState.YANKED)}
    await log.remove("1.0", package="other")
    assert not await log.since(then, "other")  # it came and went
    for version in ("1.0", "3.0"):
        await log.remove(version)
    gone = await log.since(then)
    assert (gone.gone, sorted(gone.removed)) == (True, ["1.0", "2.0"])
    keys = partial(packages.changed_keys, after="", limit=10)
    assert await log.catalog.scan(keys, log.repository.id, then) == ["demo", "other"]
    assert await log.catalog.scan(keys, log.repository.id, log.now_ms) == []


async def test_what_a_tag_names_now_is_compared(catalog: Any) -> None:
    log = await begin(catalog)
    await log.publish("1.0")
    then = await log.tag(tags={"latest": "1.0"})
    await log.publish("2.0")

    def move(tx: Any) -> None:
        package = packages.find_package(tx, log.repository.id, "demo")
        assert package is not None
        version = versions.find_version(tx, package.id, "2.0")
        assert version is not None
        tags.set_tag(tx, package.id, "latest", version_id=version.id, actor=SYSTEM, now_ms=log.now_ms)

    await log.catalog.write(move)
    assert (await log.since(then)).tags == {"latest": ("1.0", "2.0")}
