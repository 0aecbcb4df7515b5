"""Fragments of project pages, and lists of projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pkgrepo.errors import NotFound
from pkgrepo.formats.python.index.indexing import index_project, read_parts, splice
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_lists import NAME_LISTS, PROJECT_LISTS, Project
from pkgrepo.formats.python.versions import parse_version
from pkgrepo.model import SYSTEM, NewFile
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.package_lists import PackageList
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files, packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version, make_blob


class World:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)

    def publish(self, text: str) -> int:
        """Publish a wheel of a version; how many statements indexing it took."""
        return int(self.catalog.do(self._publish, text))

    def _publish(self, tx: Any, text: str) -> int:
        key, sort = parse_version(text)
        package, _ = packages.ensure_package(tx, self.repository.id, key="demo", name="demo", serial=1, now_ms=NOW)
        version, _ = ensure_version(
            tx, package.id, key=key, text=text, sort=sort, meta={}, publisher=SYSTEM, now_ms=NOW
        )
        storage = self.repository.storage_id
        blob = blobs.claim_blob(tx, storage, make_blob(text.encode()), NOW)
        new = NewFile(path=f"packages/demo/{text}/demo-{text}-py3-none-any.whl", blob=blob, attrs={})
        file = files.add_file(tx, self.repository.id, storage, new, package.id, version.id, NOW)
        before = tx.statements
        index_project(PackageIndex(tx, package, NOW), Change(version=version, added=(file,)))
        return tx.statements - before

    def page(self, kind: str, project: str = "demo") -> bytes:
        parts, package = self.catalog.peek(read_parts, self.repository.id, project, kind)
        return splice(project, kind, package.serial, [parts]).joined()


@pytest.fixture
def world() -> World:
    return World()


def test_a_publish_costs_the_same_whatever_the_number_of_versions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.publish("1.0")
    read: list[str] = []
    for name in ("version_texts", "versions"):
        monkeypatch.setattr(PackageIndex, name, lambda _index, name=name: read.append(name) or [])
    assert {world.publish(f"1.{n}") for n in range(1, 50)} == {first}
    assert read == []


def test_pages_have_every_file_in_order(world: World) -> None:
    for text in ("1.10", "1.2", "1.0rc1"):
        world.publish(text)
    page = msgspec.json.decode(world.page(JSON_PAGE))
    assert page["versions"] == ["1.0rc1", "1.2", "1.10"]
    assert [each["filename"].split("-")[1] for each in page["files"]] == page["versions"]
    lines = world.page(HTML_PAGE).decode().split("\n")
    assert [line.partition(">")[2].split("-")[1] for line in lines if line.startswith("<a ")] == page["versions"]
    assert lines[-4:-1] == ["</body>", "</html>", "<!--SERIAL 1-->"]


def test_a_quarantined_project_shows_no_file(world: World) -> None:
    world.publish("1.0")
    package = world.catalog.peek(packages.find_package, world.repository.id, "demo")
    world.catalog.do(packages.touch_package, package.id, serial=2, now_ms=NOW, meta={"status": "quarantined"})
    page = msgspec.json.decode(world.page(JSON_PAGE))
    assert (page["files"], page["versions"], page["meta"]["_last-serial"]) == ([], [], 2)
    assert b"<a " not in world.page(HTML_PAGE)
    assert b"\n\n" not in world.page(HTML_PAGE)


def test_a_project_that_is_not_there_has_no_page(world: World) -> None:
    with pytest.raises(NotFound):
        world.page(JSON_PAGE, "other")


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


def add(tx: Any, repository_id: int, key: str, status: str) -> None:
    package, _ = packages.ensure_package(tx, repository_id, key=key, name=key.upper(), serial=1, now_ms=NOW)
    packages.touch_package(tx, package.id, serial=1, now_ms=NOW, meta={"status": status})


def test_projects_in_quarantine_are_not_listed(catalog: MemoryCatalog) -> None:
    repository = catalog.do(add_repository)
    for key, status in (("a", "active"), ("b", "quarantined"), ("c", "deprecated")):
        catalog.do(add, repository.id, key, status)
    names: Sequence[tuple[str, str]] = NAME_LISTS.read_all(catalog.tx, repository.id)
    assert names == [("a", "A"), ("c", "C")]
    listed: Sequence[tuple[str, Project]] = PROJECT_LISTS.read_all(catalog.tx, repository.id)
    assert listed == [("a", ("A", 1)), ("c", ("C", 1))]
    for source, found in ((NAME_LISTS, names), (PROJECT_LISTS, listed)):
        assert [source.read_one(catalog.tx, repository.id, key) for key in "abcd"] == [
            dict(found).get(key) for key in "abcd"
        ]


def test_both_forms_have_the_names() -> None:
    names = PackageList([("a", "A"), ("b", "B")])
    body = NAME_LISTS.forms[JSON_PAGE].splice(3, names).joined()
    assert body.endswith(b'"projects":[{"name":"A"},{"name":"B"}]}')
    assert b">B</a>" in NAME_LISTS.forms[HTML_PAGE].splice(3, names).joined()


def test_the_list_of_a_hosted_repository_has_serials() -> None:
    projects = PackageList([("a", ("A", 7)), ("b", ("B", 3))])
    body = PROJECT_LISTS.forms[JSON_PAGE].splice(8, projects).joined()
    assert body.endswith(b'"projects":[{"_last-serial":7,"name":"A"},{"_last-serial":3,"name":"B"}]}')
    assert b">B</a>" in PROJECT_LISTS.forms[HTML_PAGE].splice(8, projects).joined()
