"""People who log in with the password of a directory, with real clients."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from tests.support.client_programs import client_environment, run_client
from tests.support.client_programs import program as system_program
from tests.support.command_line import Program
from tests.support.configurations import hosted
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running
from tests.support.slapd import BASE, PASSWORDS, Slapd
from tests.support.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.clients]

ADMIN = (USER, PASSWORD)


@pytest.fixture(scope="module")
def server(slapd: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks the directory, with a private repository that a group may write."""
    settings = (
        "limits.login_failures = 1000\n"
        + slapd.settings(admin_groups='["chiefs"]', nested_groups="true")
        + hosted("python", py='visibility = "private"')
    )
    with running(tmp_path_factory.mktemp("server"), settings) as process:
        for group in ("crew", "house"):
            made = requests.post(f"{process.url}/api/groups", json={"name": group}, auth=ADMIN, timeout=TIMEOUT_S)
            assert made.status_code == 201, made.text
        yield process
        words = [each.encode() for each in (*PASSWORDS.values(), "secret of the server", "words of")]
        log = process.output if isinstance(process.output, bytes) else str(process.output).encode()
        assert not [each for each in words if each in log], "no password is logged"


def ask(server: ServerProcess, name: str, password: str, path: str = "/api/user/whoami") -> requests.Response:
    """A request with Basic."""
    return requests.get(server.url + path, auth=(name.encode(), password.encode()), timeout=TIMEOUT_S)


def browse(server: ServerProcess, name: str, password: str) -> tuple[requests.Session, requests.Response]:
    """A browser that has sent the login form, and the page that came."""
    browser = requests.Session()
    form = {"username": name, "password": password, "next": "/ui/account"}
    origin = {"Origin": server.url}
    return browser, browser.post(f"{server.url}/ui/login", data=form, headers=origin, timeout=TIMEOUT_S)


def test_the_groups_of_the_directory_are_those_here_at_each_login(server: ServerProcess, slapd: Slapd) -> None:
    assert ask(server, "ann", PASSWORDS["ann"]).json()["username"] == "ann"

    def members(group: str) -> list[str]:
        found = requests.get(f"{server.url}/api/groups/{group}/members", auth=ADMIN, timeout=TIMEOUT_S)
        return sorted(re.findall(r'"username":\s*"(\w+)"', found.text))

    assert (members("crew"), members("house")) == (["ann"], ["ann"])
    bob = ask(server, "bob", PASSWORDS["bob"]).json()
    assert bob["admin"], "he is one of the chiefs"
    slapd.change(
        f"dn: cn=crew,ou=groups,{BASE}\nchangetype: modify\ndelete: member\nmember: uid=ann,ou=people,{BASE}\n"
    )
    browse(server, "ann", PASSWORDS["ann"])
    assert (members("crew"), members("house")) == (["bob"], ["bob"])
    slapd.change(f"dn: cn=crew,ou=groups,{BASE}\nchangetype: modify\nadd: member\nmember: uid=ann,ou=people,{BASE}\n")


@pytest.mark.parametrize("name", ["*", "ann)(uid=*", "nobody", "ANN ", " ann"])
def test_wrong_names_and_passwords_look_alike(server: ServerProcess, name: str) -> None:
    wrong = ask(server, "ann", "wrong").json()
    assert wrong["status"] == 401
    for password in (PASSWORDS["ann"], "wrong"):
        found = ask(server, name, password)
        assert (found.status_code, found.json()["detail"]) == (401, wrong["detail"])
    assert ask(server, "ann", "").status_code == 401


def test_an_account_here_is_not_that_of_the_same_name_there(server: ServerProcess) -> None:
    assert ask(server, USER, "words of admin").status_code == 401
    assert ask(server, *ADMIN).json()["username"] == USER


def test_what_nobody_knows_is_said_as_that(server: ServerProcess) -> None:
    found = ask(server, "twin", "words of twin")
    assert found.status_code == 503
    assert "several entries have this name" in found.json()["detail"]


def test_the_password_of_a_directory_is_not_changed_here(server: ServerProcess) -> None:
    body = {"old_password": PASSWORDS["ann"], "new_password": "other long words of hers"}
    url = f"{server.url}/api/user/change-password"
    refused = requests.post(url, json=body, auth=("ann", PASSWORDS["ann"]), timeout=TIMEOUT_S)
    assert refused.status_code == 403, refused.text
    assert "directory" in refused.json()["detail"]
    assert ask(server, "ann", body["new_password"]).status_code == 401


def test_clients_log_in(server: ServerProcess, tmp_path: Path) -> None:
    host, name, password = server.url.removeprefix("http://"), "ann", PASSWORDS["ann"]
    grant = {"repository": "main/py", "actions": ["read"]}
    url = f"{server.url}/api/groups/crew/permissions"
    granted = requests.put(url, json={"repositories": [grant]}, auth=ADMIN, timeout=TIMEOUT_S)
    assert granted.status_code < 300, granted.text
    program = Program(tmp_path, server.url)
    assert "ann" in program.log_in(user=name, password=password)
    assert program.json("whoami")["username"] == "ann"
    environ = client_environment(tmp_path / "home")
    login = [system_program("skopeo"), "login", "--tls-verify=false", "--authfile", tmp_path / "auth.json", "-u", name]
    assert "Login Succeeded" in run_client([*login, "-p", password, host], environ=environ, folder=tmp_path).stdout
    run_client([*login, "-p", "wrong", host], environ=environ, folder=tmp_path, status=1)
    index = server.url.replace("//", f"//{name}:{quote(password)}@")
    pip = [sys.executable, "-m", "pip", "index", "versions", "nothing", "--index-url"]
    found = run_client([*pip, f"{index}/repositories/main/py/simple"], environ=environ, folder=tmp_path, status=1)
    assert "No matching distribution" in found.stdout


def test_a_directory_that_is_away_ends_no_sessions_tokens_and_logins_here(server: ServerProcess, slapd: Slapd) -> None:
    browser, page = browse(server, "cid", "words of cid")
    assert page.status_code == 200, page.text
    made = requests.post(
        f"{server.url}/api/user/token", json={"name": "ci"}, auth=("cid", "words of cid"), timeout=TIMEOUT_S
    )
    token = made.json()["token"]
    slapd.stop()
    try:
        assert browser.get(f"{server.url}/api/user/whoami", timeout=TIMEOUT_S).json()["username"] == "cid"
        assert ask(server, "cid", token).json()["username"] == "cid"
        assert ask(server, *ADMIN).status_code == 200
        away = ask(server, "dora", "words of dora")
        assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
        assert "directory 'corp' cannot be asked" in away.json()["detail"]
        _, page = browse(server, "dora", "wrong")
        assert page.status_code == 503
        assert "cannot be asked" in page.text
        state = requests.get(f"{server.url}/api/server/state", auth=ADMIN, timeout=TIMEOUT_S).json()
        [check] = [each for each in state["checks"] if each["name"] == "directory corp"]
        assert check["status"] == "degraded"
        assert requests.get(f"{server.url}/readyz", timeout=TIMEOUT_S).json()["status"] == "ok"
    finally:
        slapd.start()
