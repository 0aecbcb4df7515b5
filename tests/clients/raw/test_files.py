"""curl, wget and aria2 put and fetch files, hosted and through a proxy of a static tree."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.client_programs import client_environment, program
from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ADMIN
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import polled

pytestmark = pytest.mark.clients

CONFIG = hosted("raw", "files")
BIG = bytes(range(256)) * 8192

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program in an empty folder; its output and status."""
    place = tmp_path / "work"
    place.mkdir()

    def call(name: str, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        command = [program(name), *arguments]
        environment = client_environment(tmp_path)
        return subprocess.run(command, check=False, cwd=place, env=environment, input=data, capture_output=True)

    return call


@pytest.fixture
def base(server: ServerProcess) -> str:
    return f"{server.url}/repositories/main/files"


LOGIN = ("-sS", "--fail-with-body", "-u", ":".join(ADMIN))


@pytest.mark.shows("publish", "install", by=("curl",))
def test_curl_puts_and_fetches(run: Run, base: str, tmp_path: Path) -> None:
    (tmp_path / "work" / "big.bin").write_bytes(BIG)
    made = run("curl", *LOGIN, "-T", "big.bin", f"{base}/tool/1.0/")
    assert (made.returncode, made.stdout[:12]) == (0, b"stored tool/"), made
    assert run("curl", *LOGIN, "-T", "-", f"{base}/tool/1.0/piped", data=b"from a pipe").returncode == 0
    assert run("curl", "-sf", f"{base}/tool/1.0/piped").stdout == b"from a pipe"
    sent = run("curl", *LOGIN, "-F", "file=@big.bin", f"{base}/tool/forms/")
    assert (sent.returncode, sent.stdout[:25]) == (0, b"stored tool/forms/big.bin"), sent
    assert run("curl", "-sf", f"{base}/tool/forms/big.bin").stdout == BIG
    refused = run("curl", *LOGIN, "-T", "big.bin", f"{base}/tool/1.0")
    assert (refused.returncode, b"is a folder; with a slash at the end" in refused.stdout) == (22, True)
    refused = run("curl", *LOGIN, "-H", "If-None-Match: *", "-T", "big.bin", f"{base}/tool/1.0/piped")
    assert (refused.returncode, refused.stdout[:26]) == (22, b"error: nothing was stored:")
    sums = run("curl", "-sf", f"{base}/tool/1.0/big.bin.sha256").stdout
    assert run("sha256sum", "-c", "-", data=sums).returncode == 0
    packed = run("curl", "-sf", f"{base}/tool/?archive=tar.gz").stdout
    assert run("tar", "xzO", "1.0/piped", data=packed).stdout == b"from a pipe"


def test_downloads_go_on_where_they_stopped(run: Run, base: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "big.bin").write_bytes(BIG)
    assert run("curl", *LOGIN, "-T", "big.bin", f"{base}/ranges/1.0/").returncode == 0
    for arguments in (("curl", "-sf", "-C", "-", "-O"), ("wget", "-q", "-c"), ("aria2c", "-q", "-c", "-x4", "-k1M")):
        (work / "big.bin").write_bytes(BIG[:1000])
        assert run(*arguments, f"{base}/ranges/1.0/big.bin").returncode == 0, arguments
        assert (work / "big.bin").read_bytes() == BIG, arguments
    before = (work / "big.bin").stat().st_mtime_ns
    assert run("wget", "-q", "-N", f"{base}/ranges/1.0/big.bin").returncode == 0
    assert run("wget", "-q", "-N", f"{base}/ranges/1.0/big.bin").returncode == 0
    assert (work / "big.bin").stat().st_mtime_ns <= before


@pytest.mark.shows("install", by=("wget",))
def test_wget_fetches_a_folder(run: Run, base: str, tmp_path: Path) -> None:
    for path in ("tree/1.0/a.txt", "tree/1.0/deep/b%20c.txt"):
        assert run("curl", *LOGIN, "-T", "-", f"{base}/{path}", data=path.encode()).returncode == 0
    assert run("wget", "-q", "-r", "-np", "-nH", "--cut-dirs=3", f"{base}/tree/1.0/").returncode == 0
    found = tmp_path / "work" / "tree" / "1.0"
    assert (found / "a.txt").read_bytes() == b"tree/1.0/a.txt"
    assert (found / "deep" / "b c.txt").read_bytes() == b"tree/1.0/deep/b%20c.txt"


class _Tree(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[tuple[Path, http.server.ThreadingHTTPServer]]:
    """A folder that a web server shows."""
    folder = tmp_path / "upstream"
    (folder / "tool" / "1.0").mkdir(parents=True)
    (folder / "tool" / "1.0" / "tool-1.0.bin").write_bytes(BIG)
    (folder / "tool" / "latest.txt").write_bytes(b"1.0")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Tree, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, server
    server.shutdown()
    server.server_close()


def test_a_static_tree_is_served_on_without_its_server(
    run: Run, tmp_path: Path, upstream: tuple[Path, http.server.ThreadingHTTPServer]
) -> None:
    folder, tree = upstream
    config = (
        '[proxy]\nallow_private = ["127.0.0.0/8"]\n'
        + hosted("raw", "files")
        + proxy("raw", "cache", f"http://127.0.0.1:{tree.server_address[1]}/", cache_ttl="0")
        + virtual("raw", "all", "main/files", "main/cache")
    )
    place = tmp_path / "server"
    place.mkdir()
    with running(place, config) as server:
        base = f"{server.url}/repositories/main/all"
        assert run("curl", "-sf", f"{base}/tool/1.0/tool-1.0.bin").stdout == BIG
        assert run("curl", "-sf", f"{base}/tool/latest.txt").stdout == b"1.0"
        changed = folder / "tool" / "latest.txt"
        changed.write_bytes(b"2.00")
        os.utime(changed, (changed.stat().st_mtime + 60,) * 2)  # its server compares seconds
        # a request joins the transfer of the one before until that is stored
        polled(lambda: run("curl", "-sf", f"{base}/tool/latest.txt").stdout == b"2.00")
        assert run("curl", "-sf", f"{base}/tool/none").returncode == 22
        tree.shutdown()
        tree.server_close()
        assert run("curl", "-sf", f"{base}/tool/1.0/tool-1.0.bin").stdout == BIG
        assert run("curl", "-sf", f"{base}/tool/latest.txt").stdout == b"2.00"
        failed = run("curl", "-s", "-w", "%{http_code}", f"{base}/tool/other")
        assert failed.stdout[-3:] in (b"502", b"503"), failed.stdout
        assert (
            run("curl", *LOGIN, "-T", "-", f"{server.url}/repositories/main/files/own/1/x", data=b"own").returncode == 0
        )
        assert run("curl", "-sf", f"{base}/own/1/x").stdout == b"own"
