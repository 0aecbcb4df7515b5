"""The console in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.support.chromium import NARROW, WIDE, Chromium, chromium
from tests.support.client_programs import client, client_environment
from tests.support.console_content import CONFIG, PAGES, fill
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S

README = "# Padding\n\nPads a **text**.\n\n```js\nconst pad = require('pad')\n```\n"


@pytest.fixture(scope="module")
def configuration() -> str:
    """The server has one repository."""
    return CONFIG


@pytest.fixture(scope="module")
def window(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser in which the admin has logged in, at a server with hostile texts wherever people choose them."""
    with chromium(server.url, tmp_path_factory.mktemp("profile")) as found:
        found.log_in(*ADMIN)
        yield found


@pytest.fixture(scope="module")
def pages(server: ServerProcess) -> tuple[str, ...]:
    """The addresses of the pages."""
    return (*PAGES, fill(HttpClient(server.url, ADMIN), hostile=True))


def test_a_newcomer_makes_a_repository_publishes_and_finds_the_readme(window: Chromium, tmp_path: Path) -> None:
    window.look(dark=False, width=WIDE)
    window.show("/ui/admin/repositories/new?format=npm")
    window.find(".choices a[href$='type=Hosted']").click()
    window.wait_for("Create repository")
    window.fill("/repositories/new", name="node", visibility="public")
    window.wait_for("This repository has no packages yet")
    window.find("aside a[href^='/ui/account/tokens']").click()
    window.wait_for("In these repositories")
    window.fill("/account/tokens", name="my laptop")
    window.wait_for("Copy it now")
    [token] = set(re.findall(r"pkgr_p_\w{46}", window.text))
    _publish(window.url, token, tmp_path)
    window.show("/ui/")
    window.find("body").send_keys("/")
    window.driver.switch_to.active_element.send_keys("pad" + Keys.ENTER)
    window.wait_for("for “pad”")
    window.find("body").send_keys(Keys.ARROW_DOWN)
    window.driver.switch_to.active_element.send_keys(Keys.ENTER)
    window.wait_for("Pads a text.")
    assert window.find(".prose h1").text == "Padding"
    assert window.find(".prose .k, .prose .kd").text == "const"
    assert f"npm install pad@1.2.0 --registry {window.url}/repositories/main/node/" in window.text
    window.find("details:has(form[action$='/delete']) > summary").click()
    window.fill("/delete", confirm="1.2.0")
    window.wait_for("This repository has no packages yet")


def test_a_page_that_is_loaded_again_makes_no_other_token(window: Chromium, server: ServerProcess) -> None:
    window.show("/ui/account/tokens")
    window.fill("/account/tokens", name="once")
    window.wait_for("Copy it now")
    window.driver.refresh()
    window.wait_for("Your tokens" if "Your tokens" in window.text else "New token")
    assert "Copy it now" not in window.text
    listed = HttpClient(server.url, ADMIN).get("/api/user/token").json["items"]
    assert [each["name"] for each in listed].count("once") == 1


def test_a_person_goes_to_a_package_by_typing_and_reads_the_keys(window: Chromium, pages: tuple[str, ...]) -> None:
    window.look(dark=False, width=WIDE)
    window.show("/ui/admin")
    window.find("body").send_keys("?")
    window.wait_for("through the rows of a list")
    assert not window.findings()
    window.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    window.find("body").send_keys(Keys.CONTROL + "k")
    window.driver.switch_to.active_element.send_keys("dem")
    window.wait_for("python in main/py")
    assert not window.findings()
    window.driver.switch_to.active_element.send_keys(Keys.ENTER)
    window.wait_for("Install")
    assert window.path == "/ui/repositories/main/py/packages/demo"
    window.find(".me > summary").click()
    window.wait_for("Log out")
    window.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert "Log out" not in window.text


def test_results_follow_what_is_typed(window: Chromium, pages: tuple[str, ...]) -> None:
    window.look(dark=False, width=WIDE)
    window.show("/ui/search")
    window.find("main input[name=q]").send_keys("dem")
    window.wait_for("for “dem”")
    assert window.path == "/ui/search?q=dem"
    assert window.driver.switch_to.active_element.get_attribute("name") == "q"
    window.find("#results a.row")


def test_files_are_sent_one_after_another(window: Chromium, pages: tuple[str, ...], tmp_path: Path) -> None:
    window.look(dark=False, width=NARROW)
    files = [
        make_wheel("sent", "1.0"),
        make_wheel("sent", "1.1"),
        ("note.txt", b"text"),
        ("bad-1-py3-none-any.whl", b"x"),
    ]
    for name, data in files:
        (tmp_path / name).write_bytes(data)
    window.show("/ui/repositories/main/py/upload")
    window.find("input[name=file]").send_keys("\n".join(str(tmp_path / name) for name, _ in files))
    window.find("form.upload button").click()
    window.wait_for("sent 1.1 is published")
    window.wait_for("is not a zip archive")
    assert "sent 1.0 is published" in window.text
    assert "note.txt is not sent: its name must end with .tar.gz or .whl or .zip" in window.text
    assert window.overflow() <= 0
    assert not window.findings()


def test_pages_and_forms_work_without_scripts(window: Chromium) -> None:
    window.look(dark=False, width=NARROW)
    window.run_scripts(False)
    try:
        window.show("/ui/account/tokens")
        window.find("form[action='/ui/account/tokens'] [name=name]").send_keys("no script" + Keys.ENTER)
        window.wait_for("Copy it now")
    finally:
        window.run_scripts(True)


def _publish(url: str, token: str, folder: Path) -> None:
    (folder / "package.json").write_text(json.dumps({"name": "pad", "version": "1.2.0", "license": "MIT"}))
    (folder / "README.md").write_text(README)
    registry = f"{url}/repositories/main/node/"
    (folder / ".npmrc").write_text(f"registry={registry}\n{registry.removeprefix('http:')}:_authToken={token}\n")
    command = [client("npm-11", "npm"), "publish"]
    environment = client_environment(folder / "home")
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=TIMEOUT_S, capture_output=True)
