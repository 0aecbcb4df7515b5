"""The synthetic packages are what npm would have made of them."""

from __future__ import annotations

import base64
import hashlib
import json
import os

from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.publish.envelope import read_publication
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from pkgrepo.formats.npm.publish.tarball import inspect_tarball
from tests.bench.packages.tarballs import NodePackage, versions


def test_a_document_publishes_the_tarball_that_belongs_to_it() -> None:
    package = NodePackage("bench-a", "1.0.1", 20_000)
    scanner = PublishScanner()
    received = b"".join(each for each in scanner.feed(package.document("http://h")) if isinstance(each, bytes))
    publication = read_publication(scanner.finish(), "bench-a")
    assert received == package.tarball()
    assert (publication.version.text, publication.filename) == ("1.0.1", "bench-a-1.0.1.tgz")
    digest = base64.b64encode(hashlib.sha512(received).digest()).decode()
    assert publication.manifest["dist"]["integrity"] == f"sha512-{digest}"


def test_a_tarball_holds_the_manifest_that_is_published() -> None:
    package = NodePackage("bench-a", "1.0.1")
    descriptor = os.memfd_create("tarball")
    try:
        os.write(descriptor, package.tarball())
        packed = inspect_tarball(descriptor, package.filename, package.name, semver.parse_version(package.version))
    finally:
        os.close(descriptor)
    assert packed.manifest == package.manifest
    assert (
        json.loads(package.document("http://h"))["versions"]["1.0.1"]["dependencies"]
        == package.manifest["dependencies"]
    )


def test_versions_go_up_and_go_on_where_others_ended() -> None:
    texts = [each.version for each in [*versions("bench-a", 150), *versions("bench-a", 150, start=150)]]
    assert texts[:2] == ["1.0.0", "1.0.1"]
    keys = [semver.parse_version(text).sort for text in texts]
    assert keys == sorted(set(keys))
