"""What becomes of the other files when one of them cannot be taken in."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import DigestMismatch, NotFound
from pkgrepo.formats.conda.imported import ChannelFolder
from pkgrepo.formats.container.imported.folders import open_images
from pkgrepo.formats.container.imported.images import ImageSource
from pkgrepo.formats.npm.imported import NpmFolder
from pkgrepo.formats.python.imported import PythonFolder
from pkgrepo.formats.rubygems.imported import GemFolder
from pkgrepo.gateway.imported.described import WithLeftOut
from pkgrepo.gateway.imported.engine import Report, Taken
from pkgrepo.gateway.imported.files import AT_ONCE, BATCH_SIZE, LONGEST_NAME, FileTaker, _person
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.places import Folder
from pkgrepo.repositories.upkeep.jobs import NoProgress
from tests.support.repositories import InlinePools

BAD = DigestMismatch("sha1", "a", "b")
NONE: dict[str, str] = {}


def item(version: str, name: str) -> Item:
    place: Any = None
    return Item(name=name, path=name, place=place, version=version)


TWO = [item("1", each) for each in ("1.pom", "1.jar", "1.jar.asc")] + [item("2", "2.pom")]


async def take(
    monkeypatch: pytest.MonkeyPatch,
    failing: dict[str, Exception],
    taking: Any,
    items: list[Item] = TWO,
    broken: Any = NONE,
    stored: Any = NONE,
) -> tuple[list[str], Taken]:
    """The files that are published of some versions, and what became of the others."""
    published: list[str] = []

    @asynccontextmanager
    async def stage(*_: Any, **__: Any) -> Any:
        yield None

    async def keep_together(_repository: Any, releases: Any, *_: Any) -> Any:
        published.extend(name for each in releases for name in each.names)
        return [SimpleNamespace(changed=True) for _ in releases]

    async def fetch(_self: Any, _source_package: SourcePackage, item: Item, _staged: Any) -> Any:
        if item.name in failing:
            raise failing[item.name]
        files = [SimpleNamespace(blob=SimpleNamespace(size=1))]
        return SimpleNamespace(names=[item.name], files=files, package_key="demo", version_key=item.version)

    async def scan(query: Any, _id: int, given: Any) -> Any:
        return given if isinstance(given, SourcePackage) else (stored, set())

    monkeypatch.setattr(FileTaker, "_fetch", fetch)
    tools: Any = SimpleNamespace(
        pools=InlinePools(),
        catalog=SimpleNamespace(scan=scan),
        content=SimpleNamespace(stage=stage, keep_together=keep_together),
    )
    repository = SimpleNamespace(id=1, policy={})
    order: Any = SimpleNamespace(repository=repository, actor=SimpleNamespace(user_id=None), dry_run=False)
    taken = Taken("demo", Report(), NoProgress())
    index: Any = None
    source_package = SourcePackage(name="demo", key="demo", fingerprint="", items=items)
    await FileTaker(tools=tools, order=order, taking=taking, indexer=index, broken=broken)(source_package, taken)
    return published, taken


def join(releases: Any) -> Any:
    return SimpleNamespace(names=[name for each in releases for name in each.names], files=releases[0].files)


async def nothing(*_: Any) -> Any:
    """Takes nothing: it is not called."""


JOINED = Taking(take=nothing, join=join, needed=lambda item: not item.name.endswith(".asc"))


async def test_a_version_that_is_joined_is_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    published, taken = await take(monkeypatch, {"1.jar": BAD}, JOINED)
    assert published == ["2.pom"]
    assert [each.item for each in taken.left_out] == ["1.jar", "1.pom", "1.jar.asc"]
    assert taken.left_out[1].reason == "its version is left out: 1.jar is"
    assert taken.passing


async def test_a_version_of_many_large_files_is_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [evolve(item("1", f"1-{each}.jar"), size=BATCH_SIZE) for each in range(2 * AT_ONCE)]
    published, taken = await take(monkeypatch, {many[-1].name: BAD}, JOINED, [*many, item("2", "2.pom")])
    assert published == ["2.pom"]
    assert len(taken.left_out) == len(many)


async def test_a_version_of_which_the_source_has_not_all_is_left_out_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    published, taken = await take(monkeypatch, {"1.pom": BAD}, JOINED, broken={"1": "1-all.jar"})
    assert published == ["2.pom"]
    assert {each.reason for each in taken.left_out} == {"its version is left out: 1-all.jar is"}


async def test_a_signature_that_is_missing_leaves_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    published, taken = await take(monkeypatch, {"1.jar.asc": NotFound("file", "1.jar.asc")}, JOINED)
    assert published == ["1.pom", "1.jar", "2.pom"]
    assert [each.item for each in taken.left_out] == ["1.jar.asc"]


async def test_files_that_are_releases_are_taken_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    published, _ = await take(monkeypatch, {"1.jar": BAD}, Taking(take=nothing))
    assert published == ["1.pom", "1.jar.asc", "2.pom"]


class Bytes:
    """The place of a file whose bytes are ``x``."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"x"


X = hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ({"sha1": "1", "md5": "2"}, True),
        ({"sha1": "1", "md5": "3"}, False),
        ({"sha1": "3", "sha256": X}, False),
        ({"sha512": "3"}, True),
        ({}, True),
    ],
    ids=str,
)
async def test_a_file_that_is_there_is_the_same_if_all_digests_that_are_known_of_both_are(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], same: bool
) -> None:
    there = evolve(item("1", "1.jar"), place=Bytes(), digests=said)
    stored = {"1.jar": SimpleNamespace(path="1.jar", sha256=X, digests={"sha1": "1", "md5": "2"})}
    published, taken = await take(monkeypatch, {}, Taking(take=nothing), [there], stored=stored)
    assert (published, taken.report.present, len(taken.left_out)) == ([], int(same), int(not same))


async def test_a_file_that_is_there_with_other_bytes_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    there = evolve(item("1", "1.jar"), place=Bytes())
    stored = {"1.jar": SimpleNamespace(path="1.jar", sha256="0" * 64, digests={})}
    _, taken = await take(monkeypatch, {}, Taking(take=nothing), [there], stored=stored)
    assert (taken.report.present, len(taken.left_out)) == (0, 1)


@pytest.mark.parametrize(
    ("said", "kept"), [("Ann", "Ann"), ("An\0n\n", "Ann"), ("a" * 1000, "a" * LONGEST_NAME), ("\n", None), (None, None)]
)
def test_a_publisher_is_named_as_somebody_here_may_be(said: str | None, kept: str | None) -> None:
    assert _person(said) == kept


def images(folder: Folder) -> ImageSource:
    return ImageSource(open_images(folder), {})


DISTRIBUTION = "docker/registry/v2/repositories"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (PythonFolder, "demo-1.0-py3-none-any.whl"),
        (GemFolder, "demo-1.0.gem"),
        (NpmFolder, "demo/demo-1.0.tgz"),
        (ChannelFolder, "noarch"),
        (ChannelFolder, "noarch/demo-1.0-0.conda"),
        (images, "team/app"),
        (images, "team/app/index.json"),
        (images, f"{DISTRIBUTION}/team"),
    ],
)
async def test_symbolic_links_are_named(tmp_path: Path, kind: Any, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).symlink_to(tmp_path / "elsewhere")
    pools: Any = InlinePools()
    folder = Folder(str(tmp_path), pools)
    source = WithLeftOut(kind(folder), folder)
    assert [each async for each in source.names()] == [""]
    (left,) = (await source.package("")).left_out
    assert left == (path, "it is a symbolic link, which is not followed")


async def test_a_tag_that_is_a_symbolic_link_is_named(tmp_path: Path) -> None:
    tags = tmp_path / DISTRIBUTION / "app/_manifests/tags"
    tags.mkdir(parents=True)
    (tags / "latest").symlink_to(tmp_path / "elsewhere")
    pools: Any = InlinePools()
    source_package = await images(Folder(str(tmp_path), pools)).package("app")
    assert source_package.tags == {"latest": ""}  # which the import cannot take
