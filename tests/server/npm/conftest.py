"""One server process for all tests of the npm format's HTTP interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.container_clients import ok
from tests.support.format_server import new_tokens, serving
from tests.support.http_client import HttpClient, Reply
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

MAX_UPLOAD = 2 * 1024 * 1024  # bytes
BOB = ("bob", "bob keeps bees at home")

REPOSITORIES = {
    "npm": "",
    "search": "",
    "private": PRIVATE,
    "reusable": config(policy="reuse_deleted_names = true"),
    "careful": config(policy='manifest_mismatch = "refuse"'),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "writer": ("main/npm", ["read", "write"], []),
    "scoped": ("main/npm", ["read", "write"], ["@team/*"]),
    "scoped in private": ("main/private", ["read"], ["@team/*"]),
    "elsewhere": ("main/search", ["read", "write"], []),
}

ADVISORY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "modified": "2026-01-02T00:00:00Z",
    "published": "2026-01-01T00:00:00Z",
    "summary": "It bites",
    "details": "It bites at night.",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "biter"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "1.0.0"}, {"fixed": "1.2.0"}]}],
        }
    ],
    "database_specific": {"severity": "HIGH", "cwe_ids": ["CWE-1"]},
}


@pytest.fixture(scope="session")
def token_texts() -> dict[str, str]:
    """The server's tokens by name."""
    return new_tokens(TOKENS)


@pytest.fixture(scope="session")
def format_server(tmp_path_factory: pytest.TempPathFactory, token_texts: dict[str, str]) -> Iterator[ServerProcess]:
    """A running server with the repositories and tokens above, an advisory, and a user without permissions."""
    folder = tmp_path_factory.mktemp("format_server")
    (folder / "osv").mkdir()
    (folder / "osv" / "one.json").write_text(json.dumps(ADVISORY))
    lines = 'server.trusted_proxies = ["127.0.0.1"]\nnpm.advisories = "osv"\n'
    with serving(folder, "npm", REPOSITORIES, TOKENS, token_texts, max_upload=MAX_UPLOAD, lines=lines) as process:
        bob = {"username": BOB[0], "password": BOB[1], "email": "bob@example.org"}
        ok(HttpClient(f"{process.url}/api", (USER, PASSWORD)).post_json("/users", bob))
        yield process


@pytest.fixture
def npm(repository: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the public repository, with the admin's credentials."""
    return repository("npm")


@pytest.fixture
def as_token(repository: Callable[[str], HttpClient], token_texts: dict[str, str]) -> Callable[..., HttpClient]:
    """Return a client of a repository that sends a token: ``as_token(token, repository)``."""
    return lambda token, name="npm": repository(name).as_user("__token__", token_texts[token])


@pytest.fixture
def publish(npm: HttpClient) -> Callable[..., Reply]:
    """Publish a small package: ``publish(name, version, where=..., **options of make_publish)``."""

    def put(name: str, version: str = "1.0.0", *, where: HttpClient = npm, **options: Any) -> Reply:
        reply = where.put(f"/{name.replace('/', '%2f')}", make_publish(name, version, **options))
        assert reply.status == 201, reply
        return reply

    return put
