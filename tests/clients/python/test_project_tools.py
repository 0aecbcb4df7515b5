"""poetry, pdm, pipenv, flit and hatch: tools of projects, which lock, build and publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.client_programs import client
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex

QUIET = {"PDM_CHECK_UPDATE": "0", "PDM_NON_INTERACTIVE": "1"}


@pytest.mark.shows("publish", "lock", "install", by=("poetry",))
def test_poetry_builds_publishes_and_locks(index: PythonIndex, bench: PythonBench) -> None:
    project = _poetry_project(bench.folder / "published", "poetry-published")
    poetry = client("poetry")
    bench.run(poetry, "config", "repositories.here", index.legacy)
    bench.run(poetry, "config", "http-basic.here", USER, PASSWORD)
    bench.run(poetry, "publish", "--build", "-r", "here", cwd=project)
    assert index.files("poetry-published") == [
        "poetry_published-1.0.0-py3-none-any.whl",
        "poetry_published-1.0.0.tar.gz",
    ]
    bench.run(poetry, "publish", "-r", "here", cwd=project)
    user = _poetry_project(bench.folder / "user", "poetry-user", requires='"poetry-published>=1"')
    with (user / "pyproject.toml").open("a") as file:
        file.write(f'\n[[tool.poetry.source]]\nname = "here"\nurl = "{index.simple}"\npriority = "primary"\n')
    bench.run(poetry, "lock", cwd=user)
    assert 'name = "poetry-published"' in (user / "poetry.lock").read_text()
    bench.run(poetry, "sync", "--no-root", cwd=user)


@pytest.mark.shows("refusal", by=("poetry",))
def test_poetry_prints_why_other_content_is_refused(index: PythonIndex, bench: PythonBench) -> None:
    project = _poetry_project(bench.folder / "twice", "poetry-twice")
    poetry = client("poetry")
    bench.run(poetry, "config", "repositories.here", index.legacy)
    bench.run(poetry, "config", "http-basic.here", USER, PASSWORD)
    bench.run(poetry, "publish", "--build", "-r", "here", cwd=project)
    (project / "poetry_twice" / "__init__.py").write_text("changed = True\n")
    bench.run(poetry, "build", "--clean", cwd=project)
    assert "File already exists" in bench.run(poetry, "publish", "-r", "here", cwd=project, status=1)
    bench.run(poetry, "publish", "--skip-existing", "-r", "here", cwd=project)


@pytest.mark.shows("publish", "lock", "install", by=("pdm",))
def test_pdm_publishes_and_locks(index: PythonIndex, bench: PythonBench) -> None:
    pdm, folder = client("pdm"), bench.folder / "pdm"
    (folder / "dist").mkdir(parents=True)
    wheel = bench.wheel("pdm-published", "1.0")
    wheel.rename(folder / "dist" / wheel.name)
    project = '[project]\nname = "app"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = ["pdm-published"]\n'
    source = f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{index.simple}"\nverify_ssl = true\n'
    (folder / "pyproject.toml").write_text(f"{project}{source}[tool.pdm]\ndistribution = false\n")
    publish = (pdm, "publish", "--no-build", "-r", index.legacy, "-u", USER)
    assert "401" in bench.run(*publish, "-P", "wrong", cwd=folder, status=1, **QUIET)
    bench.run(*publish, "-P", PASSWORD, cwd=folder, **QUIET)
    assert index.files("pdm-published") == [wheel.name]
    bench.run(pdm, "lock", cwd=folder, **QUIET)
    assert f'{{file = "{wheel.name}", hash = "sha256:' in (folder / "pdm.lock").read_text()
    bench.run(pdm, "sync", cwd=folder, **QUIET)
    assert "pdm-published" in bench.run(pdm, "list", "--freeze", cwd=folder, **QUIET)


@pytest.mark.shows("lock", "install", by=("pipenv",))
def test_pipenv_locks_and_installs(index: PythonIndex, bench: PythonBench) -> None:
    pipenv, folder = client("pipenv"), bench.folder / "pipenv"
    folder.mkdir()
    index.publish("pipenv-wanted", "1.0")
    source = f'[[source]]\nname = "here"\nurl = "{index.simple}"\nverify_ssl = true\n'
    (folder / "Pipfile").write_text(f'{source}[packages]\npipenv-wanted = "*"\n')
    settings = {"PIPENV_VENV_IN_PROJECT": "1", "PIPENV_NOSPIN": "1", "PIPENV_IGNORE_VIRTUALENVS": "1"}
    bench.run(pipenv, "lock", cwd=folder, **settings)
    assert '"pipenv-wanted"' in (folder / "Pipfile.lock").read_text()
    bench.run(pipenv, "sync", cwd=folder, **settings)
    assert "pipenv_wanted" in bench.run(
        pipenv, "run", "python", "-c", "import pipenv_wanted as p; print(p.__name__)", cwd=folder, **settings
    )


@pytest.mark.shows("publish", by=("flit",))
def test_flit_publishes(index: PythonIndex, bench: PythonBench) -> None:
    project = bench.folder / "flit"
    project.mkdir()
    (project / "flit_published.py").write_text('"""A module."""\n__version__ = "1.0"\n')
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n'
        '[project]\nname = "flit_published"\nauthors = [{name = "A", email = "a@example.org"}]\n'
        'dynamic = ["version", "description"]\n'
    )
    bench.run(
        client("flit"), "publish", cwd=project, FLIT_INDEX_URL=index.legacy, FLIT_USERNAME=USER, FLIT_PASSWORD=PASSWORD
    )
    assert index.files("flit-published") == ["flit_published-1.0-py2.py3-none-any.whl", "flit_published-1.0.tar.gz"]


@pytest.mark.shows("publish", by=("hatch",))
def test_hatch_publishes_and_skips_published_files(index: PythonIndex, bench: PythonBench) -> None:
    wheel = bench.wheel("hatch-published", "1.0")
    command = [client("hatch"), "publish", "--no-prompt", "-r", index.legacy, "-u", USER, "-a", PASSWORD, wheel]
    bench.run(*command)
    assert index.files("hatch-published") == [wheel.name]
    assert "already exists" in bench.run(*command)


def test_hatch_prints_why_a_login_fails(index: PythonIndex, bench: PythonBench) -> None:
    wheel = bench.wheel("hatch-refused", "1.0")
    printed = bench.run(
        client("hatch"), "publish", "--no-prompt", "-r", index.legacy, "-u", USER, "-a", "wrong", wheel, status=1
    )
    assert "401" in printed


def _poetry_project(folder: Path, name: str, requires: str = "") -> Path:
    module = name.replace("-", "_")
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text("")
    (folder / "README.md").write_text("hello\n")
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "1.0.0"\ndescription = "d"\nreadme = "README.md"\n'
        f'requires-python = ">=3.11,<4"\nauthors = [{{name = "A", email = "a@example.org"}}]\n'
        f"dependencies = [{requires}]\n"
        '[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n'
    )
    return folder
