"""pip against a hosted repository."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.client_programs import client
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.server_process import ServerProcess


def test_installs_by_any_spelling_of_the_name(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("Pip.Spelt_name", "1.0")
    python = bench.venv()
    for spelling in ("pip-spelt-name", "Pip_Spelt.Name"):
        bench.pip(python, "install", "--force-reinstall", "-i", index.simple, spelling)
    assert "1.0" in bench.run(python, "-c", "import pip_spelt_name; print(pip_spelt_name.__version__)")


def test_requests_only_the_page_the_metadata_and_the_wheel(
    server: ServerProcess, index: PythonIndex, bench: PythonBench
) -> None:
    index.publish("pip-asks", "1.0")
    bench.pip(bench.venv(), "install", "-i", index.simple, "pip-asks")
    lines = [line for line in server.lines("pip-asks/", 4) if " GET " in line]
    paths = [line.split(" GET ")[1].split()[0] for line in lines]
    wheel = "pip_asks-1.0-py3-none-any.whl"
    # Each of several nodes writes its log on its own, so the order of the lines says nothing.
    assert sorted(path.rsplit("/", 1)[-1] for path in paths) == ["", wheel, f"{wheel}.metadata"]


def test_installs_the_source_distribution_on_request(index: PythonIndex, bench: PythonBench) -> None:
    sdist = bench.sdist("pip-source", "1.0")
    index.put(sdist.name, sdist.read_bytes(), "pip-source", "1.0")
    index.publish("pip-source", "1.0")
    target = bench.folder / "downloaded"
    bench.pip(
        bench.venv(),
        "download",
        "--no-binary",
        ":all:",
        "--no-build-isolation",
        "-d",
        target,
        "-i",
        index.simple,
        "pip-source",
    )
    assert (target / sdist.name).read_bytes() == sdist.read_bytes()


def test_lists_versions_newest_first(index: PythonIndex, bench: PythonBench) -> None:
    for version in ("1.0", "1.10", "1.9", "2.0rc1"):
        index.publish("pip-versions", version)
    printed = bench.run(client("pip"), "index", "versions", "pip.versions", "-i", index.simple)
    assert "1.10, 1.9, 1.0" in printed


@pytest.mark.shows("install", by=("pip",))
def test_finds_the_newest_version_for_this_python(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("pip-suits", "1.0", requires_python=">=3.8")
    index.publish("pip-suits", "2.0", requires_python=">=4")
    printed = bench.pip(bench.venv(), "install", "-i", index.simple, "pip-suits")
    assert "pip-suits-1.0" in printed


@pytest.mark.shows("yank", by=("pip",))
def test_a_yanked_version_is_installed_only_by_number_and_its_reason_printed(
    index: PythonIndex, bench: PythonBench
) -> None:
    for version in ("1.0", "1.1"):
        index.publish("pip-yanked", version)
    assert index.post("pypi/pip-yanked/1.1/yank", json={"reason": "breaks the moon"}).status_code == 200
    python = bench.venv()
    assert "pip-yanked-1.0" in bench.pip(python, "install", "-i", index.simple, "pip-yanked")
    assert "breaks the moon" in bench.pip(python, "install", "-i", index.simple, "pip-yanked==1.1")
    assert index.post("pypi/pip-yanked/1.1/unyank").status_code == 200
    assert "pip-yanked-1.1" in bench.pip(bench.venv("again"), "install", "-i", index.simple, "pip-yanked")


def test_uploads_after_a_given_date_are_ignored(index: PythonIndex, bench: PythonBench) -> None:
    index.publish("pip-dated", "1.0")
    python = bench.venv()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    command = ["download", "--no-deps", "-d", bench.folder / "dated", "-i", index.simple, "--uploaded-prior-to"]
    bench.pip(python, *command, tomorrow, "pip-dated")
    printed = bench.pip(python, *command, "2000-01-01T00:00:00Z", "pip-dated", status=1)
    assert "No matching distribution" in printed


def test_a_damaged_upload_is_refused_and_never_installed(index: PythonIndex, bench: PythonBench) -> None:
    wheel = bench.wheel("pip-damaged", "1.0")
    wheel.write_bytes(wheel.read_bytes()[:-30])
    printed = bench.run(
        client("twine-6.1"), "upload", "--repository-url", index.legacy, "-u", USER, "-p", PASSWORD, wheel, status=1
    )
    assert printed
    assert "No matching distribution" in bench.pip(bench.venv(), "install", "-i", index.simple, "pip-damaged", status=1)


@pytest.mark.shows("private", by=("pip",))
def test_a_private_repository_requires_credentials(
    open_index: Callable[[str], PythonIndex], bench: PythonBench
) -> None:
    index = open_index("private")
    index.publish("pip-private", "1.0")
    python = bench.venv()
    bench.pip(python, "install", "--no-input", "-i", index.simple, "pip-private", status=1)
    bench.pip(python, "install", "-i", index.with_credentials(USER, PASSWORD), "pip-private")


def test_credentials_are_read_from_netrc(open_index: Callable[[str], PythonIndex], bench: PythonBench) -> None:
    index = open_index("private")
    index.publish("pip-netrc", "1.0")
    netrc = bench.folder / "home" / ".netrc"
    netrc.write_text(f'machine 127.0.0.1 login {USER} password "{PASSWORD}"\n')
    netrc.chmod(0o600)
    bench.pip(bench.venv(), "install", "-i", index.simple, "pip-netrc")


@pytest.mark.parametrize("option", [(), ("--use-feature=fast-deps",)])
def test_dependencies_are_installed(index: PythonIndex, bench: PythonBench, option: tuple[str, ...]) -> None:
    index.publish("pip-needed", "1.0")
    index.publish("pip-needs", "1.0", fields=[("Requires-Dist", "pip-needed>=1")])
    printed = bench.pip(bench.venv(), "install", *option, "-i", index.simple, "pip-needs")
    assert "pip-needed-1.0" in printed


def test_search_prints_a_sentence(index: PythonIndex, bench: PythonBench) -> None:
    printed = bench.run(client("pip"), "search", "--index", f"{index.url}/pypi", "anything", status=None)
    assert "search is not supported" in printed
    assert "Traceback" not in printed
