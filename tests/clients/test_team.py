"""The page "A team in ten minutes" of the book: its blocks do what they say, with other addresses."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pkgrepo
from tests.support.client_programs import absent
from tests.support.command_line import PROGRAM
from tests.support.issuer import Issuer, listening
from tests.support.ports import reserve_port
from tests.support.python_packages import make_wheel
from tests.support.server_process import clean_environment

PAGE: Final = Path(pkgrepo.__file__).parent / "docs" / "team.md"
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READY: Final = 'until curl -fs "$URL/healthz" > /dev/null; do sleep 0.1; done\n'
LIMIT_S: Final = 240


def blocks(kind: str) -> list[str]:
    return [found[2] for found in BLOCK.finditer(PAGE.read_text()) if found[1] == kind]


def test_the_page_has_at_most_twenty_commands() -> None:
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    assert len([each for each in lines if each.strip()]) <= 20
    assert not re.findall(r"^```(?!sh$|toml$|$)", PAGE.read_text(), re.MULTILINE)


def test_a_team_is_there_in_ten_minutes(tmp_path: Path) -> None:
    for program in ("curl", "jq", "bash"):
        if subprocess.run(["which", program], capture_output=True, check=False).returncode:
            absent(f"there is no {program}")
    port, reserved = reserve_port()
    with reserved, listening() as issuer:
        url = f"http://127.0.0.1:{port}"
        script = run_of(tmp_path, url, port, issuer)
        token = issuer.token(aud=url, repository="acme/tool")
        environ = clean_environment() | {
            "HOME": str(tmp_path),
            "ID_TOKEN": token,
            "URL": url,
            "PIP_CONFIG_FILE": os.devnull,
            "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [*(tmp_path / "here").glob("acme_tool*")]
    assert "main/pypi-hosted" in done.stdout
    assert [*(tmp_path / "backup" / "backups").iterdir()]


def run_of(folder: Path, url: str, port: int, issuer: Issuer) -> str:
    """The script of the blocks, with the addresses of this test; writes the settings and the wheel that it needs."""

    def placed(text: str) -> str:
        for old, new in (
            ("https://packages.example", url),
            ("https://login.corp.example/realms/staff", issuer.url),
            ("https://forge.corp.example/api/actions", issuer.url),
            ("/mnt/backup/pkgrepo", str(folder / "backup")),
            ("https://index.example", "http://127.0.0.1:9"),
            ("https://registry.example", "http://127.0.0.1:9"),
        ):
            text = text.replace(old, new)
        return text

    (settings,) = blocks("toml")
    listening_at = f'[server]\nlisten = ["tcp:{port}:interface=127.0.0.1"]\n'
    (folder / "pkgrepo.toml").write_text(placed(settings).replace("[server]\n", listening_at))
    name, content = make_wheel("acme-tool", "1.0")
    (folder / name).write_bytes(content)
    steps = [placed(each) for each in blocks("sh")]
    stop = "trap 'kill $(jobs -p); wait' EXIT\n"
    return stop + steps[0].replace("serve &\n", "serve > log 2>&1 &\n") + READY + "".join(steps[1:])
