"""Maven repositories for the build tools of the JVM, and folders to run them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.configurations import PRIVATE, config, hosted
from tests.support.maven_clients import ADMIN, MavenBench, MavenRepository
from tests.support.resident_java import stop_all
from tests.support.server_process import ServerProcess

OpenRepository = Callable[[str], MavenRepository]
MakeBench = Callable[..., MavenBench]


@pytest.fixture(scope="package", autouse=True)
def residents() -> Iterator[None]:
    """End the processes of Maven after the tests of this room, which share them."""
    yield
    stop_all()


@pytest.fixture(scope="module")
def configuration() -> str:
    """A repository for each rule, one without any, and a private one."""
    return hosted(
        "maven",
        "java",
        private=PRIVATE,
        releases=config(push_rules='push_policy = "RELEASES"'),
        snapshots=config(push_rules='push_policy = "SNAPSHOTS"'),
        stages=config(push_rules='push_policy = "STAGES"'),
        once=config(push_rules="allow_overwrite = false"),
        kept=config(push_rules="yanking_allowed = false"),
        tokens=config(push_rules="must_use_auth_token_for_push = true"),
        members=config(push_rules="must_be_project_member = true"),
        bundles=config(push_rules="require_service_deploy = true"),
        approving=config(push_rules="requires_approval = true"),
        approved="",
    )


@pytest.fixture
def open_repository(server: ServerProcess) -> OpenRepository:
    """Return a client of a repository by name."""
    return lambda name: MavenRepository(server.url, f"main/{name}")


@pytest.fixture
def repository(open_repository: OpenRepository) -> MavenRepository:
    """The public repository without rules."""
    return open_repository("java")


@pytest.fixture
def make_bench(tmp_path: Path, repository: MavenRepository) -> MakeBench:
    """Return a function that makes folders with empty local repositories; without a URL, for ``repository``."""
    made: list[MavenBench] = []

    def make(url: str = repository.url, auth: tuple[str, str] | None = ADMIN) -> MavenBench:
        made.append(MavenBench(tmp_path / f"bench-{len(made)}", url, auth))
        return made[-1]

    return make


@pytest.fixture
def bench(make_bench: MakeBench) -> MavenBench:
    """A folder for clients of ``repository``, with the admin's credentials."""
    return make_bench()
