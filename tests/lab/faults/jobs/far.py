"""A second server, which no fault reaches, for what passes between two servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import requests

from tests.lab.faults.clients import Lab
from tests.support.first_publishes import Publisher
from tests.support.forked_programs import run_pkgrepo
from tests.support.server_process import ServerProcess, clean_environment, twistd_process


class FarServer:
    """It has one worker, and the admin of the lab."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        environ = {"PKGREPO_PROXY__ALLOW_PRIVATE": '["127.0.0.1"]', "PKGREPO_SERVER__WORKERS": "1"}
        self._process: ServerProcess = twistd_process(folder, environ=environ, patched=False)
        self.url = self._process.url
        self.api = Publisher(self.url, lab.auth)

    def close(self) -> None:
        """Stop it."""
        self._process.stop()


def run(lab: Lab, folder: Path, url: str, token: str, arguments: Sequence[str]) -> str:
    """
    The output of a command of ``pkgrepo`` that asks a server.

    :raises requests.ConnectionError: it does not reach the server; :raises AssertionError: it fails otherwise
    """
    (file := folder / "token").write_text(token)
    command = [*arguments, "--url", url, "--token-file", str(file)]
    done = run_pkgrepo(*command, environ=clean_environment(), folder=folder)
    if done.returncode:
        try:
            requests.get(f"{url}/healthz", timeout=5)
        except requests.RequestException as error:
            raise requests.ConnectionError from error
        # What a fault cut off is not told from what failed: a status from 500 on is excused once a fault began.
        raise AssertionError(f"pkgrepo {arguments[0]}: 500 {done.returncode} {done.stdout[-300:]}{done.stderr[-600:]}")
    return done.stdout


def admin_token(lab: Lab, api: Publisher) -> str:
    """A token that may read and administer all repositories."""
    rights = [{"repository": "*", "actions": ["read", "write", "edit", "admin", "delete"]}]
    token = str(api.ask("POST", "api/user/token", json={"name": "lab", "repositories": rights}).json()["token"])
    lab.secrets.append(token)
    return token
