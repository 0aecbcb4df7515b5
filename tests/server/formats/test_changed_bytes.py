"""Stored bytes that a disk has changed are not served: they are fetched again, or the request fails."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import pytest
import requests

from tests.support.configurations import hosted, proxy
from tests.support.data_folder import DataFolder, stop_in_step
from tests.support.format_cases import CASES
from tests.support.format_cases.case import Case
from tests.support.format_repositories import AUTH
from tests.support.http_client import HttpClient
from tests.support.server_process import restarts
from tests.support.timeouts import TIMEOUT_S, polled

pytestmark = [pytest.mark.server, pytest.mark.folder("services of buckets compare bytes themselves")]

SIZES = (100_002, 600_000, 30_000_000)  # sent in one piece, and in several, and compared meanwhile


LOST_SIZES = (10_000, 200_000)  # read into memory, and sent from the file


def lose_bytes(data: DataFolder) -> None:
    """Remove the copies that are all of one letter, or cut them to half."""
    for copy in data.copies().values():
        content = copy.read_bytes()
        if content and not content.strip(b"l"):
            copy.unlink()
        elif content and not content.strip(b"s"):
            os.truncate(copy, len(content) // 2)


def change_bytes(data: DataFolder) -> None:
    """Change a bit in the middle of each stored copy, as a disk does: neither size nor time tells."""
    for copy in data.copies().values():
        content = bytearray(copy.read_bytes())
        if content:
            content[len(content) // 2] ^= 1
            copy.chmod(0o644)
            copy.write_bytes(content)
            copy.chmod(0o444)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """What the server keeps."""
    return DataFolder(tmp_path_factory.mktemp("changed") / "data")


@pytest.fixture(scope="module")
def changed(
    data: DataFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, bytes], HttpClient]]:
    """The files of proxies and hosted repositories by name and path, and a client of the server that has them."""
    folder, away = data.folder.parent, tmp_path_factory.mktemp("upstream")
    own = "".join(hosted(name, f"{name}-own") for name in CASES)
    with restarts(away, own) as begin, restarts(folder) as start:
        upstream = begin()
        urls = {name: f"{upstream.url}/repositories/main/{name}-own{case.upstream}" for name, case in CASES.items()}
        mirrors = "".join(proxy(name, f"{name}-mirror", url) for name, url in urls.items())
        settings = f'proxy.allow_private = ["127.0.0.1"]\n{own}{mirrors}'
        server = start(settings)
        client = HttpClient(server.url, AUTH)
        files: dict[str, bytes] = {}
        for name, case in CASES.items():
            for each in (upstream, server):
                case.publish_by(HttpClient(f"{each.url}/repositories/main/{name}-own", AUTH))
            for kind in ("own", "mirror"):
                below = client.below(f"repositories/main/{name}-{kind}")
                assert below.get(case.documents[0]).status == 200
                reply = below.get(case.files[0])
                assert reply.status == 200, reply.text
                files[f"{name}-{kind}"] = reply.body
            case.put_by(client.below(f"repositories/main/{name}-own"), "alone", case.versions[0])
            polled(lambda name=name: client.get(f"/api/repository/main%2F{name}-mirror/packages").json["items"])
        for size in SIZES:
            assert client.put(f"/repositories/main/raw-own/{size}.bin", b"%d" % size * (size // 6)).status == 201
        for size in LOST_SIZES:
            assert client.put(f"/repositories/main/raw-own/lost/{size}.bin", b"l" * size).status == 201
            assert client.put(f"/repositories/main/raw-own/short/{size}.bin", b"s" * size).status == 201
        stop_in_step(server, data)
        lose_bytes(data)
        change_bytes(data)
        yield files, HttpClient(start(settings).url, AUTH)


def test_a_proxy_fetches_it_again(changed: tuple[dict[str, bytes], HttpClient], case: Case) -> None:
    files, client = changed
    below = client.below(f"repositories/main/{case.format}-mirror")
    first = below.get(case.files[0])
    assert first.status == 500 or first.body == files[f"{case.format}-mirror"]
    second = below.get(case.files[0])
    assert (second.status, second.body) == (200, files[f"{case.format}-mirror"]), second.text


def test_a_hosted_file_is_refused(changed: tuple[dict[str, bytes], HttpClient], case: Case) -> None:
    _, client = changed  # what ``demo`` has is mended by the proxy, whose copy is the same
    below, path = client.below(f"repositories/main/{case.format}-own"), case.file_of("alone", case.versions[0])
    assert [below.get(path).status for _ in range(2)] == [500, 500]
    case.put_by(below, "alone", case.versions[1])
    assert below.get(case.file_of("alone", case.versions[1])).status == 200


def test_health_counts_them(changed: tuple[dict[str, bytes], HttpClient]) -> None:
    _, client = changed
    assert (
        client.get("/repositories/main/raw-own" + CASES["raw"].file_of("alone", CASES["raw"].versions[0])).status == 500
    )
    said = client.get("/readyz").json["checks"]["stored bytes"]
    assert "are damaged or missing" in said


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("part", ["", "bytes=0-9", "bytes=-1"])
def test_a_large_one_is_never_whole(changed: tuple[dict[str, bytes], HttpClient], size: int, part: str) -> None:
    _, client = changed
    url = f"{client.url}/repositories/main/raw-own/{size}.bin"
    try:
        reply = requests.get(url, auth=AUTH, headers={"Range": part} if part else {}, timeout=TIMEOUT_S)
    except requests.RequestException:
        return  # the connection ended before the last byte
    assert reply.status_code == 500


@pytest.mark.parametrize("size", LOST_SIZES)
@pytest.mark.parametrize("how", ["lost", "short"])
def test_one_that_is_lost_or_cut_is_known_to_be_so_from_its_first_read_on(
    data: DataFolder, changed: tuple[dict[str, bytes], HttpClient], size: int, how: str
) -> None:
    _, client = changed
    url = f"{client.url}/repositories/main/raw-own/{how}/{size}.bin"

    sha256 = hashlib.sha256(how[0].encode() * size).hexdigest()

    def state() -> str:
        found = data.rows("SELECT sha256, state FROM blob")
        return next(state for digest, state in found if bytes(digest).hex() == sha256)

    assert state() == "live"
    try:
        assert requests.get(url, auth=AUTH, timeout=TIMEOUT_S).status_code == 500
    except requests.RequestException:
        assert how == "short"  # the connection ended before the last byte
    polled(lambda: state() == "suspect")
    assert "are damaged or missing" in client.get("/readyz").json["checks"]["stored bytes"]
