"""
Clients that hold new versions back by themselves, through a proxy and through a virtual repository.

Each has two versions to choose from: one that was published in 2024, and one that is minutes old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.client_programs import client
from tests.support.configurations import proxy, virtual
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PythonBench, PythonIndex
from tests.support.server_process import ServerProcess
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

NOW = datetime.now(UTC) - timedelta(minutes=10)
NEW = f"{NOW:%Y-%m-%dT%H:%M:%S}.000Z"
WEEK_AGO = f"{NOW - timedelta(days=7):%Y-%m-%dT%H:%M:%SZ}"
KINDS = ("mirror", "all")
MINUTES, SECONDS = 7 * 24 * 60, 7 * 24 * 3600


@pytest.fixture(scope="module")
def upstreams() -> Iterator[tuple[NpmUpstream, PythonUpstream]]:
    """Registries with one old and one new version."""
    with NpmUpstream() as npm, PythonUpstream() as python:
        for version, published in (("1.0.0", "2024-01-01T00:00:00.000Z"), ("1.1.0", NEW)):
            npm.add("aged", version, published=published)
            python.add("aged", version, published=published)
        yield npm, python


@pytest.fixture(scope="module")
def configuration(upstreams: tuple[NpmUpstream, PythonUpstream]) -> str:
    npm, python = upstreams
    sections = [
        proxy("npm", "npm-mirror", npm.url),
        virtual("npm", "npm-all", "main/npm-mirror"),
        proxy("python", "python-mirror", python.url),
        virtual("python", "python-all", "main/python-mirror"),
    ]
    return "\n".join(['proxy.allow_private = ["127.0.0.1"]', *sections])


@pytest.fixture(params=KINDS)
def node(request: pytest.FixtureRequest, server: ServerProcess, tmp_path: Path) -> NodeBench:
    return NodeBench(tmp_path, Registry(server.url, f"main/npm-{request.param}"), None)


NODE: dict[str, Callable[[NodeBench, Path], object]] = {
    "npm-11": lambda bench, place: bench.run("npm-11", "install", "aged", "--min-release-age=7", cwd=place),
    "npm-12": lambda bench, place: bench.run("npm-12", "install", "aged", "--min-release-age=7", cwd=place),
    "npm-10": lambda bench, place: bench.run("npm-10", "install", "aged", f"--before={WEEK_AGO}", cwd=place),
    "pnpm": lambda bench, place: bench.run("pnpm", "add", "aged", f"--config.minimumReleaseAge={MINUTES}", cwd=place),
    "pnpm-12": lambda bench, place: bench.run(
        "pnpm-12", "add", "aged", f"--config.minimumReleaseAge={MINUTES}", cwd=place
    ),
    "yarn-4": lambda bench, place: bench.run(
        "yarn-4", "add", "aged", cwd=place, YARN_NPM_MINIMAL_AGE_GATE=str(MINUTES)
    ),
    "bun": lambda bench, place: bench.run("bun", "add", "aged", f"--minimum-release-age={SECONDS}", cwd=place),
    "deno": lambda bench, place: bench.run("deno", "add", "npm:aged", f"--min-dep-age={MINUTES}", cwd=place),
}

# These hold back what is younger than a day, unless they are told otherwise.
FREE: dict[str, Callable[[NodeBench, Path], object]] = {
    "pnpm-12": lambda bench, place: bench.run("pnpm-12", "add", "aged", "--config.minimumReleaseAge=0", cwd=place),
    "deno": lambda bench, place: bench.run("deno", "add", "npm:aged", "--min-dep-age=0", cwd=place),
}


@pytest.mark.shows("cooldown")
@pytest.mark.parametrize("program", NODE)
def test_a_client_of_node_takes_the_version_that_is_old_enough(node: NodeBench, program: str) -> None:
    place = node.project(f"held-{program}")
    NODE[program](node, place)
    assert node.required(place, "aged") == "aged@1.0.0"
    free = node.project(f"free-{program}")
    if program in FREE:
        FREE[program](node, free)
    else:
        node.install(program, free, "aged")
    assert node.required(free, "aged") == "aged@1.1.0"


@pytest.mark.shows("cooldown", by=("uv", "pip"))
@pytest.mark.parametrize("kind", KINDS)
def test_uv_and_pip_take_the_version_that_is_old_enough(server: ServerProcess, tmp_path: Path, kind: str) -> None:
    bench, index = PythonBench(tmp_path), PythonIndex(server.url, f"main/python-{kind}")
    wanted = tmp_path / "in.txt"
    wanted.write_text("aged\n")
    compiled = [client("uv"), "pip", "compile", "--index-url", index.simple, wanted]
    assert "aged==1.0.0" in bench.run(*compiled, "--exclude-newer", "7 days")
    assert "aged==1.1.0" in bench.run(*compiled)
    download = ["download", "--no-deps", "-d", tmp_path / "got", "-i", index.simple, "aged"]
    assert "aged-1.0.0" in bench.pip(bench.venv(), *download, "--uploaded-prior-to", "P7D")
    assert "aged-1.1.0" in bench.pip(bench.venv(), *download)
