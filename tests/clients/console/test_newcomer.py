"""Somebody who has never used it: a fresh server, a browser, and the clients with what the pages offer to copy."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import WIDE, Chromium, chromium
from tests.support.client_programs import client, client_environment
from tests.support.python_packages import make_wheel
from tests.support.server_process import restarts
from tests.support.timeouts import TIMEOUT_S

README = "# Padding\n\nPads a **text**.\n"
NOBODY = {"PKGREPO_ADMIN_USER": "", "PKGREPO_ADMIN_PASSWORD": ""}


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Chromium]:
    """A browser at a server that has neither users nor repositories."""
    with (
        restarts(tmp_path, "[compat]\nopen_install = true\n", NOBODY) as start,
        chromium(start().url, tmp_path / "profile") as found,
    ):
        found.look(dark=False, width=WIDE)
        yield found


def test_a_fresh_server_is_set_up_in_the_browser_and_takes_packages(window: Chromium, tmp_path: Path) -> None:
    window.show("/")
    window.wait_for("Create the account of its first administrator")
    window.fill("/ui/install", username="ada", password="correct horse battery", repeated="correct horse battery")
    window.wait_for("There is no repository yet")
    token = _make_repository(window, "", "npm", "node")
    _copy(window, ".npmrc for npm, pnpm and yarn 1", token, tmp_path / "node" / ".npmrc")
    (tmp_path / "node" / "package.json").write_text(json.dumps({"name": "pad", "version": "1.2.0"}))
    (tmp_path / "node" / "README.md").write_text(README)
    _run(tmp_path / "node", client("npm-11", "npm"), "publish")
    _reads_the_readme(window, "/ui/repositories/main/node", "pad")

    token = _make_repository(window, "New repository", "python", "py")
    _copy(window, ".pypirc", token, tmp_path / "py" / ".pypirc")
    fields = [("Description-Content-Type", "text/markdown"), ("Description", README.replace("\n", "\n        "))]
    filename, data = make_wheel("padding", "1.0", fields=fields)
    (tmp_path / "py" / filename).write_bytes(data)
    _run(tmp_path / "py", client("twine"), "upload", "--config-file", ".pypirc", "-r", "pkgrepo", filename)
    _reads_the_readme(window, "/ui/repositories/main/py", "padding")


def test_all_repositories_of_a_team_are_made_at_once(window: Chromium) -> None:
    window.show("/")
    window.wait_for("Create the account of its first administrator")
    window.fill("/ui/install", username="ada", password="correct horse battery", repeated="correct horse battery")
    window.wait_for("Or begin with all that a team needs")
    for each in window.driver.find_elements("css selector", "input[name=formats]"):
        if each.get_attribute("value") not in ("npm", "raw"):
            each.click()
    window.find("input[name=upstream-npm]").send_keys("ftp://up.example/")
    window.find("form.starter .button").click()
    window.wait_for("does not begin with http:// or https://")
    field = window.find("input[name=upstream-npm]")
    field.clear()
    field.send_keys("http://up.example/")
    window.find("form.starter .button").click()
    window.wait_for("main/npm-proxy")
    assert "main/files-hosted" in window.text
    assert "main/go" not in window.text


def _make_repository(window: Chromium, link: str, format_: str, name: str) -> str:
    """Make a repository from the first page, and a token from the page of the repository; the token."""
    window.show("/ui/")
    if link:
        window.driver.find_element("link text", link).click()
    window.find(f".choices a[href$='format={format_}']").click()
    window.wait_for("Create repository")
    window.fill("/repositories/new", name=name)
    window.wait_for("This repository has no packages yet")
    window.find("aside a[href^='/ui/account/tokens']").click()
    window.wait_for("In these repositories")
    window.find("form[data-explain] .button").click()  # the form has a name for it already
    window.wait_for("Copy it now")
    [token] = set(re.findall(r"pkgr_p_\w{46}", window.text))
    window.show(f"/ui/repositories/main/{name}")
    return str(token)


def _copy(window: Chromium, title: str, token: str, file: Path) -> None:
    """Write the text that the set-up card has under a title to a file, with the token in it."""
    script = """
        const found = [...document.querySelectorAll("aside details")]
            .find(each => each.querySelector("summary").textContent === arguments[0]);
        return found.querySelector("code").textContent;
    """
    file.parent.mkdir()
    file.write_text(str(window.driver.execute_script(script, title)).replace("<TOKEN>", token))


def _reads_the_readme(window: Chromium, repository: str, package: str) -> None:
    window.show(repository)
    window.driver.find_element("link text", package).click()
    window.wait_for("Pads a text.")
    assert window.find(".prose h1").text == "Padding"


def _run(folder: Path, *command: str | Path) -> None:
    environment = client_environment(folder / "home")
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, timeout=TIMEOUT_S, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
