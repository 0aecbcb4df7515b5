"""One server process for all tests of the Python format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_server import new_tokens, serving
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess

MAX_UPLOAD = 2 * 1024 * 1024  # bytes

REPOSITORIES = {
    "py": "",
    "fresh": "",
    "turned": "",
    "dated": "",
    "private": PRIVATE,
    "hidden": 'visibility = "hidden"',
    "guarded": config(auth="enabled = true"),
    "overwritable": config(policy="allow_overwrite = true"),
    "reusable": config(policy="reuse_deleted_names = true"),
    "strict": config(policy="strict_filenames = true"),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "writer": ("main/py", ["read", "write"], ["team-*"]),
    "elsewhere": ("main/private", ["read", "write"], []),
}


@pytest.fixture(scope="session")
def token_texts() -> dict[str, str]:
    """The server's tokens by name."""
    return new_tokens(TOKENS)


@pytest.fixture(scope="session")
def format_server(tmp_path_factory: pytest.TempPathFactory, token_texts: dict[str, str]) -> Iterator[ServerProcess]:
    """A running server with the repositories and tokens above."""
    folder = tmp_path_factory.mktemp("format_server")
    with serving(folder, "python", REPOSITORIES, TOKENS, token_texts, max_upload=MAX_UPLOAD) as process:
        yield process


@pytest.fixture
def py(repository: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the public repository, with the admin's credentials."""
    return repository("py")


@pytest.fixture
def as_token(repository: Callable[[str], HttpClient], token_texts: dict[str, str]) -> Callable[..., HttpClient]:
    """Return a client of a repository that sends a token: ``as_token(token, repository)``."""
    return lambda token, name="py": repository(name).as_user("__token__", token_texts[token])


@pytest.fixture
def publish(py: HttpClient) -> Callable[..., tuple[str, bytes]]:
    """Publish a wheel, or the file that ``make`` returns. Returns its name and bytes."""

    def put(
        project: str,
        version: str,
        where: HttpClient = py,
        make: Callable[..., tuple[str, bytes]] = make_wheel,
        **options: Any,
    ) -> tuple[str, bytes]:
        filename, data = make(project, version, **options)
        reply = where.put(f"/{quote(project)}/{quote(version)}/{quote(filename)}", data)
        assert reply.status in (200, 201), reply
        return filename, data

    return put
