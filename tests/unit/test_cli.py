from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pkgrepo import __version__, build, cli
from pkgrepo.client.groups import brief
from pkgrepo.commands import offline
from pkgrepo.config import read_config
from pkgrepo.storage.catalog.engine.schema import load_schema


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A working folder and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("PKGREPO_"):
            monkeypatch.delenv(name)


def run(*arguments: str, **variables: str):
    return CliRunner().invoke(cli.main, arguments, env=variables)


def test_names_of_commands_need_neither_settings_nor_twisted():
    program = "import sys, pkgrepo.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pkgrepo.client.groups" in done.stdout.split()
    assert not {"pkgrepo.config", "twisted", "attrs"} & set(done.stdout.split())


def test_the_help_has_each_command_on_one_line_of_its_section():
    shown = run("--help", COLUMNS="80").stdout
    assert [name for name in cli.COMMANDS if not re.search(rf"^  {name} +\S", shown, re.MULTILINE)] == []
    titles = re.findall(r"^(\S[^:]*):$", shown, re.MULTILINE)
    assert titles == ["Options", *cli.SECTIONS.values()]
    assert "..." not in shown.partition("Commands on")[2].partition("Options:")[2].replace("[ARGS]...", "")
    assert max(map(len, shown.splitlines())) < 80


def test_a_command_that_is_not_known_fails_with_one_that_looks_like_it():
    for given, near in (("repository", "repo"), ("pakage", "package"), ("rehear", "rehearse")):
        done = run(given)
        assert (done.exit_code, f"No such command '{given}'. Did you mean {near}?" in done.stderr) == (2, True)
    assert "Did you mean list?" in run("repo", "lst").stderr
    assert run("zzz").stderr.endswith("No such command 'zzz'.\n")


def test_a_long_sentence_ends_before_a_clause_that_does_not_fit():
    assert brief("Publish files in a repository, of any format", 40) == "Publish files in a repository"
    assert brief("A, and a long sentence without a clause", 25) == "A, and a long..."
    assert brief("Short", 5) == "Short"


def test_a_deletion_asks_for_what_was_named():
    for arguments, asked in ((("a", "1.0"), "Delete a 1.0 from main/py?"), (("a==1.0",), "Delete a 1.0 from main/py?")):
        assert asked in run("package", "delete", "main/py", *arguments).stderr
    assert "Delete a from main/py, all of it?" in run("package", "delete", "main/py", "a").stderr


def test_init_writes_a_file_once(tmp_path):
    assert run("init").exit_code == 0
    assert read_config(tmp_path / "pkgrepo.toml").origins == {}
    again = run("init")
    assert again.exit_code == 5
    assert "is there already" in again.stderr


def test_a_valid_configuration_is_said_to_be_valid():
    assert run("check-config").stdout == "the configuration is valid\n"


def test_init_prints_the_units_and_writes_nothing(tmp_path):
    result = run("init", "--systemd")
    assert result.exit_code == 0
    for section in ("[Service]", "[Socket]", "# /etc/systemd/system/pkgrepo.socket\n"):
        assert section in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_init_writes_the_units_into_a_folder_once(tmp_path):
    (tmp_path / "units").mkdir()
    result = run("init", "--systemd", "units")
    assert result.stdout == "wrote units/pkgrepo.service\nwrote units/pkgrepo.socket\n"
    assert f"\nExecStart={sys.prefix}/bin/twistd " in (tmp_path / "units" / "pkgrepo.service").read_text()
    (tmp_path / "units" / "pkgrepo.service").unlink()
    again = run("init", "--systemd", "units")
    assert (again.exit_code, again.stderr) == (5, "pkgrepo: units/pkgrepo.socket is there already\n")
    assert not (tmp_path / "units" / "pkgrepo.service").exists()


def test_what_a_start_would_find_is_told_too():
    result = run("-s", "server.listen=tpc:1", "-s", 'bootstrap.repositories=[{name="a", format="b"}]', "check-config")
    assert result.exit_code == 2
    assert "there is nothing to listen at for 'tpc:1'" in result.stderr
    assert "there is no format 'b'" in result.stderr


def test_an_init_where_nothing_can_be_written_is_one_line():
    result = run("init", "nowhere/pkgrepo.toml")
    assert result.exit_code == 1
    assert result.stderr == "pkgrepo: nowhere/pkgrepo.toml cannot be used: No such file or directory\n"


def test_a_name_that_the_api_would_refuse_is_refused(tmp_path):
    result = run("-s", "data.dir=data", "admin", "create", "no/name", "--generate")
    assert result.exit_code == 2
    assert "a user name has 3 to 32 letters" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ("verify",),
        ("gc",),
        ("migrate",),
        ("admin", "reset-password", "admin", "--generate"),
    ],
)
def test_a_command_for_a_catalog_makes_none(tmp_path, command):
    result = run("-s", "data.dir=elsewhere", *command)
    assert result.exit_code == 3
    assert result.stderr == (
        f"pkgrepo: there is no catalog at {tmp_path}/elsewhere/pkgrepo.db; data.dir is {tmp_path}/elsewhere\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_reindex_tells_where_it_looks_and_makes_nothing_where_nothing_is(tmp_path):
    result = run("-s", "data.dir=data", "reindex", "--storage", f"other={tmp_path}/other")
    assert result.exit_code == 3
    assert f"looking for storage main at {tmp_path}/data/storages/main\n" in result.stderr
    assert f"looking for storage other at {tmp_path}/other\n" in result.stderr
    assert "there is no storage and no catalog" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("verify",), ("gc",), ("reindex",), ("migrate",), ("admin", "create", "root", "--generate")]
)
def test_a_file_in_place_of_the_data_folder_is_one_line(tmp_path, command):
    (tmp_path / "file").touch()
    for place, sentence in (("file", "is no folder"), ("file/below", "cannot be used: Not a directory")):
        result = run("-s", f"data.dir={place}", *command)
        assert result.exit_code in (1, 2)
        assert sentence in result.stderr.splitlines()[-1]
        assert isinstance(result.exception, SystemExit)


def test_every_problem_of_a_configuration_is_told_and_ends_in_2():
    result = run("--set", "server.listn=x", "check-config", PKGREPO_LOG__LEVEL="loud")
    assert result.exit_code == 2
    assert "command line: server.listn is not a setting; did you mean server.listen?" in result.stderr
    assert "log.level: must be" in result.stderr


def test_explaining_shows_values_with_origins_and_no_secret(tmp_path):
    (tmp_path / "a.toml").write_text('[log]\nlevel = "warn"\n')
    result = run(
        "-c", "a.toml", "-s", "data.dir=x", "check-config", "--explain", PKGREPO_ADMIN_PASSWORD="s3cret-s3cret"
    )
    lines = result.stdout.splitlines()
    assert 'log.level = "warn"  # a.toml' in lines
    assert f'data.dir = "{tmp_path}/x"  # command line' in lines
    assert 'server.max_upload = "10GiB"  # default' in lines
    assert "bootstrap.admin.password = ***  # environment PKGREPO_ADMIN_PASSWORD" in lines
    assert "s3cret" not in result.stdout


def test_an_assignment_without_a_value_is_wrong_usage():
    result = run("-s", "data.dir", "check-config")
    assert result.exit_code == 2
    assert "--set takes KEY=VALUE" in result.stderr


def test_serving_becomes_twistd_with_the_same_settings(monkeypatch):
    called = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: called.append(arguments))
    assert run("-c", "a.toml", "-s", "data.dir=x", "serve", "--workers", "1").exit_code == 0
    (arguments,) = called
    assert arguments[3:] == [
        "--nodaemon", "--pidfile=", "pkgrepo", "--config=a.toml", "--set=data.dir=x", "--workers", "1",
    ]  # fmt: skip


def test_another_users_folder_is_not_worked_in(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    (tmp_path / "data").mkdir()
    with pytest.raises(SystemExit) as ended:
        offline.check_owner(tmp_path / "data")
    assert ended.value.code == 4
    offline.check_owner(tmp_path / "not-yet")


def test_the_version_has_the_schema_and_what_is_installed():
    found = json.loads(run("version", "--json").stdout)
    assert found["version"] == __version__
    assert found["schema"] == load_schema().version
    assert found["commit"] is None or re.fullmatch(r"[0-9a-f]{40}(-changed)?", found["commit"])
    assert {"twisted", "klein", "pyopenssl", "attrs"} <= found["dependencies"].keys()  # pyopenssl by the extra tls
    assert not {"pkgrepo", "pytest", "ruff"} & found["dependencies"].keys()
    assert f"pkgrepo {__version__} (commit " in run("version").stdout


def test_the_commit_of_a_release_is_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_FOLDER", tmp_path / "pkgrepo")
    (tmp_path / "pkgrepo").mkdir()
    assert build.commit.__wrapped__() == ""
    (tmp_path / ".git").mkdir()  # of no use to git
    assert build.commit.__wrapped__() == ""
    (tmp_path / "pkgrepo" / build.COMMIT_FILE).write_text("a" * 40 + "\n")
    assert build.commit.__wrapped__() == "a" * 40


def test_an_import_without_a_configuration_says_what_it_needs(tmp_path):
    (tmp_path / "wheels").mkdir()
    result = run("import", "python", "wheels", "--into", "main/py")
    assert result.exit_code == 3
    assert result.stderr == (
        f"pkgrepo: there is no catalog at {tmp_path}/data/pkgrepo.db; data.dir is {tmp_path}/data. This command reads "
        "a folder into the data of a server on this machine, whose configuration it needs: pkgrepo --config FILE "
        "import ... --into main/py. With --on-server the server that you have logged in to reads it, if "
        "imports.folders lists where it is. Files are sent to it by: pkgrepo upload main/py FILES\n"
    )
    assert not (tmp_path / "data").exists()
    given = tmp_path / "pkgrepo.toml"
    given.write_text(f'[data]\ndir = "{tmp_path}/elsewhere"\n')
    result = run("--config", str(given), "import", "python", "wheels", "--into", "main/py")
    assert result.stderr.endswith(f"data.dir is {tmp_path}/elsewhere\n")
