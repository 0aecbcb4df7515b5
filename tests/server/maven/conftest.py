"""One server process for all tests of the Maven format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_server import new_tokens, serving
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD
from tests.support.server_process import ServerProcess

MAX_UPLOAD = 2 * 1024 * 1024  # bytes

REPOSITORIES = {
    "mvn": "",
    "private": PRIVATE,
    "fixed": config(push_rules="allow_overwrite = false"),
    "releases": config(push_rules='push_policy = "RELEASES"'),
    "snapshots": config(push_rules='push_policy = "SNAPSHOTS"'),
    "unyankable": config(push_rules="yanking_allowed = false"),
    "tokens": config(push_rules="must_use_auth_token_for_push = true"),
    "members": config(push_rules="must_be_project_member = true"),
    "claims": config(push_rules="must_be_project_member = true, auto_create_projects = true"),
    "bundles": config(push_rules="require_service_deploy = true"),
    "signed": config(deploy="signatures = true, sources = true"),
    "bare": "",
}

# By name: repositories, actions, packages.
TOKENS = {
    "all": ("main/*", ["read", "write", "overwrite", "delete"], []),
    "reader": ("main/*", ["read"], []),
    "writer": ("main/*", ["read", "write"], ["com.team:*", "com.team"]),
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
    with serving(folder, "maven", REPOSITORIES, TOKENS, token_texts, max_upload=MAX_UPLOAD) as process:
        yield process


@pytest.fixture
def mvn(repository: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the public repository, with the admin's credentials."""
    return repository("mvn")


@pytest.fixture
def as_token(repository: Callable[[str], HttpClient], token_texts: dict[str, str]) -> Callable[..., HttpClient]:
    """Return a client of a repository that sends a token: ``as_token(token, repository)``."""
    return lambda token, name="mvn": repository(name).as_user("anybody", token_texts[token])


@pytest.fixture
def new_user(api: HttpClient) -> Callable[..., tuple[str, str]]:
    """Add a user who has these actions in repositories of these names. Returns the credentials."""

    def add(name: str, **grants: list[str]) -> tuple[str, str]:
        reply = api.post_json("/users", {"username": name, "password": PASSWORD})
        assert reply.status == 201, reply
        wanted = [{"repository": f"main/{where}", "actions": actions} for where, actions in grants.items()]
        reply = api.post_json(f"/users/{name}/permissions", {"repositories": wanted}, "PUT")
        assert reply.status == 200, reply
        return name, PASSWORD

    return add
