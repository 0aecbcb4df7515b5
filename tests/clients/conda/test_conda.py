"""conda 4.3 with its own solver: the last release on the registry of Python packages, which knows .tar.bz2 alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.access_log import log_since_mark
from tests.support.client_programs import CLIENTS, client_environment, run_client
from tests.support.conda_packages import make_conda, make_tar_bz2
from tests.support.configurations import PRIVATE, hosted, tokens, virtual
from tests.support.container_clients import ADMIN
from tests.support.dated import now_between
from tests.support.forked_programs import run_pkgrepo
from tests.support.http_client import HttpClient
from tests.support.imports import counts, static, take, write

pytestmark = pytest.mark.clients

TOKEN = make_token(TokenKind.CI)
PROGRAM = CLIENTS / "conda" / "bin" / "python"
# What pip installs as ``conda`` refuses to run; the program behind it does not.
RUN = "import sys; from conda.cli.main import main; sys.argv[0] = 'conda'; sys.exit(main())"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """The folder of a channel."""
    return write(tmp_path_factory.mktemp("old"), {"noarch/other-2.0-0.tar.bz2": make_old("other", "2.0")})


@pytest.fixture(scope="module")
def configuration(old):
    scopes = {"reader": ("main/*", ["read"], [])}
    return (
        f'imports.folders = ["{old}"]\naliases = {{ "/channels/old/" = "main/moved" }}\n'
        + hosted("conda", ch="", twinned="", dated="", private=PRIVATE, moved="")
        + virtual("conda", "all", "main/ch")
        + tokens(ADMIN[0], {"reader": TOKEN}, scopes)
    )


@pytest.fixture
def conda(tmp_path) -> Callable[..., str]:
    """Run conda with one channel and folders of its own. Returns what it printed."""
    if not PROGRAM.exists():
        pytest.skip("conda is not installed (bin/test installs it where it finds Python 3.6)")
    places = {name: tmp_path / name for name in ("home", "packages", "envs")}
    for place in places.values():
        place.mkdir()

    def run(channel: str, *arguments: object) -> str:
        settings = ["channels:", f"  - {channel}", "default_channels: []", "add_pip_as_python_dependency: false"]
        (places["home"] / ".condarc").write_text("\n".join(settings) + "\n")
        environ = client_environment(
            places["home"], CONDA_PKGS_DIRS=str(places["packages"]), CONDA_ENVS_PATH=str(places["envs"])
        )
        return run_client([PROGRAM, "-c", RUN, *map(str, arguments)], environ=environ, folder=tmp_path).stdout

    return run


def make_old(name: str, version: str, **index: object) -> bytes:
    """A .tar.bz2 with one file below ``share``, and the list of files that old releases want."""
    path, content = f"share/{name}.txt", version.encode()
    entry = {
        "_path": path,
        "path_type": "hardlink",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_in_bytes": len(content),
    }
    documents = {"paths.json": {"paths": [entry], "paths_version": 1}}
    payload = [("info/files", f"{path}\n".encode()), (path, content)]
    return make_tar_bz2(name, version, "0", documents=documents, payload=payload, **index)


def put(server, repository):
    channel = HttpClient(f"{server.url}/repositories/main/{repository}", ADMIN)
    linux = {"subdir": "linux-64", "noarch": None}
    for subdir, name, version, more in (
        ("linux-64", "demo", "1.0", {"depends": ["other >=2"], **linux}),
        ("linux-64", "demo", "0.9", linux),
        ("noarch", "other", "1.0", {}),
        ("noarch", "other", "2.0", {}),
    ):
        assert channel.put(f"/{subdir}/{name}-{version}-0.tar.bz2", make_old(name, version, **more)).status == 201
    new = make_conda("demo", "3.0", "0", **linux)
    assert channel.put("/linux-64/demo-3.0-0.conda", new).status == 201  # which it does not see


def reads(server, mark):
    """Reads in the access log since the last mark: paths and statuses."""
    return re.findall(r" GET /repositories/main/\w+/(\S+) (\d+)", log_since_mark(server, mark))


@pytest.mark.shows("install", by=("conda",))
def test_an_environment_is_made_and_a_second_one_finds_nothing_new(conda, server, tmp_path):
    put(server, "ch")
    for repository in ("ch", "all"):
        channel = f"{server.url}/repositories/main/{repository}"
        printed = conda(channel, "search", "demo")
        assert ("0.9" in printed, "1.0" in printed, "3.0" in printed) == (True, True, False)
        conda(channel, "create", "--yes", "--prefix", tmp_path / repository, "demo")
        found = [(tmp_path / repository / f"share/{name}.txt").read_text() for name in ("demo", "other")]
        assert found == ["1.0", "2.0"]
        reads(server, f"first-{repository}")
        conda(channel, "create", "--yes", "--prefix", tmp_path / f"{repository}-again", "demo")
        assert sorted(reads(server, f"second-{repository}")) == [
            (f"{subdir}/repodata.json", "304") for subdir in ("linux-64", "noarch")
        ]


@pytest.mark.shows("private", by=("conda",))
def test_a_private_channel_is_installed_from_by_token_address(conda, server, tmp_path):
    put(server, "private")
    channel = f"{server.url}/t/{TOKEN.replace('_', '-')}/repositories/main/private"
    conda(channel, "create", "--yes", "--prefix", tmp_path / "env", "demo")
    assert (tmp_path / "env/share/demo.txt").read_text() == "1.0"
    assert (TOKEN[7:] in server.output, TOKEN[7:].replace("_", "-") in server.output) == (False, False)


def test_an_explicit_lock_of_before_the_move_is_installed(conda, server, old, tmp_path):
    assert counts(take(HttpClient(server.url, ADMIN), "conda", old, "main/moved")) == (1, 0, 0)
    path = "noarch/other-2.0-0.tar.bz2"
    digest = hashlib.md5((old / path).read_bytes(), usedforsecurity=False).hexdigest()
    lock = tmp_path / "explicit.txt"  # as ``conda list --explicit --md5`` writes it
    lock.write_text(f"# platform: linux-64\n@EXPLICIT\n{server.url}/channels/old/{path}#{digest}\n")
    conda(f"{server.url}/channels/old", "create", "--yes", "--prefix", tmp_path / "env", "--file", lock)
    assert (tmp_path / "env/share/other.txt").read_text() == "2.0"


def test_a_twin_is_a_channel(conda, server, tmp_path):
    put(server, "twinned")
    done = run_pkgrepo(
        *("export", "main/twinned", str(tmp_path / "twin"), "--url", server.url),
        environ=client_environment(tmp_path / "cli"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with static(tmp_path / "twin") as channel:
        conda(channel, "create", "--yes", "--prefix", tmp_path / "env", "demo")
    assert [(tmp_path / f"env/share/{name}.txt").read_text() for name in ("demo", "other")] == ["1.0", "2.0"]


def test_a_view_of_the_past_has_the_version_of_then(conda, server, tmp_path):
    channel = HttpClient(f"{server.url}/repositories/main/dated", ADMIN)
    assert channel.put("/noarch/aged-1.0-0.tar.bz2", make_old("aged", "1.0")).status == 201
    then = now_between()
    assert channel.put("/noarch/aged-2.0-0.tar.bz2", make_old("aged", "2.0")).status == 201
    for number, sign in enumerate((f"%40{then}", "")):  # its solver drops channels with an @
        conda(f"{channel.url}{sign}", "create", "--yes", "--prefix", tmp_path / f"env{number}", "aged")
    assert [(tmp_path / f"env{number}/share/aged.txt").read_text() for number in (0, 1)] == ["1.0", "2.0"]
