"""Clients of Node work after ``pkgrepo setup --write`` as they are, and ``--undo`` takes everything back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.npm_clients import COMPILED
from tests.support.setup_bench import SetupBench

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
NewUser = Callable[..., SetupBench]
QUIET = {"NPM_CONFIG_UPDATE_NOTIFIER": "false", "YARN_ENABLE_TELEMETRY": "0", "YARN_ENABLE_GLOBAL_CACHE": "false"}
REPOSITORY = "main/node"
TOOLS = {
    "npm-9": ("npm", ("npm", "publish"), ("npm", "install")),
    "npm-11": ("npm", ("npm", "publish"), ("npm", "install")),
    "npm-12": ("npm", ("npm", "publish"), ("npm", "install")),
    "pnpm": ("pnpm", ("pnpm", "publish", "--no-git-checks"), ("pnpm", "add")),
    "pnpm-12": ("pnpm", ("pnpm", "publish", "--no-git-checks"), ("pnpm", "add")),
    "yarn-1": ("yarn", ("yarn", "publish", "--non-interactive"), ("yarn", "add")),
    "yarn-4": ("yarn", ("yarn", "npm", "publish"), ("yarn", "add")),
    "bun": ("bun", ("bun", "publish"), ("bun", "add")),
}


def package(bench: SetupBench, name: str) -> Path:
    manifest = {"name": name, "version": "1.0.0", "main": "index.js"}
    files = {"package.json": json.dumps(manifest), "index.js": "module.exports = 1;\n", "yarn.lock": ""}
    return bench.folder_of("package", files)


def project(bench: SetupBench) -> Path:
    return bench.folder_of("app", {"package.json": '{"name": "app", "version": "0.0.0"}', "yarn.lock": ""})


@pytest.mark.shows("setup")
@pytest.mark.parametrize("client", TOOLS)
def test_a_new_user_publishes_and_installs(new_user: NewUser, client: str) -> None:
    tool, publish, install = TOOLS[client]
    # what would make yarn wait for days, and nothing about registries
    settings = {"YARN_NPM_MINIMAL_AGE_GATE": "0", "YARN_ENABLE_IMMUTABLE_INSTALLS": "false"}
    bench = new_user(client, "npm", **QUIET, **settings, **(COMPILED if client in ("pnpm", "yarn-4") else {}))
    assert "_authToken=pkgr" not in bench.set_up(REPOSITORY, tool)
    place = package(bench, f"new-{client}")
    if client == "yarn-4":
        bench.run("yarn", "install", cwd=place)
    bench.run(*publish, cwd=place)
    app = project(bench)
    bench.run(*install, f"new-{client}", cwd=app)
    assert f"new-{client}" in json.loads((app / "package.json").read_text())["dependencies"]
    assert f"{tool}: ok: " in bench.check(REPOSITORY, tool)
    bench.undo(REPOSITORY)


@pytest.mark.parametrize("client", ["npm-11", "yarn-4"])
def test_a_scope_alone_comes_from_the_repository(new_user: NewUser, client: str) -> None:
    tool, publish, install = TOOLS[client]
    bench = new_user(client, "npm", **QUIET, **(COMPILED if client == "yarn-4" else {}))
    bench.set_up(REPOSITORY, tool, "--scope", "@acme")
    name = f"@acme/of-{client}"
    place = package(bench, name)
    if client == "yarn-4":
        bench.run("yarn", "install", cwd=place)
    bench.run(*publish, cwd=place)
    app = project(bench)
    bench.run(*install, name, cwd=app)
    assert name in json.loads((app / "package.json").read_text())["dependencies"]
    bench.undo(REPOSITORY)


def test_a_check_names_the_command_that_fails(new_user: NewUser) -> None:
    bench = new_user("npm-11", **QUIET)
    bench.set_up(REPOSITORY, "npm")
    path = bench.home / ".npmrc"
    path.write_text(path.read_text().replace("_authToken=", "_authToken=wrong"))
    assert "npm: failed: npm whoami" in bench.run("pkgrepo", "setup", REPOSITORY, "--check", "--tool", "npm", status=1)
    printed = bench.run("pkgrepo", "setup", REPOSITORY, "--undo", "--yes", status=1)
    assert "was changed since, and is left as it is" in printed
