"""One server process for all tests of the npm format's HTTP interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.configurations import PRIVATE, config, hosted, tokens
from tests.support.container_clients import ok
from tests.support.http_client import HttpClient, Reply
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running

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
def npm_tokens() -> dict[str, str]:
    """The server's tokens by name."""
    return {name: make_token(TokenKind.CI) for name in TOKENS}


@pytest.fixture(scope="session")
def npm_server(tmp_path_factory: pytest.TempPathFactory, npm_tokens: dict[str, str]) -> Iterator[ServerProcess]:
    """A running server with the repositories and tokens above, an advisory, and a user without permissions."""
    folder = tmp_path_factory.mktemp("npm_server")
    (folder / "osv").mkdir()
    (folder / "osv" / "one.json").write_text(json.dumps(ADVISORY))
    head = f"""
server.max_upload = {MAX_UPLOAD}
server.trusted_proxies = ["127.0.0.1"]
limits.login_failures = 1000
npm.advisories = "osv"
"""
    with running(folder, head + hosted("npm", **REPOSITORIES) + tokens(USER, npm_tokens, TOKENS)) as process:
        bob = {"username": BOB[0], "password": BOB[1], "email": "bob@example.org"}
        ok(HttpClient(f"{process.url}/api", (USER, PASSWORD)).post_json("/users", bob))
        yield process


@pytest.fixture
def registry(npm_server: ServerProcess) -> Callable[[str], HttpClient]:
    """Return a client of a repository by name, with the admin's credentials."""
    return lambda name: HttpClient(f"{npm_server.url}/repositories/main/{name}", (USER, PASSWORD))


@pytest.fixture
def npm(registry: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the public repository, with the admin's credentials."""
    return registry("npm")


@pytest.fixture
def as_token(registry: Callable[[str], HttpClient], npm_tokens: dict[str, str]) -> Callable[..., HttpClient]:
    """Return a client of a repository that sends a token: ``as_token(token, repository)``."""
    return lambda token, name="npm": registry(name).as_user("__token__", npm_tokens[token])


@pytest.fixture
def publish(npm: HttpClient) -> Callable[..., Reply]:
    """Publish a small package: ``publish(name, version, where=..., **options of make_publish)``."""

    def put(name: str, version: str = "1.0.0", *, where: HttpClient = npm, **options: Any) -> Reply:
        reply = where.put(f"/{name.replace('/', '%2f')}", make_publish(name, version, **options))
        assert reply.status == 201, reply
        return reply

    return put
