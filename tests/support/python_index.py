"""A client of a Python repository, and a folder with an environment for Python's client programs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from tests.support.client_programs import client_environment, make_venv, pip_into, run_client
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.timeouts import TIMEOUT_S

USER = "admin"
PASSWORD = "correct horse battery"
JSON = "application/vnd.pypi.simple.v1+json"

# A build backend inside the project, so that builds need no network.
BACKEND = b"""
import os, tarfile, zipfile

def _wheel(directory, name, version):
    stem = f"{name}-{version}"
    info = f"{stem}.dist-info"
    path = f"{stem}-py3-none-any.whl"
    metadata = open("PKG-INFO", "rb").read()
    with zipfile.ZipFile(os.path.join(directory, path), "w") as archive:
        archive.writestr(f"{info}/METADATA", metadata)
        tag = "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")
    return path

def build_wheel(directory, config_settings=None, metadata_directory=None):
    lines = dict(line.split(": ", 1) for line in open("PKG-INFO").read().splitlines() if ": " in line)
    return _wheel(directory, lines["Name"].replace("-", "_"), lines["Version"])
"""
PYPROJECT = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


class PythonIndex:
    """A client of the repository at ``path`` of a server."""

    def __init__(self, url: str, path: str) -> None:
        self.server = url
        self.url = f"{url}/repositories/{path}"
        self.simple = f"{self.url}/simple/"
        self.legacy = f"{self.url}/legacy/"

    def with_credentials(self, user: str, password: str) -> str:
        """Return the simple index's URL with percent-encoded credentials, as pip needs it."""
        scheme, rest = self.simple.split("://", 1)
        return f"{scheme}://{requests.utils.quote(user, safe='')}:{requests.utils.quote(password, safe='')}@{rest}"

    def put(self, filename: str, data: bytes, project: str, version: str) -> None:
        """Publish a file by PUT."""
        answer = requests.put(
            f"{self.url}/{project}/{version}/{filename}", data=data, auth=(USER, PASSWORD), timeout=TIMEOUT_S
        )
        assert answer.status_code in (200, 201), answer.text

    def publish(self, project: str, version: str, **options: Any) -> None:
        """Publish a small wheel."""
        filename, data = make_wheel(project, version, **options)
        self.put(filename, data, project, version)

    def page(self, project: str) -> Mapping[str, Any]:
        """Return a project's page as JSON."""
        answer = requests.get(
            f"{self.simple}{project}/", headers={"Accept": JSON}, auth=(USER, PASSWORD), timeout=TIMEOUT_S
        )
        assert answer.status_code == 200, answer.text
        document: Mapping[str, Any] = answer.json()
        return document

    def files(self, project: str) -> list[str]:
        """Return the names of a project's files."""
        return [file["filename"] for file in self.page(project)["files"]]

    def post(self, path: str, **options: Any) -> requests.Response:
        """Send a POST request as the admin."""
        return requests.post(f"{self.url}/{path}", auth=(USER, PASSWORD), timeout=TIMEOUT_S, **options)


class PythonBench:
    """Runs client programs; ``folder`` has their home, their caches, and the files that a test makes for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = client_environment(folder / "home")

    def run(self, *command: str | Path, status: int | None = 0, cwd: Path | None = None, **variables: str) -> str:
        """Return the output of a command; see ``run_client``."""
        environ = {**self.environ, **variables}
        return run_client(command, environ=environ, folder=cwd or self.folder, status=status).stdout

    def result(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Return the output and exit status of a command that may fail."""
        return run_client(command, environ={**self.environ, **variables}, folder=self.folder, status=None)

    def wheel(self, project: str, version: str, **options: Any) -> Path:
        """Write a wheel, and return its path."""
        return self._write(*make_wheel(project, version, **options))

    def sdist(self, project: str, version: str, **options: Any) -> Path:
        """Write a source distribution that builds without a network, and return its path."""
        files = {"pyproject.toml": PYPROJECT, "backend.py": BACKEND}
        return self._write(*make_sdist(project, version, extra_files=files, **options))

    def venv(self, name: str = "venv") -> Path:
        """Make an empty virtual environment, and return the path of its Python."""
        return make_venv(self.folder / name, environ=self.environ)

    def pip(self, python: Path, *arguments: str | Path, status: int | None = 0, **variables: str) -> str:
        """Run the pinned pip on an environment, and return its output."""
        return self.run(*pip_into(python), *arguments, status=status, **variables)

    def _write(self, filename: str, data: bytes) -> Path:
        path = self.folder / "dist" / filename
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path
