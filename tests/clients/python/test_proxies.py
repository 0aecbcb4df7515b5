"""Python's clients install through a proxy of another index: cold, warm, and while that is down."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.client_programs import client, pip_into
from tests.support.configurations import config, hosted, proxy, virtual
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.python_packages import make_wheel
from tests.support.python_peers import devpi, pypiserver
from tests.support.server_process import running
from tests.support.tcp_proxy import TcpProxy
from tests.support.upstreams.faults import corrupted
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.python import PythonUpstream

# The wheels that are published, with their requirements.
TREE = [
    ("leaf-lib", "1.0", ()),
    ("leaf-lib", "1.1", ()),
    ("leaf-lib", "2.0rc1", ()),
    ("branch.lib", "0.9", ("leaf-lib>=1.0",)),
    ("branch.lib", "0.10", ("leaf-lib>=1.0", "other-lib")),
    ("other-lib", "1.0+local.1", ()),
    ("root-lib", "1.0", ("branch-lib", "leaf-lib")),
]
INSTALLED = {"root_lib": "1.0", "branch_lib": "0.10", "leaf_lib": "1.1", "other_lib": "1.0+local.1"}
CLIENTS = ("pip", "uv", "poetry")


class Scene:
    """A server with a proxy of an index, which it reaches through ``line``."""

    def __init__(self, index: PythonIndex, line: TcpProxy, make_folder: Callable[[], Path]) -> None:
        self.index = index
        self.line = line
        self._make_folder = make_folder

    def bench(self) -> PythonBench:
        """A bench with empty caches."""
        return PythonBench(self._make_folder())

    def wheels(self) -> list[str]:
        """The names of the wheels that were requested of the index."""
        paths = [head.line.split()[1] for head in self.line.requests(".whl")]
        return [path.rpartition("/")[2] for path in paths if path.endswith(".whl")]


Mirror = Callable[[str], AbstractContextManager[Scene]]


@pytest.fixture
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Return a function that runs a server with a proxy of the index at a URL, which is asked each time."""

    @contextmanager
    def run(url: str) -> Iterator[Scene]:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        with TcpProxy((parts.hostname, parts.port)).running() as line:
            section = proxy("python", "mirror", f"http://{line.host}{parts.path}", cache_ttl="0")
            configuration = f'proxy.allow_private = ["127.0.0.1"]\n{section}'
            with running(tmp_path_factory.mktemp("mirror"), configuration) as server:
                index = PythonIndex(server.url, "main/mirror")
                yield Scene(index, line, lambda: tmp_path_factory.mktemp("bench"))

    return run


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    for project, version, requires in TREE:
        fields = [("Requires-Dist", each) for each in requires]
        name, data = make_wheel(project, version, fields=fields)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Iterator[str]:
    """The URL of a hosted repository of another server, with the wheels."""
    with running(tmp_path_factory.mktemp("origin"), hosted("python", "own")) as process:
        index = PythonIndex(process.url, "main/own")
        for path in wheels.iterdir():
            project, version = path.name.split("-")[:2]
            index.put(path.name, path.read_bytes(), project, version)
        yield index.url


@pytest.fixture
def scripted() -> Iterator[PythonUpstream]:
    """An index whose faults are scripted."""
    with PythonUpstream() as upstream:
        yield upstream


def install(bench: PythonBench, program: str, index: PythonIndex) -> None:
    """Install the newest versions of the wheels into a new environment."""
    if program == "poetry":
        python = _install_by_poetry(bench, index)
    else:
        python = bench.venv()
        if program == "pip":
            bench.pip(python, "install", "-i", index.simple, "root-lib")
        else:
            bench.run(client("uv"), "pip", "install", "--python", python, "--index-url", index.simple, "root-lib")
    _check_installed(bench, python)


def _install_by_poetry(bench: PythonBench, index: PythonIndex) -> Path:
    project = bench.folder / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1.0.0"\nrequires-python = ">=3.11,<4"\ndependencies = ["root-lib"]\n'
        "[tool.poetry]\npackage-mode = false\n"
        f'[[tool.poetry.source]]\nname = "here"\nurl = "{index.simple}"\npriority = "primary"\n'
    )
    bench.run(client("poetry"), "lock", cwd=project)
    bench.run(client("poetry"), "sync", "--no-root", cwd=project)
    return project / ".venv" / "bin" / "python"


def _check_installed(bench: PythonBench, python: Path) -> None:
    code = "import sys, importlib; print(*(importlib.import_module(each).__version__ for each in sys.argv[1:]))"
    assert bench.run(python, "-c", code, *INSTALLED).split() == [*INSTALLED.values()]


@pytest.mark.shows("proxy")
@pytest.mark.parametrize("program", CLIENTS)
def test_install_cold_warm_and_without_the_upstream(mirror: Mirror, origin: str, program: str) -> None:
    with mirror(origin) as scene:
        install(scene.bench(), program, scene.index)
        fetched = scene.wheels()
        assert sorted(name.split("-")[0] for name in fetched) == sorted(INSTALLED)
        install(scene.bench(), program, scene.index)
        assert scene.wheels() == fetched
        scene.line.stop()
        install(scene.bench(), program, scene.index)


def test_other_clients_install_what_one_has_fetched(mirror: Mirror, origin: str) -> None:
    with mirror(f"{origin}/simple/") as scene:
        install(scene.bench(), "uv", scene.index)
        scene.line.stop()
        install(scene.bench(), "pip", scene.index)


@pytest.mark.parametrize("peer", [devpi, pypiserver])
def test_install_through_a_proxy_of_another_index(
    mirror: Mirror, wheels: Path, tmp_path: Path, peer: Callable[[Path, Path], AbstractContextManager[str]]
) -> None:
    with peer(tmp_path, wheels) as url, mirror(url) as scene:
        install(scene.bench(), "pip", scene.index)
        install(scene.bench(), "uv", scene.index)
        scene.line.stop()
        install(scene.bench(), "pip", scene.index)


@pytest.mark.shows("virtual")
@pytest.mark.parametrize("program", ["pip", "uv"])
def test_own_projects_hide_those_of_the_upstream_in_a_virtual_repository(
    scripted: PythonUpstream, tmp_path: Path, program: str
) -> None:
    scripted.add("secret-lib", "99.0")
    scripted.add("public-lib", "1.0", requires=["secret-lib"])
    sections = (
        hosted("python", "own"),
        proxy("python", "mirror", scripted.simple),
        virtual("python", "all", "main/mirror", "main/own", publish_to="main/own"),
    )
    (tmp_path / "server").mkdir()
    (tmp_path / "bench").mkdir()
    with running(tmp_path / "server", 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(sections)) as server:
        index, bench = PythonIndex(server.url, "main/all"), PythonBench(tmp_path / "bench")
        wheel = bench.wheel("secret-lib", "1.0")
        bench.run(client("twine"), "upload", "--repository-url", index.legacy, "-u", USER, "-p", PASSWORD, wheel)
        asked = len(scripted.requests())  # the first publish of a name asks whether the upstream has it
        python = bench.venv()
        if program == "pip":
            bench.pip(python, "install", "-i", index.simple, "public-lib")
        else:
            bench.run(client("uv"), "pip", "install", "--python", python, "--index-url", index.simple, "public-lib")
        assert "1.0" in bench.run(python, "-c", "import secret_lib; print(secret_lib.__version__)")
        assert not [each.path for each in scripted.requests()[asked:] if "secret" in each.path]


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_young_files_are_hidden_and_refused_with_the_time(
    scripted: PythonUpstream, tmp_path: Path, program: str
) -> None:
    young = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    scripted.add("aging-lib", "1.0")
    filename, _ = scripted.add("aging-lib", "2.0", published=young)
    sections = (
        proxy("python", "mirror", scripted.simple),
        virtual("python", "all", "main/mirror", policy="{ minimum_release_age = 3 }"),
    )
    (tmp_path / "server").mkdir()
    (tmp_path / "bench").mkdir()
    with running(tmp_path / "server", 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(sections)) as server:
        index, bench = PythonIndex(server.url, "main/all"), PythonBench(tmp_path / "bench")
        python = bench.venv()

        def install(*arguments: str, status: int = 0) -> str:
            if program == "pip":
                return bench.pip(python, "install", *arguments, status=status)
            return bench.run(client("uv"), "pip", "install", "--python", python, *arguments, status=status)

        install("--index-url", index.simple, "aging-lib")
        assert "1.0" in bench.run(python, "-c", "import aging_lib; print(aging_lib.__version__)")
        status = 1 if program == "pip" else 2
        printed = " ".join(install("--index-url", index.simple, "aging-lib==2.0", status=status).split())
        told = {"pip": "No matching distribution found for aging-lib==2.0", "uv": "is younger than the 3 days"}
        assert told[program] in printed  # only uv is told of held versions, which its page lists as yanked
        url = f"{index.url}/packages/aging-lib/2.0/{filename}"
        printed = " ".join(install(f"aging-lib @ {url}", status=status).split())
        assert "403" in printed
        assert "minimum_release_age" in printed


def test_hashes_are_required_and_right(mirror: Mirror, origin: str, wheels: Path) -> None:
    with mirror(origin) as scene:
        bench = scene.bench()
        wheel = next(wheels.glob("other_lib-*.whl"))
        locked = bench.folder / "locked.txt"
        locked.write_text(f"other-lib==1.0+local.1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
        target = bench.folder / "downloaded"
        command = ["download", "--require-hashes", "-d", target, "-i", scene.index.simple, "-r", locked]
        bench.pip(bench.venv(), *command)
        assert (target / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_corrupted_file_of_the_upstream_fails_the_install_and_is_not_kept(
    mirror: Mirror, scripted: PythonUpstream, program: str
) -> None:
    name, _ = scripted.add("root-lib", pad=300_000)
    scripted.misbehave(scripted.file_path(name), corrupted, repeat=True)
    with mirror(scripted.simple) as scene:
        bench = scene.bench()
        python = bench.venv()
        command = [client("uv"), "pip", "install", "--python", python, "--index-url", scene.index.simple, "root-lib"]
        if program == "pip":
            command = [*pip_into(python), "install", "--retries", "0", "-i", scene.index.simple]
            command.append("root-lib")
        assert bench.result(*command, UV_HTTP_RETRIES="0").returncode != 0
        scripted.behave()
        bench.run(*command)


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_file_that_the_upstream_replaces_is_installed_again(
    mirror: Mirror, tmp_path_factory: pytest.TempPathFactory, program: str
) -> None:
    overwritable = hosted("python", own=config(policy="allow_overwrite = true"))
    with running(tmp_path_factory.mktemp("origin"), overwritable) as process:
        upstream = PythonIndex(process.url, "main/own")
        with mirror(upstream.url) as scene:
            bench = scene.bench()
            python = bench.venv()
            command = [*pip_into(python), "install", "--force-reinstall", "-i", scene.index.simple]
            if program == "uv":
                command = [client("uv"), "pip", "install", "--python", python, "--reinstall", "--refresh"]
                command += ["--index-url", scene.index.simple]
            for content in (b"first", b"second"):  # with one cache of the client
                upstream.publish("changing-lib", "1.0", extra_files={"changing.txt": content})
                bench.run(*command, "changing-lib")
                printed = bench.run(python, "-c", "import sys; print(open(sys.path[-1] + '/changing.txt').read())")
                assert printed.strip() == content.decode()


@pytest.mark.parametrize("offered", [False, True])
def test_versions_are_resolved_without_the_wheels(mirror: Mirror, scripted: PythonUpstream, *, offered: bool) -> None:
    scripted.add("leaf-lib", "1.0", metadata=False)
    name, _ = scripted.add("heavy-lib", "1.0", requires=["leaf-lib"], metadata=offered, pad=5_000_000)
    scripted.serve(f"{scripted.file_path(name)}.metadata", Answer(404))
    with mirror(scripted.simple) as scene:
        bench = scene.bench()
        wanted = bench.folder / "in.txt"
        wanted.write_text("heavy-lib\n")
        printed = bench.run(client("uv"), "pip", "compile", "--index-url", scene.index.simple, wanted)
        assert "leaf-lib==1.0" in printed
        report = ["install", "--dry-run", "--no-cache-dir", "-i", scene.index.simple, "heavy-lib"]
        assert "leaf-lib-1.0" in bench.pip(bench.venv(), *report)
        assert scripted.sent(scripted.file_path(name)) < 200_000


def _odd_wheel(kind: str) -> tuple[str, bytes]:
    """Return the name and bytes of a wheel that clients install, and whose metadata cannot be read by the server."""
    name, data = make_wheel("odd-lib", "1.0", pad=1_000_000)
    if kind == "bytes before":
        return name, b"#!/bin/sh\n" + data
    out = io.BytesIO()
    method = zipfile.ZIP_BZIP2 if kind == "bzip2" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", method) as new:
        for each in old.namelist():
            more = b"x" * (9 << 20) if kind == "large" and each.endswith("/METADATA") else b""
            renamed = each.replace("-1.0.dist-info", "-01.0.post0.dist-info") if kind == "other name" else each
            new.writestr(renamed, old.read(each) + more)
    return name, out.getvalue()


@pytest.mark.parametrize("kind", ["bytes before", "bzip2", "large", "other name"])
@pytest.mark.parametrize("program", ["pip", "uv"])
def test_wheel_whose_metadata_cannot_be_read_is_installed_once_that_is_known(
    mirror: Mirror, scripted: PythonUpstream, program: str, kind: str
) -> None:
    name, data = _odd_wheel(kind)
    scripted.add("odd-lib", "1.0", metadata=False)
    scripted.serve(scripted.file_path(name), data)
    listed = {"hashes": {"sha256": hashlib.sha256(data).hexdigest()}, "size": len(data)}
    scripted.projects["odd-lib"][0].update(listed)
    with mirror(scripted.simple) as scene:
        bench = scene.bench()
        python = bench.venv()

        def install(index: str) -> int:
            if program == "pip":
                command = [*pip_into(python), "install", "--force-reinstall", "--no-cache-dir", "-i", index, "odd-lib"]
            else:
                command = [client("uv"), "pip", "install", "--no-cache", "--python", python, "--reinstall"]
                command += ["--index-url", index, "odd-lib"]
            result = bench.result(*command, UV_HTTP_RETRIES="0")
            print(result.stdout)
            return result.returncode

        directly = install(scripted.simple)
        install(scene.index.simple)  # may find out
        assert install(scene.index.simple) == directly


def test_end_date_is_that_of_the_first_look_where_the_upstream_tells_none(mirror: Mirror) -> None:
    with PythonUpstream(json=False) as upstream:
        upstream.add("undated-lib", "1.0")
        with mirror(upstream.simple) as scene:
            bench = scene.bench()
            wanted = bench.folder / "in.txt"
            wanted.write_text("undated-lib\n")
            command = [client("uv"), "pip", "compile", "--index-url", scene.index.simple, wanted, "--exclude-newer"]
            tomorrow, yesterday = (f"{datetime.now(UTC) + timedelta(days=each):%Y-%m-%dT%H:%M:%SZ}" for each in (1, -1))
            assert "undated-lib==1.0" in bench.run(*command, tomorrow)
            assert "undated-lib==1.0" not in bench.run(*command, yesterday, status=1)


def test_end_date_hides_newer_files(mirror: Mirror, scripted: PythonUpstream) -> None:
    scripted.add("dated-lib", "1.0", published="2024-01-01T00:00:00Z")
    scripted.add("dated-lib", "2.0", published="2025-01-01T00:00:00Z")
    with mirror(scripted.url) as scene:
        bench = scene.bench()
        wanted = bench.folder / "in.txt"
        wanted.write_text("dated-lib\n")
        command = [client("uv"), "pip", "compile", "--index-url", scene.index.simple, wanted, "--exclude-newer"]
        assert "dated-lib==1.0" in bench.run(*command, "2024-06-01T00:00:00Z")
        assert "dated-lib==2.0" in bench.run(*command, "2025-06-01T00:00:00Z")
        command = ["download", "--no-deps", "-d", bench.folder, "-i", scene.index.simple, "dated-lib"]
        printed = bench.pip(bench.venv(), *command, "--uploaded-prior-to", "2024-06-01T00:00:00Z")
        assert "dated_lib-1.0" in printed


def test_yanked_files_are_installed_only_by_number(mirror: Mirror, scripted: PythonUpstream) -> None:
    scripted.add("yanked-lib", "1.0")
    scripted.add("yanked-lib", "1.1", yanked="breaks the moon")
    with mirror(scripted.simple) as scene:
        bench = scene.bench()
        python = bench.venv()
        assert "yanked-lib-1.0" in bench.pip(python, "install", "-i", scene.index.simple, "yanked-lib")
        printed = bench.pip(python, "install", "-i", scene.index.simple, "yanked-lib==1.1")
        assert "breaks the moon" in printed


def test_upload_to_a_proxy_is_refused_and_the_reason_printed(mirror: Mirror, origin: str) -> None:
    with mirror(origin) as scene:
        bench = scene.bench()
        wheel = bench.wheel("not-here", "1.0")
        login = ["-u", USER, "-p", PASSWORD]
        printed = bench.run(client("twine"), "upload", "--repository-url", scene.index.legacy, *login, wheel, status=1)
        assert "repository main/mirror is a proxy" in printed
        publish = [client("uv"), "publish", "--publish-url", scene.index.legacy, *login, wheel]
        assert "repository main/mirror is a proxy" in bench.run(*publish, status=2)
