"""The administrator's commands on a real data folder, with and without a server that runs on it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.support.data_folder import DataFolder, environment_of
from tests.support.forked_programs import run_pkgrepo
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

FIRST, SECOND = "a first long pass phrase", "a second long pass phrase"


@pytest.fixture
def pkgrepo(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
        return run_pkgrepo(
            *arguments, environ=environment_of(DataFolder(tmp_path / "data")), folder=tmp_path, told=told
        )

    return run


def login(url: str, user: str, password: str) -> int:
    return requests.get(url + "/api/user/me", auth=(user, password), timeout=TIMEOUT_S).status_code


def test_an_admin_made_before_the_first_start_is_the_one_that_serves(pkgrepo, run_twistd):
    made = pkgrepo("admin", "create", "root", "--password-file", "-", told=FIRST + "\n")
    assert (made.returncode, made.stdout) == (0, "administrator root was added\n"), made.stderr
    server = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": ""})
    assert login(server.wait_ready(), "root", FIRST) == 200
    assert "with the password" not in server.output


def test_a_password_is_reset_while_the_server_runs(pkgrepo, run_twistd):
    server = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": FIRST})
    url = server.wait_ready()
    assert login(url, "admin", FIRST) == 200
    done = pkgrepo("admin", "reset-password", "admin", "--password-file", "-", told=SECOND)
    assert done.returncode == 0, done.stderr
    assert login(url, "admin", SECOND) == 200
    assert login(url, "admin", FIRST) == 401


def test_a_generated_password_is_printed_and_works(pkgrepo, run_twistd):
    made = pkgrepo("admin", "create", "root", "--generate")
    password = made.stdout.strip().removeprefix("administrator root was added: ")
    assert len(password) >= 20
    assert login(run_twistd().wait_ready(), "root", password) == 200


@pytest.mark.parametrize(
    ("arguments", "password", "code", "sentence"),
    [
        (("admin", "reset-password", "nobody"), FIRST, 3, "user 'nobody' does not exist"),
        (("admin", "create", "root"), FIRST, 5, "'root' already exists"),
        (("admin", "create", "other"), "short", 2, "at least 12 characters (auth.password_min)"),
    ],
)
def test_refusals_have_a_message_and_an_exit_code(pkgrepo, arguments, password, code, sentence):
    assert pkgrepo("admin", "create", "root", "--generate").returncode == 0
    refused = pkgrepo(*arguments, "--password-file", "-", told=password)
    assert refused.returncode == code
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_migrating_changes_nothing_the_second_time(pkgrepo, pytestconfig, tmp_path):
    assert pkgrepo("admin", "create", "root", "--generate").returncode == 0
    for _ in range(2):
        done = pkgrepo("migrate")
        assert (done.returncode, done.stdout) == (0, "the catalog is up to date\n"), done.stderr
    assert (tmp_path / "data" / "pkgrepo.db").is_file() is not pytestconfig.getoption("--postgresql")


@pytest.mark.one_process("a worker hears of failures at others a moment later")
def test_a_login_block_is_removed_while_the_server_runs(pkgrepo, run_twistd):
    url = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": FIRST, "PKGREPO_LIMITS__LOGIN_FAILURES": "2"}).wait_ready()
    for locked_out in (1, 2):
        assert [login(url, "admin", "wrong") for _ in range(3)] == [401, 401, 429], locked_out
        assert login(url, "admin", FIRST) == 429
        done = pkgrepo("admin", "unlock", "ADMIN", "--address", "127.0.0.1")
        assert (done.returncode, done.stdout) == (0, "logins of ADMIN and 127.0.0.1 are not blocked any more\n")
    assert login(url, "admin", FIRST) == 200
    for arguments, code in ((("nobody",), 3), ((), 2), (("--address", "no address"), 2)):
        assert pkgrepo("admin", "unlock", *arguments).returncode == code
