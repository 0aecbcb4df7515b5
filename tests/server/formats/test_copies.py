"""Copies of repositories of every format: static twins, and bundles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forked_programs import run_pkgrepo
from tests.support.format_cases.case import Case
from tests.support.format_repositories import AUTH, World
from tests.support.http_client import HttpClient
from tests.support.imports import take
from tests.support.server_process import clean_environment

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def token(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a token that reads all repositories."""
    every = [{"repository": "*", "actions": ["read", "edit", "admin"]}]
    made = world.ok("POST", "/user/token", {"name": "copies", "scopes": ["system"], "repositories": every}, 201)
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(made["token"])
    return file


def run(world: World, token: Path, *arguments: str, status: int = 0) -> str:
    """The output of a command that talks to the server."""
    command = [*arguments, "--url", world.url, "--token-file", str(token)]
    done = run_pkgrepo(*command, environ=clean_environment(), folder=token.parent)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_twin_has_documents_and_files(world: World, token: Path, case: Case, tmp_path: Path) -> None:
    twin = tmp_path / "twin"
    run(world, token, "export", f"main/{case.format}-own", str(twin), "--base-url", "https://twin.example")
    contents = {each.read_bytes() for each in twin.rglob("*") if each.is_file()}
    own = world.at(f"{case.format}-own")
    assert {own.get(each).body for each in (case.older, *case.files)} <= contents
    assert any(case.shown in each for each in contents) == (not case.is_folder)
    assert "files are sound" in run_pkgrepo("twin", "verify", str(twin), environ=clean_environment()).stdout


def test_a_bundle_is_taken_in(world: World, token: Path, case: Case) -> None:
    bundle, name = world.imports / f"{case.format}.tar", f"{case.format}-unbundled"
    run(world, token, "bundle", "write", str(bundle), f"main/{case.format}-own")
    world.add(case.format, name, {"type": "Hosted"})
    source = [f"main/{case.format}-own"]
    taken = take(HttpClient(world.url, AUTH), "bundle", bundle, f"main/{name}", repositories=source)
    assert taken["left_out"] == []
    client, own = world.at(name), world.at(f"{case.format}-own")
    assert case.shown in client.get(case.documents[0]).body
    for path in (case.older, *case.files):
        assert client.get(path).body == own.get(path).body


def test_a_bundle_of_a_virtual_repository_or_of_nothing_is_not_written(
    world: World, token: Path, tmp_path: Path
) -> None:
    world.add("npm", "npm-without", {"type": "Hosted"})
    bundle = tmp_path / "first.tar"

    def write(*repositories: str, status: int = 0) -> str:
        return run(world, token, "bundle", "write", str(bundle), "--force", *repositories, status=status)

    for virtual in ("all", "around"):
        told = write("main/npm-own", f"main/npm-{virtual}", status=2)
        assert f"main/npm-{virtual} is virtual, and lists no packages: bundle its members" in told
    assert "no file of main/npm-without is listed for you" in write("main/npm-without", status=2)
    assert list(tmp_path.iterdir()) == []
    assert "main/npm-without: 0 files" in write("main/raw-own", "main/npm-without")
    written = bundle.read_bytes()
    write("main/npm-without", status=2)
    assert bundle.read_bytes() == written
    since = ["bundle", "write", str(tmp_path / "second.tar"), "main/raw-own", "--since", str(bundle)]
    assert "main/raw-own: 0 files" in run(world, token, *since)  # of which the last one has all
