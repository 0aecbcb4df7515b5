"""The server under the filters of system calls of the systemd unit: workers, TLS, proxies, buckets and PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from pkgrepo.proxy.parts.normalising import SMALL
from tests.support.certificates import write_certificate
from tests.support.images import make_image
from tests.support.postgresql import as_url
from tests.support.postgresql_catalogs import Databases
from tests.support.python_packages import make_wheel
from tests.support.s3_servers import s3_server
from tests.support.server_process import clean_environment, twistd_process
from tests.support.timeouts import TIMEOUT_S
from tests.support.unit_filters import ROOT, UNIT, confinement, launcher
from tests.support.upstreams.conda import CondaUpstream
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream
from tests.support.upstreams.server import ScriptedUpstream
from tests.support.workers import AUTH, workers_of

pytestmark = pytest.mark.server

LONG = "x" * (2 * SMALL)  # in a document, which is then processed by a process of its own
# Each prints what the kernel says to it.
ATTEMPTS = {
    "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)": "PermissionError",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)": "OSError",
    "os.chown('.', 0, 0)": "PermissionError",
    "os.mkdir('of-everybody', 0o4755)": "PermissionError",
    "os.sched_setaffinity(0, os.sched_getaffinity(0))": "PermissionError",
    "ctypes.CDLL(None, use_errno=True).unshare(0x20000) and os.close(-ctypes.get_errno())": "OSError",
    "os.nice(5)": "",
    "subprocess.run(['true'])": "",
}
TRY = """
import ctypes, mmap, os, socket, subprocess, sys
try:
    eval(sys.argv[1])
except OSError as error:
    print(type(error).__name__)
"""


def npm(upstream: NpmUpstream) -> tuple[str, str, bytes]:
    data = upstream.add("demo", pad=100_000)
    upstream.change("demo", readme=LONG)
    return "demo", "demo/-/demo-1.0.0.tgz", data


def python(upstream: PythonUpstream) -> tuple[str, str, bytes]:
    filename, data = upstream.add("demo", pad=100_000)
    [file] = upstream.projects["demo"]
    others = (f"demo-2.{n}-py3-none-any.whl" for n in range(SMALL // 200))
    upstream.projects["demo"] += [{**file, "filename": each, "url": f"{upstream.url}/{each}"} for each in others]
    return "simple/demo/", f"packages/demo/1.0/{filename}", data


def ruby(upstream: RubyUpstream) -> tuple[str, str, bytes]:
    data = upstream.add("demo", pad=100_000)
    upstream.infos["demo"] += [f"2.{n} |checksum:{n:064x}".encode() for n in range(SMALL // 50)]
    return "info/demo", "gems/demo-1.0.0.gem", data


def conda(upstream: CondaUpstream) -> tuple[str, str, bytes]:
    data = upstream.add("demo", record={"timestamp": 1_700_000_000_000, "summary": LONG})
    return "noarch/repodata.json", "noarch/demo-1.0-py_0.conda", data


def maven(upstream: MavenUpstream) -> tuple[str, str, bytes]:
    _, data = make_wheel("demo", "1.0", pad=100_000)  # a zip like any jar
    file = upstream.deploy("com.example", "demo", "1.0", data)
    return "com/example/demo/maven-metadata.xml", file.lstrip("/"), data


def docker(upstream: ContainerUpstream) -> tuple[str, str, bytes]:
    image = make_image("demo")
    upstream.push("team/demo", image, "v1")
    return "team/demo/manifests/v1", f"team/demo/manifests/{image.digest}", image.manifest


# By the name of the format: its upstream, and what fills it and returns the paths of a document and a file.
PROXIES: dict[str, tuple[type[ScriptedUpstream], Callable[..., tuple[str, str, bytes]]]] = {
    "npm": (NpmUpstream, npm),
    "python": (PythonUpstream, python),
    "ruby": (RubyUpstream, ruby),
    "conda": (CondaUpstream, conda),
    "maven": (MavenUpstream, maven),
    "docker": (ContainerUpstream, docker),
}


class Client:
    """Requests of the admin."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._session = session

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        answer = self._session.request(method, f"{self._url}/{path}", timeout=TIMEOUT_S, **options)
        assert answer.ok, answer.text
        return answer

    def add(self, name: str, format_: str, storage: str = "main", **config: Any) -> None:
        value = {"name": name, "storage": storage, "format": format_, "visibility": "public"}
        self.ask("POST", "api/repository", json={**value, "config": {"type": "Hosted", **config}})

    def use(self, storage: str) -> None:
        """Publish into a repository of a storage, and read."""
        self.add("py", "python", storage)
        filename, data = make_wheel("demo", "1.0", pad=12_000_000)
        path = f"repositories/{storage}/py/demo/1.0/{filename}"
        self.ask("PUT", path, data=data)
        assert self.ask("GET", path).content == data


@contextmanager
def confined(folder: Path, unit: Path = UNIT, **variables: str) -> Iterator[Client]:
    """A server of two workers that speaks TLS, under the filters, which trusts upstreams with its own certificate."""
    certificate, key = write_certificate(folder)
    names = ["tls.cert", "tls.key", "proxy.ca_file"]
    options = [f"--set={name}={value}" for name, value in zip(names, (certificate, key, certificate), strict=True)]
    environ = {"PKGREPO_SERVER__WORKERS": "2", "PKGREPO_PROXY__ALLOW_PRIVATE": '["127.0.0.1"]', **variables}
    process = twistd_process(folder, *options, environ=environ, launcher=launcher(unit))
    try:
        process.wait_ready()
        with requests.Session() as session:
            session.trust_env = False  # REQUESTS_CA_BUNDLE
            session.auth, session.verify = AUTH, str(certificate)
            yield Client(process.url, session)
        assert len(workers_of(process.pid)) == 2
    finally:
        process.stop()
    assert "Traceback" not in process.output, process.output


@pytest.mark.parametrize(("attempt", "refusal"), ATTEMPTS.items())
def test_the_filters_refuse_what_the_unit_refuses(tmp_path: Path, attempt: str, refusal: str) -> None:
    command = [*launcher(), sys.executable, "-c", TRY, attempt]
    environ = clean_environment(PYTHONPATH=str(ROOT))
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == refusal


def test_the_unit_confines_its_processes() -> None:
    lines = confinement(UNIT)
    assert lines["MemoryDenyWriteExecute"] == ["yes"]
    assert lines["SystemCallFilter"][0] == "@system-service"


@pytest.mark.parametrize("format_", PROXIES)
def test_proxies_fetch_by_tls(proxying: tuple[Client, Path], format_: str) -> None:
    use_proxy(*proxying, format_)


def test_documents_are_processed_where_no_priority_may_be_set(tmp_path: Path) -> None:
    stricter = tmp_path / "stricter.service"
    stricter.write_text(UNIT.read_text().replace("SystemCallFilter=setpriority\n", ""))
    assert len(confinement(stricter)["SystemCallFilter"]) == 2
    with confined(tmp_path, stricter) as client:
        use_proxy(client, tmp_path / "server.crt", "npm")


def use_proxy(client: Client, certificate: Path, format_: str) -> None:
    kind, fill = PROXIES[format_]
    with kind(certificate=(certificate, certificate.with_suffix(".key"))) as upstream:
        document, file, data = fill(upstream)
        url = upstream.simple if isinstance(upstream, PythonUpstream) else upstream.url
        client.add(format_, format_, type="Proxy", proxy={"routes": [{"url": url, "name": "up"}]})
        base = f"v2/main/{format_}" if format_ == "docker" else f"repositories/main/{format_}"
        assert client.ask("GET", f"{base}/{document}").content
        assert client.ask("GET", f"{base}/{file}").content == data


@pytest.fixture(scope="module")
def proxying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    folder = tmp_path_factory.mktemp("proxying")
    with confined(folder) as client:
        yield client, folder / "server.crt"


def test_files_are_kept_in_a_bucket(tmp_path: Path) -> None:
    with ExitStack() as stack:
        place = tmp_path / "s3"
        place.mkdir()
        certificate, key = write_certificate(place)
        s3 = stack.enter_context(s3_server(None, None, "--cert", certificate, "--key", key))
        client = stack.enter_context(confined(tmp_path))
        settings = {**s3.settings("confined"), "ca_file": str(certificate)}
        client.ask("POST", "api/storage", json={"name": "cloud", "type": "S3", "settings": settings})
        client.use("cloud")


def test_the_catalog_is_in_postgresql(tmp_path: Path, databases: Databases) -> None:
    with databases.another() as found, confined(tmp_path, PKGREPO_DATABASE__URL=as_url(found)) as client:
        client.use("main")
