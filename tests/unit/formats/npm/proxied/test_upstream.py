"""What is requested from upstream registries, and how tarballs are stored."""

import hashlib
import json
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.indexing import index_package
from pkgrepo.formats.npm.packument.document import FULL, SHORT, TIME
from pkgrepo.formats.npm.proxied.normaliser import LARGEST, keep_attestations, keep_keys, kept_text, normalise
from pkgrepo.formats.npm.proxied.upstream import (
    LARGEST_MANIFEST,
    attestations_question,
    keys_question,
    make_release,
    packument_question,
)
from pkgrepo.formats.npm.search.rows import LISTED, ROW, read_row
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, BlobInfo
from pkgrepo.proxy.parts.values import Context
from pkgrepo.repositories.publish.package_changes import remove_files
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, tags
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog, add_repository

ROOT = "https://registry.example/npm"
CONTEXT = Context("x", ROOT)


def test_scope_is_sent_with_an_encoded_slash() -> None:
    assert packument_question("@sc/x").urls(ROOT) == (f"{ROOT}/@sc%2fx",)
    assert packument_question("x").urls(ROOT) == (f"{ROOT}/x",)
    assert attestations_question("@sc/x", "1.0.0+b").urls(ROOT) == (f"{ROOT}/-/npm/v1/attestations/@sc%2fx@1.0.0+b",)
    assert keys_question().urls(ROOT) == (f"{ROOT}/-/npm/v1/keys",)


def test_questions_have_keys_of_their_own() -> None:
    asked = [packument_question("keys"), keys_question(), attestations_question("keys", "1.0.0")]
    assert len({question.key for question in asked}) == 3
    assert [question.package_key for question in asked] == ["keys", "", "keys"]


def test_document_is_kept_as_it_is() -> None:
    source = '{ "keys": [{"é": 1.50}] }'
    assert kept_text(keep_keys(source.encode(), CONTEXT).top) == source


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"[]",
        b"{}",
        b"<html>",
        b'{"a":"\xff","keys":[]}',
        b'{"keys":[],"a":"%b"}' % (b"x" * LARGEST),
        b'{"keys":{}}',
        b'{"keys":[7]}',
    ],
)
def test_document_that_is_no_list_of_keys_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        keep_keys(source, CONTEXT)
    with pytest.raises(Invalid):
        keep_attestations(source, CONTEXT)


NOW = 1_800_000_000_000
DIST = {"tarball": "https://files.example/x.tgz", "shasum": "ab" * 20, "signatures": [{"keyid": "theirs", "sig": "s"}]}


def release(version: str = "1.0.0", **fields: Any) -> Release:
    manifest = {"name": "x", "version": version, "dist": DIST, **fields}
    source = json.dumps({"name": "x", "versions": {version: manifest}}).encode()
    (entry,) = normalise(source, Context("x", "https://registry.example/x")).entries
    blob = BlobInfo(sha256=hashlib.sha256(version.encode()).hexdigest(), size=10, locator=version, digests={})
    return make_release("x", entry, entry.files[0], blob)


class Proxy:
    """A catalog in memory with the repository 1, to which releases of an upstream are added."""

    def __init__(self, *releases: Release) -> None:
        self.catalog = MemoryCatalog()
        add_repository(self.catalog, 1, format="npm")
        for each in releases:
            self.catalog.do(self._keep, each)

    def _keep(self, tx: Transaction, kept: Release) -> None:
        files = tuple(evolve(file, attrs={"upstream": {"route": "r"}}) for file in kept.files)
        repository = repositories.get_repository(tx, 1)
        publish_release(tx, repository, evolve(kept, files=files), admitted(repository), index_package, NOW)

    def tags(self) -> Any:
        package = self.catalog.peek(packages.find_package, 1, "x")
        assert package is not None
        return self.catalog.peek(tags.tagged_versions, package.id)

    def fragment(self, kind: str) -> bytes | None:
        found: bytes | None = self.catalog.peek(index_documents.find_single_fragment, 1, "x", kind)
        return found


def test_manifest_is_that_of_the_upstream() -> None:
    kept = release("1.0.0+build", description="d", attestations=1)
    assert (kept.version_key, kept.version_text) == ("1.0.0+build", "1.0.0+build")
    dist = {key: value for key, value in DIST.items() if key != "tarball"}
    assert kept.meta == {"name": "x", "version": "1.0.0+build", "description": "d", "attestations": 1, "dist": dist}
    assert [file.path for file in kept.files] == ["x/-/x-1.0.0+build.tgz"]


def test_large_manifest_is_kept_without_what_an_install_does_not_need() -> None:
    kept = release(description="d" * LARGEST_MANIFEST, dependencies={"a": "1"})
    assert set(kept.meta) == {"name", "version", "dependencies", "dist"}
    assert set(release(dependencies={"a": "1" * LARGEST_MANIFEST}).meta) == {"name", "version"}


def test_manifest_that_cannot_be_decoded_is_left_out() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    for odd in (deep, 10**400, 10**30):
        kept = release(odd=odd)
        assert {"name", "version"} <= set(kept.meta)
        json.dumps(kept.meta)


def test_kept_versions_are_found_and_have_no_fragments() -> None:
    proxy = Proxy(release("2.0.0-rc.1", description="new"), release("1.1.0", description="old"), release("1.0.0"))
    row = proxy.fragment(ROW)
    assert row is not None
    assert (read_row(row).version, read_row(row).description) == ("1.1.0", "old")
    assert proxy.fragment(LISTED) is not None
    assert [proxy.fragment(kind) for kind in (FULL, SHORT, TIME)] == [None, None, None]
    assert proxy.tags() == {"latest": "1.1.0"}


def test_removing_a_kept_version_moves_latest() -> None:
    proxy = Proxy(release("1.0.0"), release("1.1.0"))
    repository = proxy.catalog.peek(repositories.get_repository, 1)
    proxy.catalog.do(remove_files, repository, "x", "1.1.0", None, SYSTEM, index_package, False, NOW)
    assert proxy.tags() == {"latest": "1.0.0"}


def test_maintainers_are_those_of_the_upstream() -> None:
    assert release(maintainers=[{"name": "a", "email": "b"}, 7]).package_meta == {
        "maintainers": [{"name": "a", "email": "b"}]
    }
    assert release(maintainers="a").package_meta == {"maintainers": []}
