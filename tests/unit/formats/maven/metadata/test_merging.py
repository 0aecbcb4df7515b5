"""Documents made of stored files and uploads: whatever the order, nothing is lost and nothing comes back."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid, NotFound, TooLarge
from pkgrepo.formats.maven.metadata.document import Uploaded
from pkgrepo.formats.maven.metadata.joining import ARTIFACT, index_artifact, latest, read_parts, splice
from pkgrepo.formats.maven.metadata.reading import (
    MOST_ENTRIES,
    Other,
    Plugin,
    merge_others,
    merge_plugins,
    read_metadata,
)
from pkgrepo.formats.maven.metadata.uploads import Stored, find_said, put_group_plugins, put_uploaded, read_upload
from pkgrepo.formats.maven.paths import Metadata, parse_text
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.model import SYSTEM, NewFile, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.storage.catalog.packages import packages
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob
from tests.support.maven_deploys import artifact_metadata

KEY = "com.example:app"
VERSIONS = ("1.0", "1.1-SNAPSHOT", "1.1", "2.0-rc1", "2.0", "10.0")


def metadata_at(directory: str) -> Metadata:
    target = parse_text(f"{directory}/maven-metadata.xml")
    assert isinstance(target, Metadata)
    return target


TARGET = metadata_at("com/example/app")


class World:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.now_ms = NOW

    def publish(self, version: str, content: bytes = b"jar") -> None:
        path = f"com/example/app/{version}/app-{version}.jar"
        new = NewFile(path=path, blob=make_blob(content), attrs={"classifier": "", "extension": "jar"})
        release = Release(KEY, KEY, version, version, sort_key(version), (new,), overwrite=True, reuse=True)
        self.catalog.do(
            publish_release, self.repository, release, admitted(self.repository), index_artifact, self._now()
        )

    def delete(self, version: str) -> None:
        command = package_changes.remove_files
        self.catalog.do(command, self.repository, KEY, version, None, SYSTEM, index_artifact, True, self._now())

    def upload(self, content: bytes) -> Stored:
        upload = read_upload(TARGET, content)
        said = self.catalog.peek(find_said, self.repository.id, TARGET, upload)
        result: Stored = self.catalog.do(
            put_uploaded, self.repository, TARGET, said, admitted(self.repository), self._now()
        )
        return result

    def document(self) -> bytes:
        return splice(KEY, ARTIFACT, 0, [self.parts()]).joined()

    def parts(self) -> MemberParts:
        parts, _ = self.catalog.peek(read_parts, self.repository.id, KEY, ARTIFACT)
        return parts

    def versions(self) -> list[str]:
        return list(read_metadata(self.document()).versions)

    def _now(self) -> int:
        self.now_ms += 1000
        return self.now_ms


@pytest.fixture
def world() -> World:
    return World()


def upload_of(*versions: str, plugins: str = "") -> bytes:
    written = "".join(f"<plugin><prefix>{each}</prefix><artifactId>{each}-x</artifactId></plugin>" for each in plugins)
    text = artifact_metadata("app", versions).decode()
    return text.replace(
        "</metadata>", f"<plugins>{written}</plugins></metadata>" if plugins else "</metadata>"
    ).encode()


def test_a_publish_costs_the_same_whatever_the_number_of_versions(world: World):
    world.publish("1.0")
    package = world.catalog.peek(packages.find_package, world.repository.id, KEY)
    costs = set()

    def indexed(index: PackageIndex, change: Change) -> None:
        before = world.catalog.tx.statements
        index_artifact(index, change)
        costs.add(world.catalog.tx.statements - before)

    for number in range(30):
        version = f"2.{number}"
        new = NewFile(path=f"com/example/app/{version}/app-{version}.jar", blob=make_blob(b"jar"))
        release = Release(KEY, KEY, version, version, sort_key(version), (new,))
        world.catalog.do(publish_release, world.repository, release, admitted(world.repository), indexed, NOW)
    assert package is not None
    assert len(costs) == 1


def test_what_a_client_read_and_writes_back_changes_nothing(world: World):
    for version in VERSIONS:
        world.publish(version)
    once = world.document()
    world.upload(once)
    assert world.document() == once
    assert world.upload(once) is Stored.SAME
    assert world.document() == once


def test_an_upload_that_says_nothing_new_is_not_stored(world: World):
    world.publish("1.0")
    world.publish("2.0")
    assert world.upload(upload_of("1.0")) is Stored.SAME
    assert world.upload(upload_of("1.0", "2.0")) is Stored.CHANGED
    exact = world.document()
    assert exact == upload_of("1.0", "2.0")
    # One that has seen less comes later, as when two clients deploy at once.
    assert world.upload(upload_of("1.0")) is Stored.SAME
    assert world.document() == exact


@given(
    st.lists(
        st.tuples(st.sampled_from(["publish", "delete", "upload"]), st.sets(st.sampled_from(VERSIONS), min_size=1)),
        max_size=12,
    )
)
def test_versions_are_those_stored_whatever_uploads_say(steps: list[tuple[str, set[str]]]):
    world = World()
    stored: set[str] = set()
    for step, some in steps:
        if step == "publish":
            for version in sorted(some):
                world.publish(version)
            stored |= some
        elif step == "delete":
            for version in sorted(some & stored):
                world.delete(version)
            stored -= some
        elif stored:
            world.upload(upload_of(*sorted(some)))
    if not stored:
        with pytest.raises(NotFound):
            world.document()
        return
    assert world.versions() == sorted(stored, key=sort_key)


@given(st.permutations(["a", "b", "ab", "c"]))
def test_plugins_of_uploads_in_any_order_are_all_kept(order: list[str]):
    world = World()
    world.publish("1.0")
    for plugins in order:
        world.upload(upload_of("1.0", plugins=plugins))
    assert [each.prefix for each in read_metadata(world.document()).plugins] == ["a", "b", "c"]


@given(st.permutations(VERSIONS))
def test_the_document_does_not_depend_on_the_order_of_publishing(order: list[str]):
    world = World()
    for version in order:
        world.publish(version)
    read = read_metadata(world.document())
    assert read.versions == VERSIONS
    assert (read.latest, read.release) == ("10.0", "10.0")


def test_a_yanked_version_is_not_listed_by_an_upload(world: World):
    world.publish("1.0")
    world.publish("2.0")
    for state in (VersionState.YANKED, VersionState.LIVE):
        world.catalog.do(
            package_changes.set_version_state,
            world.repository,
            KEY,
            "2.0",
            state,
            "",
            admitted(world.repository),
            index_artifact,
            NOW,
        )
        world.upload(upload_of("1.0", "2.0"))
        assert world.versions() == (["1.0"] if state is VersionState.YANKED else ["1.0", "2.0"])


def test_the_latest_version_is_a_release_if_there_is_one(world: World):
    world.publish("1.0-SNAPSHOT")
    assert latest(KEY, [world.parts()]) == Latest("1.0-SNAPSHOT", LatestReason.HIGHEST)
    world.publish("0.9")
    assert latest(KEY, [world.parts()]) == Latest("0.9", LatestReason.HIGHEST)


def test_several_repositories_have_the_versions_of_all(world: World):
    other = World()
    for version in ("1.0", "3.0"):
        world.publish(version)
    for version in ("1.0", "2.0"):
        other.publish(version)
    world.upload(upload_of("1.0", "3.0", plugins="a"))
    other.upload(upload_of("1.0", "2.0", plugins="b"))
    members = [world.parts(), other.parts()]
    documents = {splice(KEY, ARTIFACT, 0, order).joined() for order in itertools.permutations(members)}
    assert len(documents) == 1
    read = read_metadata(documents.pop())
    assert read.versions == ("1.0", "2.0", "3.0")
    assert [each.prefix for each in read.plugins] == ["a", "b"]


def plugins_() -> Any:
    return st.lists(st.builds(Plugin, st.sampled_from("abc"), st.sampled_from("xy")), max_size=4)


@given(plugins_(), plugins_(), plugins_())
def test_merging_plugins_is_associative_and_idempotent(one: Any, two: Any, three: Any):
    merged = merge_plugins((one, two, three))
    assert merge_plugins((merge_plugins((one, two)), three)) == merged
    assert merge_plugins((one, merge_plugins((two, three)))) == merged
    assert merge_plugins((merged, one, two, three)) == merged


def others_() -> Any:
    return st.lists(
        st.builds(Other, st.sampled_from(["", "versioning"]), st.just("a"), st.sampled_from("xy")), max_size=4
    )


@given(others_(), others_(), others_())
def test_merging_other_elements_is_associative_and_idempotent(one: Any, two: Any, three: Any):
    merged = merge_others((one, two, three))
    assert merge_others((merge_others((one, two)), three)) == merged
    assert merge_others((one, merge_others((two, three)))) == merged
    assert merge_others((merged, one, two, three)) == merged


def test_plugins_that_are_added_leave_the_rest_of_an_upload(world: World):
    world.publish("1.0")
    world.upload(upload_of("0.9", "1.0", plugins="a"))
    plugins = (Plugin("b", "b-x"),)
    assert (
        world.catalog.do(
            put_group_plugins, world.repository, TARGET, plugins, frozenset(), admitted(world.repository), NOW
        )
        is Stored.CHANGED
    )
    assert (
        world.catalog.do(
            put_group_plugins, world.repository, TARGET, plugins, frozenset(), admitted(world.repository), NOW
        )
        is Stored.SAME
    )
    read = read_metadata(world.document())
    assert read.versions == ("1.0",)
    assert [each.prefix for each in read.plugins] == ["a", "b"]


def test_uploads_together_cannot_make_a_document_as_large_as_they_like(world: World):
    world.publish("1.0")

    def grow(number: int) -> bytes:
        more = f"<other{number}>{'x' * 100_000}</other{number}></metadata>"
        return upload_of("1.0").replace(b"</metadata>", more.encode())

    world.upload(grow(1))
    world.upload(grow(2))
    with pytest.raises(TooLarge):
        world.upload(grow(3))
    prefixes = [Plugin(f"p{number}", "x") for number in range(MOST_ENTRIES + 1)]
    world.catalog.do(
        put_group_plugins, world.repository, TARGET, tuple(prefixes[:-1]), frozenset(), admitted(world.repository), NOW
    )
    with pytest.raises(Invalid, match="plugins"):
        world.catalog.do(
            put_group_plugins,
            world.repository,
            TARGET,
            tuple(prefixes[-1:]),
            frozenset(),
            admitted(world.repository),
            NOW,
        )


def test_versions_without_files_that_an_earlier_release_kept_are_not_listed(world: World):
    world.publish("1.0")
    said = Uploaded(claimed=("9.9",), plugins=(Plugin("a", "a-x"),))
    assert (
        world.catalog.do(put_uploaded, world.repository, TARGET, said, admitted(world.repository), NOW)
        is Stored.CHANGED
    )
    read = read_metadata(world.document())
    assert (read.versions, read.release, read.latest) == (("1.0",), "1.0", "1.0")
    assert [each.prefix for each in read.plugins] == ["a"]


def test_nothing_is_stored_beside_files_that_do_not_exist(world: World):
    said = Uploaded(plugins=(Plugin("a", "a-x"),))
    stored = world.catalog.do(put_uploaded, world.repository, TARGET, said, admitted(world.repository), NOW)
    assert stored is Stored.NO_FILES
