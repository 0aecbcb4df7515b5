"""Changes of many versions at once have the result of single changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.change import commands
from pkgrepo.formats.npm.change.document_change import DocumentChange
from pkgrepo.formats.npm.change.requests import BATCH, apply_written
from pkgrepo.formats.npm.indexing import Publishing, index_package
from pkgrepo.formats.npm.packument import document as packument
from pkgrepo.formats.npm.packument.document import FULL, SHORT
from pkgrepo.formats.npm.packument.splicing import read_parts, splice
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.gateway.services import Context
from pkgrepo.interfaces import Transaction, Value
from pkgrepo.model import Actor, BlobInfo, NewFile, Repository, VersionState
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.repositories.publish.package_changes import set_version_state
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.repositories.publish.splicing import BASE
from pkgrepo.storage.catalog import rows
from pkgrepo.storage.catalog.packages import events, files, packages, versions
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog, MemoryTransaction
from tests.support.catalog import add_repository as add_to

NOW = 1_800_000_000_000
ACTOR = admitted(make_placeholder(1, "main", "npm"), Actor(7, "ann"))
TEXTS = [f"1.{minor}.0" for minor in range(12)]


class Package:
    """A package ``x`` in a catalog in memory."""

    def __init__(self, texts: Sequence[str] = TEXTS) -> None:
        self.catalog = MemoryCatalog()
        add_to(self.catalog, 1, format="npm")
        for text in texts:
            self.catalog.do(publish, self.repository, text)

    @property
    def repository(self) -> Repository:
        found: Repository = self.catalog.peek(repositories.get_repository, 1)
        return found

    def document(self, form: str = FULL) -> dict[str, Any]:
        """The document as clients read it, without the keys that every change alters."""
        parts, package = self.catalog.peek(read_parts, 1, "x", form)
        spliced = splice("x", form, package.serial, [parts])
        document: dict[str, Any] = json.loads(spliced.joined().replace(BASE, b""))
        for key in ("_rev", "modified"):
            document.pop(key, None)
        for manifest in document["versions"].values():
            manifest["dist"].pop("signatures")  # ECDSA signatures are random
        return document

    def do(self, command: Any, *args: Any) -> Any:
        return self.catalog.do(command, self.repository, "x", *args, NOW)

    def deprecations(self) -> dict[str, str | None]:
        return {text: manifest.get("deprecated") for text, manifest in self.document()["versions"].items()}

    def happened(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """The events other than those of publishes."""
        found = self.catalog.peek(events.events_after, 0, 1000)
        return [(each.kind, each.version_key, each.data) for each in found if each.kind != "published"]


def publish(tx: Transaction, repository: Repository, text: str) -> None:
    version = semver.parse_version(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    blob = BlobInfo(sha256=sha256, size=10, locator=f"locator-{text}", digests={"sha256": sha256})
    meta = {"name": "x", "version": text, "description": "a }{ b", "dist": {"integrity": f"sha512-{text}"}}
    release = Release(
        package_key="x",
        package_name="x",
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=(NewFile(path=tarball_path("x", version.text), blob=blob),),
        meta=meta,
    )
    publishing = Publishing(tags=("latest",), deprecated="", maintainer={"name": "ann", "email": ""}, actor=ACTOR)
    publish_release(tx, repository, release, ACTOR, publishing, NOW)


@pytest.fixture(autouse=True)
def small_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit statements to a few rows, so that few versions need several."""
    monkeypatch.setattr(rows, "BATCH", 5)


def test_a_batch_of_deprecations_equals_single_ones() -> None:
    many, single = Package(), Package()
    messages = {"1.1.0": 'no "more"', "1.2.0": "other", **dict.fromkeys(TEXTS[3:], "old"), "9.9.9": "is nothing"}
    serial = many.repository.serial
    many.do(commands.deprecate, messages, ACTOR)
    assert many.repository.serial == serial + 1
    for text in TEXTS[1:]:
        single.do(set_version_state, text, VersionState.DEPRECATED, messages[text], ACTOR, index_package)
    for form in (FULL, SHORT):
        assert many.document(form) == single.document(form)
    assert many.deprecations() == {"1.0.0": None, **{text: messages[text] for text in TEXTS[1:]}}
    assert sorted(map(str, many.happened())) == sorted(map(str, single.happened()))
    found = many.catalog.peek(versions.find_version, 1, "1.2.0")
    assert (found.state, found.reason) == (VersionState.DEPRECATED, "other")


def test_deprecations_end_and_change_and_repeated_ones_change_nothing() -> None:
    package = Package()
    package.do(commands.deprecate, dict.fromkeys(TEXTS, "old"), ACTOR)
    serial = package.repository.serial
    package.do(commands.deprecate, dict.fromkeys(TEXTS, "old"), ACTOR)
    assert package.repository.serial == serial
    package.do(commands.deprecate, {**dict.fromkeys(TEXTS[:6], ""), "1.7.0": "older"}, ACTOR)
    assert package.deprecations() == {**dict.fromkeys(TEXTS[:6]), **dict.fromkeys(TEXTS[6:], "old"), "1.7.0": "older"}
    assert [kind for kind, _, _ in package.happened()[len(TEXTS) :]] == ["restored"] * 6 + ["deprecated"]


@pytest.mark.parametrize("burn", [True, False])
def test_a_batch_of_removals_equals_single_ones(burn: bool) -> None:
    many, single = Package(), Package()
    kept = frozenset({"1.2.0", "1.4.0"})
    many.do(commands.apply_document, DocumentChange(kept=kept, tags={"latest": "1.2.0"}), ACTOR, burn)
    for text in TEXTS:
        if text not in kept:
            single.do(commands.remove_version, text, "", ACTOR, burn)
    single.do(commands.set_tag, "latest", "1.2.0", ACTOR)
    for form in (FULL, SHORT):
        assert many.document(form) == single.document(form)
    assert set(many.document()["versions"]) == set(many.document()["time"]) - {"created", "modified"} == kept
    gone = [event for event in many.happened() if event[0] == "deleted"]
    assert gone == [event for event in single.happened() if event[0] == "deleted"]
    assert gone[0] == ("deleted", "1.0.0", {"version": "1.0.0", "paths": ["x/-/x-1.0.0.tgz"]})
    assert (many.repository.bytes_used, many.repository.package_count) == (20, 1)
    left = many.catalog.peek(files.tombstones_of_package, 1, "x")
    assert left == single.catalog.peek(files.tombstones_of_package, 1, "x")
    assert [each.path for each in left] == sorted(f"x/-/x-{text}.tgz" for text in TEXTS if text not in kept and burn)


def test_a_package_is_removed_in_one_change() -> None:
    package = Package()
    serial = package.repository.serial
    package.do(commands.remove_package, "", ACTOR, True)
    assert package.catalog.peek(packages.find_package, 1, "x") is None
    assert [kind for kind, _, _ in package.happened()] == ["deleted"] * len(TEXTS)
    after = package.repository
    assert (after.serial, after.bytes_used, after.package_count) == (serial + 1, 0, 0)
    for table in ("version", "file", "fragment", "tag"):
        assert package.catalog.tx.one(f"SELECT COUNT(*) FROM {table}") == (0,)
    assert len(package.catalog.peek(files.tombstones_of_package, 1, "x")) == len(TEXTS)


class _Counting(MemoryTransaction):
    """Counts the statements of a transaction."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        self.statements += 1
        return super().execute(sql, parameters)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (commands.deprecate, lambda keys: (dict.fromkeys(keys, "old"), ACTOR)),
        (commands.apply_document, lambda keys: (DocumentChange(kept=frozenset(keys[:1])), ACTOR, True)),
        (commands.remove_package, lambda _keys: ("", ACTOR, True)),
    ],
)
def test_many_versions_take_few_statements(command: Any, args: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH", 100)
    package = Package([f"1.0.{patch}" for patch in range(200)])
    keys = package.catalog.peek(versions.version_keys, 1)
    counting = _Counting(package.catalog.tx.connection)
    command(counting, package.repository, "x", *args(keys), NOW)
    assert counting.statements < 40


class _Content:
    """Runs commands, and records the number of versions in each."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self.slices: list[int] = []

    async def change(self, command: Any, repository: Repository, *args: Any) -> Any:
        self.slices.append(len(args[1]))
        return self._package.catalog.do(command, repository, *args, NOW)


async def test_other_writers_commit_between_batches_of_deprecations() -> None:
    texts = [f"1.{minor}.0" for minor in range(2 * BATCH + 1)]
    package = Package(texts)
    content = _Content(package)
    services: Any = SimpleNamespace(content=content)
    change = DocumentChange(deprecated=dict.fromkeys(texts, "old"))
    identity: Any = None
    answer = await apply_written(Context(services, package.repository, None), "x", change, identity, ACTOR)
    assert content.slices == [BATCH, BATCH, 1]
    assert set(package.deprecations().values()) == {"old"}
    serial = package.catalog.peek(packages.package_serial, 1, "x")
    assert json.loads(answer.body)["rev"] == packument.revision("x", serial)
