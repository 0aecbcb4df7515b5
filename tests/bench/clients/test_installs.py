"""The measured installs fetch whole trees, and detect errors and wrong files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.clients.installs import (
    install_gems,
    install_npm,
    install_python,
    pull_image,
    read_at_once,
    resolve_maven,
)
from tests.bench.clients.load import LoadFailed
from tests.bench.clients.registry import Registry
from tests.bench.packages.trees import tree
from tests.support.images import make_image
from tests.support.upstreams import faults
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream

TREE = tree("p", 12)


@pytest.fixture
def npm() -> Iterator[NpmUpstream]:
    with NpmUpstream() as upstream:
        for node in TREE:
            upstream.add(node.name, node.newest, dependencies=dict.fromkeys(node.needs, "^1.0.0"), pad=node.padding)
        yield upstream


@pytest.fixture
def python() -> Iterator[PythonUpstream]:
    with PythonUpstream() as upstream:
        for node in TREE:
            for version in node.versions:
                upstream.add(node.name, version, requires=node.needs)
        yield upstream


def test_the_first_package_of_a_tree_needs_all_others_once() -> None:
    assert sorted(name for node in TREE for name in node.needs) == sorted(node.name for node in TREE[1:])
    assert [len(node.versions) for node in TREE[:6]] == [40, 4, 4, 4, 4, 40]


def test_npm_fetches_every_document_and_tarball_once(npm: NpmUpstream) -> None:
    installed = install_npm(npm.url, "p-0", {"Cache-Control": "no-cache"})
    assert (installed.files, installed.failed) == (12, 0)
    assert sorted(each.path for each in npm.requests()) == sorted(
        [path for each in TREE for path in (npm.path(each.name), npm.tarball_path(each.name, each.newest))]
    )
    assert {each.fields["cache-control"] for each in npm.requests()} == {"no-cache"}
    assert npm.connections <= 15


def test_npm_counts_errors_and_refuses_other_bytes(npm: NpmUpstream) -> None:
    document, tarball = npm.path("p-4"), npm.tarball_path("p-11", TREE[11].newest)
    npm.misbehave(document, faults.failing(), repeat=True)
    assert install_npm(npm.url, "p-0").failed == 1
    npm.behave()
    npm.misbehave(tarball, faults.NO_ANSWER, faults.corrupted)
    assert install_npm(npm.url, "p-0").failed == 1
    with pytest.raises(LoadFailed, match="another digest"):
        install_npm(npm.url, "p-0")


def test_kept_connections_that_were_closed_are_replaced(npm: NpmUpstream) -> None:
    npm.misbehave(npm.path("p-0"), faults.DROPPED)
    assert install_npm(npm.url, "p-0").failed == 0


@pytest.mark.parametrize(("connections", "requests"), [(1, 36), (50, 36)])
def test_python_fetches_pages_metadata_and_newest_wheels(
    python: PythonUpstream, connections: int, requests: int
) -> None:
    installed = install_python(lambda project: f"{python.simple}{project}/", "p-0", connections)
    assert (installed.files, installed.failed, python.count()) == (12, 0, requests)
    assert python.connections <= connections
    assert python.count(python.file_path("p_0-1.39.0-py3-none-any.whl")) == 1


@pytest.mark.parametrize(("fields", "requests"), [({"X-Checksum-SHA1": "{}"}, 4), ({}, 8)])
def test_maven_fetches_poms_and_jars_and_the_checksums_that_no_field_announces(
    fields: dict[str, str], requests: int
) -> None:
    with MavenUpstream(fields=fields) as upstream:
        upstream.deploy("g", "a", "1", depends=["g:b:2"])
        jar = upstream.deploy("g", "b", "2")
        installed = resolve_maven(upstream.url, "g:a:1")
        assert (installed.files, installed.failed, len(upstream.requests())) == (2, 0, requests)
        upstream.serve(f"{jar}.sha1", Answer(body=b"0" * 40))
        upstream.serve(jar, Answer(body=b"other", fields={"X-Checksum-SHA1": "0" * 40} if fields else {}))
        with pytest.raises(LoadFailed, match="another digest"):
            resolve_maven(upstream.url, "g:a:1")


def test_an_image_comes_with_its_blobs() -> None:
    with ContainerUpstream() as upstream:
        image = make_image()
        upstream.push("app", image, "v1")
        installed = pull_image(Registry(upstream.url, "app"), "v1", {})
        assert (installed.files, installed.failed) == (2, 0)


def test_readers_get_whole_files_with_and_without_a_length(npm: NpmUpstream) -> None:
    body = bytes(3_000_000)
    npm.serve("/file", body)
    npm.misbehave("/file", Fault(), Fault(unframed=True))
    assert [(each.size, each.first_s <= each.seconds) for each in read_at_once(f"{npm.url}/file", 3)] == [
        (len(body), True)
    ] * 3
    with pytest.raises(LoadFailed, match="404"):
        read_at_once(f"{npm.url}/other", 2)


def test_bundler_reads_the_list_and_fetches_every_gem_once() -> None:
    with RubyUpstream() as upstream:
        for node in TREE:
            for version in node.versions:
                upstream.add(node.name, version, dependencies={each: [(">=", "1.0")] for each in node.needs})
        installed = install_gems(upstream.url, "p-0")
        assert (installed.files, installed.failed) == (12, 0)
        paths = [each.path for each in upstream.requests()]
    assert paths[0] == "/versions"
    gems = [path for node in TREE for path in (f"/info/{node.name}", f"/gems/{node.name}-{node.newest}.gem")]
    assert sorted(paths[1:]) == sorted(gems)
