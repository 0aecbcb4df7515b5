"""``pkgrepo setup --write``, ``--undo`` and ``--check``, with programs that only have names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pkgrepo.client.credentials import lending
from tests.support.command_line import Program
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.server
REPOSITORY = "main/node"


@pytest.fixture
def user(command_server: ServerProcess, tmp_path: Path) -> Program:
    """The program of a new user who has logged in, on a machine with npm that says yes to all."""
    program = Program(tmp_path, command_server.url)
    program.log_in()
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "npm").write_text('#!/bin/sh\necho "npm $*"\n')
    (tools / "npm").chmod(0o755)
    return program


@pytest.fixture
def path(user: Program) -> dict[str, str]:
    """The variables of a machine with nothing but that npm on its path."""
    return {"PATH": str(user.folder / "bin")}


def tokens(user: Program) -> list[str]:
    return [each["name"] for each in user.json("token", "list") if "setup" in each["name"]]


def test_texts_are_printed_of_the_tools_that_are_named(user: Program, path: dict[str, str]) -> None:
    every = {each["client"] for each in user.json("setup", REPOSITORY)}
    assert {"npm", "yarn"} < every
    assert {each["client"] for each in user.json("setup", REPOSITORY, "--tool", "npm,yarn", **path)} == {"npm", "yarn"}
    assert "ppi cannot be set up for this repository; these can: npm" in user.refused(
        2, "setup", REPOSITORY, "--tool", "ppi"
    )


def test_what_changes_is_shown_and_asked_and_then_written(user: Program, path: dict[str, str]) -> None:
    npmrc = user.folder / ".npmrc"
    npmrc.write_text("fund=false\n")
    shown = user("setup", REPOSITORY, "--write", "--dry-run", **path)
    assert "+registry=" in shown
    assert "+//" in shown
    refused = user.run("setup", REPOSITORY, "--write", told="n\n", **path)
    assert (refused.returncode, npmrc.read_text()) == (1, "fund=false\n")
    before = tokens(user)
    done = user.run("setup", REPOSITORY, "--write", told="y\n", **path)
    assert done.returncode == 0, done
    assert "Change these files?" in done.stderr
    assert len(tokens(user)) == len(before) + 1
    assert "_authToken=pkgr_" in npmrc.read_text()
    assert "pkgr_" not in done.stdout + done.stderr
    assert "nothing to change" in user("setup", REPOSITORY, "--write", "--yes", **path)
    user("setup", REPOSITORY, "--undo", "--yes", **path)
    assert npmrc.read_text() == "fund=false\n"
    assert tokens(user) == before
    assert "does not exist" in user.refused(3, "setup", REPOSITORY, "--undo", **path)


def test_a_token_that_was_revoked_is_replaced(user: Program, path: dict[str, str]) -> None:
    user("setup", REPOSITORY, "--write", "--yes", **path)
    state = user.folder / "config" / "pkgrepo" / "setup.json"
    [kept] = json.loads(state.read_text())["tokens"]
    user("token", "revoke", kept["id"], "--yes")
    assert "only the token changes" in user("setup", REPOSITORY, "--write", "--yes", **path)
    [fresh] = json.loads(state.read_text())["tokens"]
    assert fresh["id"] != kept["id"]
    assert fresh["text"] in (user.folder / ".npmrc").read_text()
    user("setup", REPOSITORY, "--undo", "--yes", **path)
    assert not (user.folder / ".npmrc").exists()


def test_without_a_login_no_token_is_made(stranger: Program) -> None:
    url = ("--url", stranger.url)
    user = ("setup", REPOSITORY, "--write", "--yes", "--tool", "npm", *url)
    stranger(*user)
    assert "_authToken" not in (stranger.folder / ".npmrc").read_text()
    stranger("setup", REPOSITORY, "--undo", "--yes", *url)
    told = stranger.refused(2, "setup", "main/images", "--write", "--tool", "docker", *url)
    assert "without a login there is nothing to set up for docker" in told
    assert not (stranger.folder / ".npmrc").exists()


def test_a_check_runs_the_program(user: Program, path: dict[str, str]) -> None:
    assert "npm: ok: npm whoami" in user("setup", REPOSITORY, "--check", **path)
    (user.folder / "bin" / "npm").write_text("#!/bin/sh\necho it is broken; exit 3\n")
    done = user.run("setup", REPOSITORY, "--check", **path)
    assert done.returncode == 1
    assert "npm: failed: npm whoami\n    it is broken" in done.stdout


def test_tools_that_do_not_fit_are_refused_with_those_that_do(user: Program, path: dict[str, str]) -> None:
    told = user.refused(2, "setup", REPOSITORY, "--write", "--tool", "pip", **path)
    assert "these can: npm, pnpm, yarn, bun" in told
    assert "no tool for this repository is on the PATH" in user.refused(2, "setup", "main/java", "--write", **path)
    assert "looks like @acme" in user.refused(2, "setup", REPOSITORY, "--write", "--scope", "acme", **path)
    assert "print texts" in user.refused(2, "setup", REPOSITORY, "--write", "--client", "npm", **path)


def test_a_file_that_cannot_be_changed_is_left_and_no_token_is_made(user: Program, path: dict[str, str]) -> None:
    before = tokens(user)
    (user.folder / ".npmrc").write_bytes(b"\xff")
    assert "not in UTF-8" in user.refused(2, "setup", REPOSITORY, "--write", "--yes", **path)
    assert tokens(user) == before


def test_a_record_for_programs(user: Program, path: dict[str, str]) -> None:
    done = user("setup", REPOSITORY, "--write", "--yes", "--json", **path)
    found = json.loads(done)
    assert found == [{"file": str(user.folder / ".npmrc"), "tools": ["npm"], "removed": False}]
    assert [each["removed"] for each in json.loads(user("setup", REPOSITORY, "--undo", "--yes", "--json", **path))]


def test_a_short_lived_token_is_made_for_programs_and_revoked_by_a_logout(user: Program) -> None:
    environ = {"PKGREPO_PROFILES": str(user.folder / "config" / "pkgrepo" / "profiles.json")}
    lent = lending.lend(user.url, environ)
    assert lent is not None
    again = lending.lend(user.url, environ)
    assert again is not None
    assert again.token == lent.token
    whoami = HttpClient(f"{user.url}/repositories/{REPOSITORY}", ("token", lent.token))
    assert whoami.get("/-/whoami").json == {"username": "admin"}
    assert HttpClient(f"{user.url}/api", ("token", lent.token)).get("/users").status == 403
    user("logout")
    assert lending.read_lent(lending.lent_file(environ)) == {}
    assert whoami.get("/-/whoami").status == 401
