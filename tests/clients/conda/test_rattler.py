"""py-rattler and rattler-build, the core of pixi: uploads, solves, installations and private channels."""

import json
import re
import sys

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.access_log import log_since_mark
from tests.support.client_programs import client_environment, run_client
from tests.support.conda_packages import make_installable
from tests.support.configurations import PRIVATE, hosted, tokens
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled

pytestmark = pytest.mark.clients

TOKEN = make_token(TokenKind.CI)
SCOPES = {"builder": ("main/*", ["read", "write"], [])}
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
COMMAND = {"demo-1.0.dist-info/entry_points.txt": b"[console_scripts]\ndemo-run = demo.cli:main\n"}


@pytest.fixture(scope="module")
def configuration():
    return hosted("python", "py", private=PRIVATE) + tokens(ADMIN[0], {"builder": TOKEN}, SCOPES)


def put_wheel(server, repository, filename, data):
    """Upload a wheel, which the first read of the channel finds there."""
    where = HttpClient(f"{server.url}/repositories/main/{repository}", ADMIN)
    assert where.put(f"/demo/1.0/{filename}", data).status == 201


@pytest.mark.shows("publish", "install", by=("rattler",))
def test_uploads_and_a_converted_wheel_are_installed_and_a_second_run_finds_nothing_new(server, rattler, tmp_path):
    channel = f"{server.url}/repositories/main/py/conda"
    packages = {
        "quetz": ("python", f"{PYTHON}.99", "h0_0", {"subdir": "linux-64", "noarch": None}),
        "artifactory": ("other", "2.0", "h0_0", {"depends": ["third"]}),
        "prefix": ("third", "3.0", "h0_0", {}),
    }
    for form, (name, version, build, index) in packages.items():
        file = tmp_path / f"{name}-{version}-{build}.conda"
        file.write_bytes(make_installable(name, version, build, {f"share/{name}.txt": b"x"}, **index))
        rattler(form=form, url=channel, token=TOKEN, files=[str(file)])
    extra = {"demo/cli.py": b"def main():\n    print('ran')\n", "demo-1.0.data/data/share/demo.txt": b"x", **COMMAND}
    put_wheel(
        server,
        "py",
        *make_wheel("demo", "1.0", requires_python=">=3", extra_files=extra, fields=[("Requires-Dist", "other>=2")]),
    )
    prefix = tmp_path / "env"
    arguments = {"channel": channel, "specs": ["demo"], "cache": str(tmp_path / "cache")}
    found = json.loads(rattler(prefix=str(prefix), **arguments).splitlines()[-1])
    expected = ["demo-1.0-py_0.conda", "other-2.0-h0_0.conda", f"python-{PYTHON}.99-h0_0.conda", "third-3.0-h0_0.conda"]
    assert found == expected
    environ = client_environment(tmp_path / "home", PYTHONPATH=str(prefix / f"lib/python{PYTHON}/site-packages"))
    shown = run_client(
        [sys.executable, "-c", "import demo, importlib.metadata as m; print(demo.__version__, m.version('demo'))"],
        environ=environ,
        folder=tmp_path,
    )
    assert shown.stdout.split() == ["1.0", "1.0"]
    ran = run_client([sys.executable, prefix / "bin" / "demo-run"], environ=environ, folder=tmp_path)
    assert ran.stdout == "ran\n"
    assert (prefix / "share/demo.txt").read_bytes() == b"x"
    assert len(traffic(server, "first")) == 2 + 4 + 4  # the indexes of two folders, shards, packages
    assert json.loads(rattler(prefix=str(tmp_path / "again"), **arguments).splitlines()[-1]) == expected
    indexes = [f"/repositories/main/py/conda/{each}/repodata_shards.msgpack.zst" for each in ("linux-64", "noarch")]
    assert sorted(traffic(server, "second")) == [(path, "304") for path in indexes]


def traffic(server, mark):
    """Reads of the channel since the last mark: paths and statuses in the access log, which requests of marks part."""
    return re.findall(r" GET (/repositories/main/py/conda/\S+) (\d+)", log_since_mark(server, mark))


@pytest.mark.shows("private", by=("rattler",))
def test_a_private_channel_is_installed_from_by_token_address_which_is_in_no_log(server, rattler, tmp_path):
    put_wheel(server, "private", *make_wheel("demo", "1.0"))
    python = make_installable("python", f"{PYTHON}.99", "h0_0", {"share/p": b""}, subdir="linux-64", noarch=None)
    below = "repositories/main/private/conda"
    where = HttpClient(f"{server.url}/{below}", ADMIN)
    assert where.put(f"/linux-64/python-{PYTHON}.99-h0_0.conda", python).status == 201
    hyphens = TOKEN.replace("_", "-")
    for number, channel in enumerate([f"{server.url}/t/{hyphens}/{below}", f"{server.url}/{below}/t/{TOKEN}"]):
        place = {"prefix": str(tmp_path / f"env{number}"), "cache": str(tmp_path / f"cache{number}")}
        assert "demo-1.0-py_0.conda" in rattler(channel=channel, specs=["demo"], **place)
    place = {"prefix": str(tmp_path / "no"), "cache": str(tmp_path / "none")}
    refused = rattler(status=1, channel=f"{server.url}/{below}", specs=["demo"], **place)
    assert "401" in refused
    assert TOKEN[7:] not in server.output


def test_a_block_of_the_project_is_one_of_its_package(server, rattler, tmp_path):
    below = "repositories/main/py"
    where, api = (HttpClient(f"{server.url}/{each}", ADMIN) for each in (below, "api"))
    channel = f"{server.url}/{below}/conda"
    python = make_installable("python", f"{PYTHON}.98", "h0_0", {"share/p": b""}, subdir="linux-64", noarch=None)
    assert where.put(f"/conda/linux-64/python-{PYTHON}.98-h0_0.conda", python).status in (200, 201)
    for version in ("1.0", "2.0"):
        filename, data = make_wheel("torch", version, requires_python=">=3")
        assert where.put(f"/torch/{version}/{filename}", data).status == 201

    def installed(name, status=0):
        place = {"prefix": str(tmp_path / name), "cache": str(tmp_path / f"{name}-cache")}
        return rattler(status=status, channel=channel, specs=["pytorch"], **place)

    polled(lambda: "pytorch-2.0-py_0.conda" in where.get("/conda/noarch/repodata.json").text)  # it is converted
    assert "pytorch-2.0-py_0.conda" in installed("before")
    body = {"repository": "main/py", "package": "torch", "versions": "2.0", "reason": "malware"}
    made = api.post_json("/policy/blocks", body)
    assert made.status == 201, made.text
    assert "pytorch-1.0-py_0.conda" in installed("after")
    assert api.post_json("/policy/blocks", {**body, "versions": ""}).status == 201
    assert "pytorch" in installed("none", status=1)
