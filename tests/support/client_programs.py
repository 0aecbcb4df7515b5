"""Client programs for tests: their paths, and an environment isolated from this machine's configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.timeouts import TIMEOUT_S

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / ".cache" / "clients"


def client(name: str, program: str | None = None) -> Path:
    """
    Return the path of a program of a pinned Python client (a line of tests/clients/pins.txt).

    C{program} defaults to the name of the client. If the client is not installed, the test is skipped, or fails if
    ``PKGREPO_REQUIRE_CLIENTS`` is 1.
    """
    found = CLIENTS / name / "bin" / (program or name.partition("-")[0])
    if not (CLIENTS / name / ".installed").exists() or not found.exists():
        absent(f"the client {name} is not installed (bin/test installs it)")
    return found


def program(name: str) -> Path:
    """Return the path of a program of the system, such as curl; if it is missing, as in ``client``."""
    found = shutil.which(name)
    if found is None:
        absent(f"{name} is not on the path (bin/test installs it when it runs as root)")
    return Path(found)


def absent(reason: str) -> NoReturn:
    """Skip the test because a program is missing, or fail it if ``PKGREPO_REQUIRE_CLIENTS`` is 1."""
    if os.environ.get("PKGREPO_REQUIRE_CLIENTS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def client_environment(home: Path, **variables: str) -> dict[str, str]:
    """
    Return an environment for clients with its own home and caches: no configuration, proxy, credentials or keyring.

    The CA certificates are those of the system, for clients that build with packages of the public index.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "PIP_CERT")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return environment | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "NO_PROXY": "*",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_KEYRING_PROVIDER": "disabled",
        "POETRY_VIRTUALENVS_IN_PROJECT": "true",
        "POETRY_NO_INTERACTION": "1",
        **variables,
    }


def run_client(
    command: Sequence[str | Path], *, environ: Mapping[str, str], folder: Path, status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """
    Run a client until it exits; ``stdout`` of the result has both output streams.

    An exit status other than ``status`` fails the test and shows the output; with None any status is accepted.
    """
    result = subprocess.run(
        [str(part) for part in command],
        env=dict(environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    if status is not None and result.returncode != status:
        line = " ".join(str(part) for part in command)
        pytest.fail(f"{line} exited with {result.returncode}, not {status}:\n{result.stdout}")
    return result


def make_venv(folder: Path, *, environ: Mapping[str, str]) -> Path:
    """Make an empty virtual environment, for use with `pip_into`. Returns the path of its Python."""
    pip = client("pip")
    run_client([pip.with_name("python"), "-m", "venv", "--without-pip", folder], environ=environ, folder=folder.parent)
    return folder / "bin" / "python"


def pip_into(python: Path) -> list[str | Path]:
    """
    Return the first words of a command that runs the pinned pip on another environment.

    It is what ``pip --python`` starts, which takes a third of the processor time of an installation until then.
    """
    [runner] = client("pip").parents[1].glob("lib/python*/site-packages/pip/__pip-runner__.py")
    return [python, runner]
