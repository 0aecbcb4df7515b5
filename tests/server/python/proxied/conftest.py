"""A server with proxies of an index that the tests fill, and virtual repositories."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.server import fresh

JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture(scope="package")
def upstream() -> Iterator[PythonUpstream]:
    """An index, whose projects each test adds under names of its own."""
    with PythonUpstream() as index:
        yield index


@pytest.fixture(scope="package")
def old_upstream() -> Iterator[PythonUpstream]:
    """An index without JSON and without digests."""
    with PythonUpstream(json=False, digests=False) as index:
        yield index


@pytest.fixture(scope="package")
def format_server(
    upstream: PythonUpstream, old_upstream: PythonUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server with a hosted repository, proxies of the indexes, and virtual repositories."""
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
        (
            hosted("python", "own"),
            proxy("python", "mirror", upstream.simple),
            proxy("python", "short", upstream.url, cache_ttl="0"),
            proxy("python", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }"),
            virtual("python", "around-keeping", "main/keeping"),
            proxy("python", "lonely", upstream.url, cache_ttl="0", cache="{ negative_ttl = 0 }"),
            proxy("python", "old", old_upstream.url),
            proxy("python", "old-short", old_upstream.url, cache_ttl="0"),
            proxy("python", "aged", upstream.url, policy="{ minimum_release_age = 7 }"),
            virtual("python", "all", "main/own", "main/mirror", publish_to="main/own"),
            virtual("python", "readable", "main/mirror", "main/own"),
            virtual("python", "anything", "main/own", "main/short"),
        )
    )
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def at(
    repository: Callable[[str], HttpClient], upstream: PythonUpstream, old_upstream: PythonUpstream
) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(upstream, old_upstream):
        yield repository


@pytest.fixture
def mirror(at: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the proxy of the index."""
    return at("mirror")


@pytest.fixture
def publish(at: Callable[[str], HttpClient]) -> Callable[..., tuple[str, bytes]]:
    """Publish a wheel with options of ``make_wheel``. Returns its name and bytes."""

    def put(
        project: str, version: str = "1.0", *, where: HttpClient | None = None, **options: Any
    ) -> tuple[str, bytes]:
        filename, data = make_wheel(project, version, **options)
        reply = (where or at("own")).put(f"/{project}/{version}/{filename}", data)
        assert reply.status == 201, reply
        return filename, data

    return put


@pytest.fixture
def files(at: Callable[[str], HttpClient]) -> Callable[..., dict[str, dict[str, Any]]]:
    """Return the files on a project's page by their names: ``files(project, where=...)``."""

    def read(project: str, where: HttpClient | None = None) -> dict[str, dict[str, Any]]:
        reply = (where or at("mirror")).get(f"/simple/{project}/", Accept=JSON)
        assert reply.status == 200, reply
        return {file["filename"]: file for file in reply.json["files"]}

    return read


@pytest.fixture
def keep() -> Callable[[HttpClient, str], None]:
    """Get a file of a repository until it is kept: then it has a time."""

    def get(where: HttpClient, path: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while "last-modified" not in (reply := where.get(path)).headers:
            assert reply.status == 200, reply
            assert time.monotonic() < deadline, "it was not kept"

    return get
