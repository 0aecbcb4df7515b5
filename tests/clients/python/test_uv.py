"""uv against a hosted repository."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.client_programs import client
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.server_process import ServerProcess

LOGIN = ("-u", USER, "-p", PASSWORD)


@pytest.mark.shows("publish", by=("uv",))
def test_publishes_and_skips_published_files(index: PythonIndex, bench: PythonBench) -> None:
    files = [bench.wheel("uv-published", "1.0"), bench.sdist("uv-published", "1.0")]
    command = [client("uv"), "publish", "--publish-url", index.legacy, "--check-url", index.simple, *LOGIN, *files]
    bench.run(*command)
    assert index.files("uv-published") == sorted(file.name for file in files)
    assert bench.run(*command).count("already exists, skipping") == 2


def test_publishing_again_without_a_check_changes_nothing(index: PythonIndex, bench: PythonBench) -> None:
    command = [client("uv"), "publish", "--publish-url", index.legacy, *LOGIN, bench.wheel("uv-again", "1.0")]
    bench.run(*command)
    bench.run(*command)
    assert len(index.files("uv-again")) == 1


@pytest.mark.shows("refusal", by=("uv",))
def test_other_content_is_refused_and_the_reason_printed(index: PythonIndex, bench: PythonBench) -> None:
    command = [client("uv"), "publish", "--publish-url", index.legacy, *LOGIN]
    bench.run(*command, bench.wheel("uv-twice", "1.0"))
    printed = bench.run(*command, bench.wheel("uv-twice", "1.0", summary="other"), status=2)
    assert "File already exists" in printed


def test_a_wrong_password_is_refused_and_the_reason_printed(index: PythonIndex, bench: PythonBench) -> None:
    printed = bench.run(
        client("uv"),
        "publish",
        "--publish-url",
        index.legacy,
        "-u",
        USER,
        "-p",
        "wrong",
        bench.wheel("uv-w", "1"),
        status=2,
    )
    assert "incorrect username or password" in printed


@pytest.mark.shows("install", by=("uv",))
def test_installs_into_an_environment(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("uv-installed", "1.0+local.1")
    python = bench.venv()
    bench.run(client("uv"), "pip", "install", "--python", python, "--index-url", index.simple, "uv-installed")
    assert "local" in bench.run(python, "-c", "import uv_installed; print(uv_installed.__version__)")


def test_an_end_date_hides_newer_files(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("uv-dated", "1.0")
    wanted = bench.folder / "in.txt"
    wanted.write_text("uv-dated\n")
    command = [client("uv"), "pip", "compile", "--index-url", index.simple, wanted, "--exclude-newer"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "uv-dated==1.0" in bench.run(*command, tomorrow)
    printed = bench.run(*command, "2000-01-01T00:00:00Z", status=1)
    assert "exclude-newer" in printed or "No solution" in printed


@pytest.mark.shows("lock", by=("uv",))
def test_locks_and_syncs_a_project_from_this_index_alone(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("uv-locked", "1.0")
    project = bench.folder / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = ["uv-locked"]\n'
        f'[[tool.uv.index]]\nname = "here"\nurl = "{index.simple}"\ndefault = true\n'
    )
    bench.run(client("uv"), "lock", cwd=project, UV_NO_CONFIG="0")
    bench.run(client("uv"), "sync", "--locked", cwd=project, UV_NO_CONFIG="0")
    assert 'name = "uv-locked"' in (project / "uv.lock").read_text()


def test_a_second_request_is_answered_with_304(server: ServerProcess, index: PythonIndex, bench: PythonBench) -> None:
    index.publish("uv-cached", "1.0")
    wanted = bench.folder / "in.txt"
    wanted.write_text("uv-cached\n")
    command = [client("uv"), "pip", "compile", "--index-url", index.simple, wanted]
    bench.run(*command)
    bench.run(*command, "--refresh")
    pages = server.lines("GET /repositories/main/py/simple/uv-cached/", 2)
    # Sorted, because the lines of two workers may change places.
    assert sorted(line.split(" GET ")[1].split()[1] for line in pages) == ["200", "304"]


@pytest.mark.shows("private", by=("uv",))
def test_credentials_of_a_private_index_come_from_the_environment(
    open_index: Callable[[str], PythonIndex], bench: PythonBench
) -> None:
    index = open_index("private")
    index.publish("uv-private", "1.0")
    command = [client("uv"), "pip", "install", "--python", bench.venv(), "--index", f"here={index.simple}"]
    bench.run(*command, "uv-private", status=1, UV_NO_INDEX="0")
    bench.run(*command, "uv-private", UV_INDEX_HERE_USERNAME=USER, UV_INDEX_HERE_PASSWORD=PASSWORD)


@pytest.mark.shows("yank", by=("uv",))
def test_a_yanked_version_is_skipped(index: PythonIndex, bench: PythonBench) -> None:
    for version in ("1.0", "1.1"):
        index.publish("uv-yanked", version)
    assert index.post("pypi/uv-yanked/1.1/yank", data={"reason": "broken"}).status_code == 200
    command = [client("uv"), "pip", "install", "--python", bench.venv(), "--index-url", index.simple]
    assert "uv-yanked==1.0" in bench.run(*command, "uv-yanked")
    assert "broken" in bench.run(*command, "uv-yanked==1.1")
