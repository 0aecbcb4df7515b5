"""Logins in a real browser: what needs its scripts, its redirects and its policies."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions

from tests.support.chromium import WIDE, Chromium, chromium
from tests.support.command_line import PROGRAM, Program
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S

CONFIG = hosted("python", py="")
NEW = "a door that opens inwards"


@pytest.fixture
def window(server: ServerProcess, tmp_path: Path) -> Iterator[Chromium]:
    """A browser in which nobody has logged in."""
    with chromium(server.url, tmp_path / "profile") as found:
        found.look(dark=False, width=WIDE)
        yield found


def test_a_one_time_link_leaves_its_secret_in_no_address(window: Chromium, wire: HttpClient) -> None:
    assert wire.post_json("/api/users", {"username": "ann"}).status == 201
    link = wire.post_json("/api/users/ann/password-link", {}).json["url"]
    window.driver.get(link)
    window.wait_for("Choose a password")
    assert not window.find("input[name=secret]").is_displayed()
    assert window.driver.current_url == f"{window.url}/ui/password-link"
    window.fill("/ui/password-link", password=NEW, repeated=NEW)
    window.wait_for("Your user name is ann")
    assert requests.get(f"{window.url}/api/user/me", auth=("ann", NEW), timeout=TIMEOUT_S).status_code == 200


def test_an_approval_comes_back_to_the_program_on_the_same_machine(window: Chromium, tmp_path: Path) -> None:
    window.log_in(*ADMIN)
    person = Program(tmp_path, window.url)
    address = tmp_path / "address"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {address}.part && mv {address}.part {address}\n')
    script.chmod(0o755)
    environ = person.environ(BROWSER=f"{script} %s")
    process = subprocess.Popen([PROGRAM, "login", window.url], env=environ, stdout=subprocess.PIPE, text=True)
    try:
        written = threading.Event()
        while not address.exists():
            assert process.poll() is None
            written.wait(0.1)
        window.driver.get(address.read_text())
        window.wait_for("Log in a program?")
        window.find("button[name=approve]").click()
        window.wait_for("You are logged in")
        assert window.driver.current_url.startswith("http://127.0.0.1:")
        said, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert said == f"logged in to {window.url} as {ADMIN[0]} (profile default)\n"


def test_a_passkey_is_made_and_logs_in(window: Chromium, wire: HttpClient) -> None:
    window.url = window.url.replace("127.0.0.1", "localhost")  # an address has no passkeys
    options = VirtualAuthenticatorOptions(
        protocol="ctap2", transport="internal", has_resident_key=True, has_user_verification=True, is_user_verified=True
    )
    window.driver.add_virtual_authenticator(options)
    window.show("/ui/second-factor")
    form = "form[action='/ui/second-factor/passkey']"
    for name, value in zip(("username", "password"), ADMIN, strict=True):
        window.find(f"{form} input[name={name}]").send_keys(value)
    window.find(f"{form} button").click()
    window.wait_for("let your browser create it")
    window.find("form[data-passkey] button").click()
    window.wait_for("The passkey my device is set up")
    window.show("/ui/login?next=/ui/account/rights")
    window.find("form[data-passkey] button").click()
    window.wait_for("What you may do")
    assert window.path == "/ui/account/rights"
    [passkey] = wire.get("/api/user/passkeys").json
    assert passkey["last_used_at"] is not None
    window.show("/ui/account")
    window.wait_for("my device")
    window.driver.remove_virtual_authenticator()
    wire.ask("DELETE", "/api/users/admin/passkeys")
