"""Each command block of the book does what its page says, with the programs that it names."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from string import Template

import pytest

from tests.support.book_pages import PAGES, all_blocks, script_of
from tests.support.book_services import SERVICES
from tests.support.client_programs import CLIENTS, ROOT, client, client_environment, program
from tests.support.container_clients import host_of
from tests.support.server_process import running

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
PASSWORD = "correct-horse-battery"
ENVIRONMENT = {"PKGREPO_ADMIN_PASSWORD": PASSWORD, "PKGREPO_PROXY__ALLOW_PRIVATE": "127.0.0.0/8"}
LIMIT_S = 300
OURS = ("pkgrepo", "docker-credential-pkgrepo", "cargo-credential-pkgrepo")
PRELUDE = PAGES.with_name("prelude.sh")


@pytest.mark.parametrize("page", sorted(each.stem for each in PAGES.glob("*.sh")))
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    script = script_of(page)
    work = tmp_path / "work"
    work.mkdir()
    write_other_blocks(page, tmp_path / "blocks")
    with ExitStack() as stack:
        variables = {"FOLDER": str(work)}
        for name in script.services:
            variables |= stack.enter_context(SERVICES[name]())
        settings = Template(script.settings).substitute(variables)
        server = stack.enter_context(running(tmp_path, settings, ENVIRONMENT))
        variables |= {
            "PATH": path_of(script.clients, tmp_path / "tools"),
            "R": server.url,
            "HOST": host_of(server),
            "PASSWORD": PASSWORD,
            "PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "ROOT": str(ROOT),
            "CLIENTS": str(CLIENTS),
            "BLOCKS": str(tmp_path / "blocks"),
            "DATA": str(tmp_path / "data"),
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup"),
        }
        done = subprocess.run(
            ["bash", "-exuo", "pipefail", "-c", f". {PRELUDE}\n{script.script}"],
            cwd=work,
            env=client_environment(tmp_path / "home", **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    if done.returncode:
        pytest.fail(done.stdout, pytrace=False)


def write_other_blocks(page: str, folder: Path) -> None:
    """Write the blocks of a page that are not commands, such as ``1.xml``; scripts use them as readers would."""
    folder.mkdir()
    for number, (kind, text) in enumerate(all_blocks(page), 1):
        if kind != "sh":
            (folder / f"{number}.{kind}").write_text(text)


def path_of(clients: tuple[str, ...], tools: Path) -> str:
    """The path of a reader: pinned clients, pkgrepo's own programs, and those of the system."""
    tools.mkdir()
    for name in OURS:
        (tools / name).symlink_to(Path(sys.executable).parent / name)
    folders = [str(tools)]
    for name in clients:
        if name == "rattler":
            client(name, "python")
        elif (CLIENTS / name).is_dir():
            folders.append(str(client(name).parent))
        else:
            program(name)
    return os.pathsep.join([*folders, os.environ["PATH"]])
