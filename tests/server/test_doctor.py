"""pkgrepo doctor on real data folders: what the catalog names is checked, and nothing is changed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.configurations import hosted, proxy
from tests.support.data_folder import DataFolder, environment_of, tree
from tests.support.forked_programs import run_pkgrepo
from tests.support.issuer import listening
from tests.support.upstreams.npm import NpmUpstream

pytestmark = [
    pytest.mark.server,
    pytest.mark.sqlite("changes the version of a file"),
    pytest.mark.folder("moves the folder of a storage"),
]


def run(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, str]]]:
    environ = environment_of(DataFolder(folder / "data"), PKGREPO_PROXY__ALLOW_PRIVATE='["127.0.0.1"]')
    done = run_pkgrepo("doctor", "--json", *arguments, environ=environ, folder=folder)
    assert done.stderr == ""
    return done, {each["subject"]: each for each in json.loads(done.stdout)}


def stored(folder: Path) -> dict[str, str | None]:
    """The files of the data folder, without those that SQLite makes to read."""
    return {name: each for name, each in tree(folder / "data").items() if not name.endswith(("-shm", "-wal"))}


def test_upstreams_storages_and_the_database_are_checked(run_twistd: Any, tmp_path: Path) -> None:
    with NpmUpstream() as upstream:
        upstream.serve("/-/ping", b"{}")
        text = proxy("npm", "good", upstream.url) + proxy("npm", "gone", "http://127.0.0.1:1") + hosted("python", "own")
        (tmp_path / "pkgrepo.toml").write_text(text)
        server = run_twistd("--config", "pkgrepo.toml")
        server.wait_ready()
        done, found = run(tmp_path)
        states = {name: each["state"] for name, each in found.items()}
        (good,) = (each for name, each in states.items() if name.startswith("main/good "))
        (gone,) = (each for name, each in states.items() if name.startswith("main/gone "))
        assert (good, gone) == ("ok", "warning"), found
        assert {states[each] for each in ("configuration", "database", "storage main", "names")} == {"ok"}
        assert found["database"]["sentence"].endswith("repositories: 3")  # without the companion of one
        problems = {name for name, each in states.items() if each == "problem"}
        assert done.returncode == bool(problems)
        assert problems <= {"database disk"}  # which this machine may have
        server.stop()
    before = stored(tmp_path)
    assert not any(name.startswith("main/") for name in run(tmp_path, "--offline")[1])
    assert stored(tmp_path) == before

    (tmp_path / "data" / "storages" / "main").rename(tmp_path / "elsewhere")
    done, found = run(tmp_path, "--offline")
    assert (done.returncode, found["storage main"]["state"]) == (1, "problem")
    assert found["storage main"]["advice"]

    database = tmp_path / "data" / "pkgrepo.db"
    connection = apsw.Connection(str(database))
    connection.pragma("wal_checkpoint(TRUNCATE)")
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'manifest_ref'").get
    size = connection.pragma("page_size")
    connection.close()
    sound = database.read_bytes()
    database.write_bytes(sound[: (page - 1) * size] + bytes([255]) * size + sound[page * size :])
    done, found = run(tmp_path, "--offline")
    assert (done.returncode, found["database"]["state"]) == (1, "problem")
    assert "is damaged: Tree" in found["database"]["sentence"]
    assert "restore a backup" in found["database"]["advice"]
    database.write_bytes(sound)

    connection = apsw.Connection(str(database))
    connection.pragma("user_version", 9999)
    connection.close()
    done, found = run(tmp_path, "--offline")
    assert (done.returncode, found["database"]["state"]) == (1, "problem")
    assert "written by a newer version (schema 9999" in found["database"]["sentence"]

    connection = apsw.Connection(str(database))
    connection.pragma("user_version", 64)
    connection.close()
    done, found = run(tmp_path, "--offline")
    assert (done.returncode, found["database"]["state"]) == (1, "problem")
    assert "before the first release (schema 64" in found["database"]["sentence"]
    assert "pkgrepo import pkgrepo" in found["database"]["advice"]


def test_lines_for_people_say_what_to_do(tmp_path: Path) -> None:
    environ = environment_of(DataFolder(tmp_path / "data"), PKGREPO_SERVER__LISTEN="tpc:1")
    done = run_pkgrepo("doctor", "--offline", environ=environ, folder=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("problem  configuration")
    assert lines[1].strip() == "-> see pkgrepo check-config --explain"
    assert not (tmp_path / "data").exists()


def test_a_folder_without_a_server_is_a_problem(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PKGREPO_")}
    done = run_pkgrepo("doctor", "--offline", environ=environ, folder=tmp_path)
    assert done.returncode == 1, done
    assert f"there is none: no settings, and no folder {tmp_path / 'data'}" in done.stdout
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "data").mkdir()
    assert run_pkgrepo("doctor", "--offline", environ=environ, folder=tmp_path).returncode == 0


def test_each_server_of_a_directory_is_asked(tmp_path: Path) -> None:
    urls = 'url = "ldap://127.0.0.1:1"\nmore_urls = ["ldaps://127.0.0.1:2"]'
    (tmp_path / "pkgrepo.toml").write_text(f'[auth.ldap.corp]\n{urls}\nbase_dn = "dc=corp"\n')
    environ = environment_of(DataFolder(tmp_path / "data"))
    done = run_pkgrepo("--config", "pkgrepo.toml", "doctor", "--json", environ=environ, folder=tmp_path)
    found = [each for each in json.loads(done.stdout) if each["subject"] == "directory corp"]
    assert [(each["state"], each["sentence"]) for each in found] == [
        ("problem", "it refuses connections (ldap://127.0.0.1:1)"),
        ("problem", "it refuses connections (ldaps://127.0.0.1:2)"),
    ], done
    assert "auth.ldap.corp" in found[0]["advice"]


def test_identity_providers_and_issuers_are_asked(tmp_path: Path) -> None:
    with listening() as issuer, listening() as other:
        issuer.metadata["scopes_supported"] = other.metadata["scopes_supported"] = ["openid", "profile", "email"]
        client = 'client_id = "us"\n'
        (tmp_path / "pkgrepo.toml").write_text(
            f'[auth.oidc.good]\nissuer = "{issuer.url}"\n{client}'
            f'[auth.oidc.scoped]\nissuer = "{other.url}"\n{client}scopes = ["openid", "groups"]\n'
            f'[auth.oidc.typo]\nissuer = "{issuer.url}/"\n{client}'
            '[auth.issuers.gone]\nissuer = "http://127.0.0.1:1"\naudience = "x"\n'
        )
        environ = environment_of(DataFolder(tmp_path / "data"))
        done = run_pkgrepo("--config", "pkgrepo.toml", "doctor", "--json", environ=environ, folder=tmp_path)
    found = {each["subject"]: each for each in json.loads(done.stdout)}
    assert found["provider good"]["state"] == "ok", done
    assert found["provider scoped"]["state"] == "warning"
    assert "it does not list what is asked for: groups" in found["provider scoped"]["sentence"]
    assert "names another issuer than the settings do" in found["provider typo"]["sentence"]
    assert "/.well-known/openid-configuration" in found["provider typo"]["advice"]
    assert found["issuer gone"]["sentence"] == "it refuses connections (http://127.0.0.1:1)"
