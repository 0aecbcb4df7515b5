"""pip, uv, twine and poetry work after ``pkgrepo setup --write`` as they are, with and without a keyring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.client_programs import client
from tests.support.python_packages import make_wheel
from tests.support.setup_bench import OURS, SetupBench

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
NewUser = Callable[..., SetupBench]
REPOSITORY = "main/py"
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "UV_PYTHON_DOWNLOADS": "never"}


def wheel(bench: SetupBench, name: str) -> str:
    filename, data = make_wheel(name, "1.0")
    path = bench.folder / "dist" / filename
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return str(path)


def with_keyring(bench: SetupBench) -> None:
    """Put the program of this environment, which has our backend, on the path."""
    (bench.folder / "tools" / "keyring").symlink_to(OURS / "keyring")


@pytest.mark.shows("setup", by=("uv", "pip"))
@pytest.mark.parametrize("keyring", [False, True], ids=["token in the file", "keyring"])
def test_uv_publishes_and_uv_and_pip_install(new_user: NewUser, keyring: bool) -> None:
    bench = new_user("uv", "pip", **QUIET)
    if keyring:
        with_keyring(bench)
    name = f"by-uv-{'k' if keyring else 't'}"
    bench.set_up(REPOSITORY, "uv,pip")
    written = b"".join(data for path, data in bench.files().items() if "/uv/" in path or "/pip/" in path)
    assert (b"pkgr_" in written) is not keyring
    bench.run("uv", "publish", wheel(bench, name))
    bench.run("uv", "venv", "venv", "--python", str(client("pip").with_name("python")))
    bench.run("uv", "pip", "install", "--python", "venv", name)
    bench.run("pip", "download", "--no-deps", "-d", "got", name)
    assert list((bench.folder / "got").glob("*.whl"))
    printed = bench.check(REPOSITORY, "pip,uv")
    assert "pip: ok: " in printed
    assert "uv: ok: " in printed
    bench.undo(REPOSITORY)


@pytest.mark.shows("setup")
@pytest.mark.parametrize("version", ["twine", "twine-6.1"])
def test_twine_publishes_by_the_name_of_the_repository(new_user: NewUser, version: str) -> None:
    bench = new_user(version)
    assert "twine upload -r pkgrepo" in bench.set_up(REPOSITORY, "twine")
    bench.run("twine", "upload", "--non-interactive", "-r", "pkgrepo", wheel(bench, f"by-{version}"))
    bench.undo(REPOSITORY)


@pytest.mark.shows("setup", by=("poetry",))
def test_poetry_publishes_and_installs(new_user: NewUser) -> None:
    bench = new_user("poetry", POETRY_NO_INTERACTION="1", POETRY_VIRTUALENVS_IN_PROJECT="true")
    bench.set_up(REPOSITORY, "poetry")
    project = bench.folder_of("project", {"pyproject.toml": '[project]\nname = "by-poetry"\nversion = "1.0"\n'})
    wheel(bench, "by-poetry")
    (bench.folder / "dist").rename(project / "dist")
    bench.run("poetry", "publish", "-r", "pkgrepo", cwd=project)
    app = Path(bench.folder, "app")
    manifest = (
        '[project]\nname = "app"\nversion = "1.0"\nrequires-python = ">=3.11"\n[tool.poetry]\npackage-mode = false\n'
    )
    bench.folder_of("app", {"pyproject.toml": manifest})
    url = f"{bench.url}/repositories/{REPOSITORY}/simple/"
    bench.run("poetry", "source", "add", "--priority=primary", "pkgrepo", url, cwd=app)
    assert "by-poetry" in bench.run("poetry", "add", "by-poetry", cwd=app)
    bench.undo(REPOSITORY)
