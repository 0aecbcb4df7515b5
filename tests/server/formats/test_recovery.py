"""What every format shows in files, and gets back from them when the catalog is lost: hosted and of upstreams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted, proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.format_cases import CASES, VARIES
from tests.support.format_cases.case import Case
from tests.support.format_repositories import AUTH
from tests.support.http_client import HttpClient, Reply
from tests.support.server_process import restarts
from tests.support.timeouts import polled

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

SIGNING_KEY = re.compile(rb'"keyid":"[^"]*"')  # which is lost with the catalog
Shown = dict[str, list[tuple[int, bytes]]]


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shown, HttpClient, Path]]:
    """
    What a server showed before its catalog was lost, a client of it afterwards, and the folder of its files.

    Of the upstream of its proxies it had fetched some files; that is away afterwards.
    """
    folder, away = tmp_path_factory.mktemp("recovery"), tmp_path_factory.mktemp("away")
    data = DataFolder(folder / "data")
    own = "".join(hosted(name, f"{name}-own") for name in CASES)
    before: Shown = {}
    with restarts(away, own) as begin, restarts(folder) as start:
        upstream = begin()
        urls = {name: f"{upstream.url}/repositories/main/{name}-own{case.upstream}" for name, case in CASES.items()}
        proxies = "".join(proxy(name, f"{name}-mirror", url) for name, url in urls.items())
        settings = f'proxy.allow_private = ["127.0.0.1"]\n{own}{proxies}'
        server = start(settings)
        client = HttpClient(server.url, AUTH)
        for name, case in CASES.items():
            for each in (upstream, server):
                case.publish_by(HttpClient(f"{each.url}/repositories/main/{name}-own", AUTH))
            for kind in ("own", "mirror"):
                before[f"{name}-{kind}"] = shown(client, case, kind)
            polled(lambda name=name: client.get(f"/api/repository/main%2F{name}-mirror/packages").json["items"])
        saved = pkgrepo(data, "backup", str(folder / "backups"))
        assert saved.returncode == 0, saved.stderr
        upstream.stop()
        stop_in_step(server, data)
        data.delete_catalog()
        done = pkgrepo(data, "reindex")
        assert done.returncode == 0, done.stderr
        yield before, HttpClient(start(settings).url, AUTH), data.layout


def shown(client: HttpClient, case: Case, kind: str) -> list[tuple[int, bytes]]:
    """The documents of ``demo`` and its files, as clients read them."""
    base = f"/repositories/main/{case.format}-{kind}"
    replies: list[Reply] = [client.get(f"{base}{path}") for path in (*case.documents, *case.files)]
    texts = (SIGNING_KEY.sub(b"", VARIES.sub(b"", each.body)) for each in replies)
    return [(each.status, text.replace(client.url.encode(), b"")) for each, text in zip(replies, texts, strict=True)]


def test_files_lie_below_their_repository(recovered: tuple[Shown, HttpClient, Path], case: Case) -> None:
    before, _, layout = recovered
    contents = {each.read_bytes() for each in (layout / f"{case.format}-own").rglob("*") if each.is_file()}
    assert before[f"{case.format}-own"][-1][1] in contents


def test_a_hosted_repository_is_as_it_was(recovered: tuple[Shown, HttpClient, Path], case: Case) -> None:
    before, client, _ = recovered
    assert {status for status, _ in before[f"{case.format}-own"]} == {200}
    assert shown(client, case, "own") == before[f"{case.format}-own"]


def test_a_proxy_has_what_it_kept(recovered: tuple[Shown, HttpClient, Path], case: Case) -> None:
    before, client, _ = recovered
    after = client.below(f"repositories/main/{case.format}-mirror")
    document = after.get(case.documents[0])
    if case.is_folder:
        assert document.status in (502, 503, 504)
    else:
        assert (document.status, case.shown in document.body) == (200, True)
    assert after.get(case.files[0]).body == before[f"{case.format}-mirror"][-1][1]
    assert after.get(case.older).status in (404, 502, 503)


def test_the_proof_of_a_backup_reads_each_format(recovered: tuple[Shown, HttpClient, Path], tmp_path: Path) -> None:
    backups = recovered[2].parents[3] / "backups"
    new, options = DataFolder(tmp_path / "new"), ("--check", "--json", "--scratch", str(tmp_path / "scratch"))
    proved = pkgrepo(new, "restore", str(backups), *options)
    assert proved.returncode == 0, proved.stderr
    proof = json.loads(proved.stdout)
    assert proof["problems"] == []
    assert {*proof["formats"]} == {*CASES}
