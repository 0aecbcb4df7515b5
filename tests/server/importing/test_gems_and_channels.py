"""Gems and conda packages are taken in: from folders, and from servers with a compact, a legacy or no index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.conda_packages import make_conda, make_tar_bz2
from tests.support.configurations import hosted
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.imports import counts, static, take, write
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

GEMS = {
    "gems/alpha-1.0.0.gem": make_gem("alpha", "1.0.0"),
    "gems/alpha-1.1.0.gem": make_gem("alpha", "1.1.0"),
    "more/beta-tool-2.0.gem": make_gem("beta-tool", "2.0"),
    "more/odd.gem": b"no gem",
    "more/wrong-1.0.gem": make_gem("other", "1.0"),
}
CHANNEL = {
    "noarch/demo-1.0-py_0.conda": make_conda(noarch="python", subdir="noarch"),
    "linux-64/demo-0.9-py_0.tar.bz2": make_tar_bz2(version="0.9", subdir="linux-64"),
    "linux-64/demo-1.0-other_0.conda": b"damaged",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with gems and one with a channel."""
    folder = tmp_path_factory.mktemp("sources")
    write(folder / "gems", GEMS)
    write(folder / "channel", CHANNEL)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Iterator[ServerProcess]:
    settings = f'proxy.allow_private = ["127.0.0.1"]\nimports.folders = ["{sources}"]\n'
    settings += hosted("ruby", "gems", "gems-again", "gems-legacy") + hosted("conda", "channel", "channel-again")
    with running(tmp_path_factory.mktemp("server"), settings) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


def test_gems_are_taken_in_from_a_folder_and_from_a_server(client, server, sources, tmp_path) -> None:
    first = take(client, "ruby", sources / "gems", "main/gems")
    assert counts(first) == (3, 0, 2), first
    assert {each["item"] for each in first["left_out"]} == {"more/odd.gem", "wrong-1.0.gem"}
    again = take(client, "ruby", sources / "gems", "main/gems")
    assert counts(again) == (0, 0, 2)
    assert b"created_at:2014-05-13" in client.get("/repositories/main/gems/info/alpha").body
    url = f"{server.url}/repositories/main/gems"
    assert counts(take(client, "ruby", url, "main/gems-again")) == (3, 0, 0)
    assert counts(take(client, "ruby", url, "main/gems-again")) == (0, 0, 0)
    assert counts(take(client, "ruby", url, "main/gems-again", again=True)) == (0, 3, 0)
    for name in ("alpha", "beta-tool"):
        there, here = (client.get(f"/repositories/main/{each}/info/{name}").body for each in ("gems", "gems-again"))
        assert there == here
    legacy = {path: client.get(f"/repositories/main/gems/{path}").body for path in LEGACY}
    with static(write(tmp_path, legacy)) as address:
        assert counts(take(client, "ruby", address, "main/gems-legacy")) == (3, 0, 0)
        assert counts(take(client, "ruby", address, "main/gems-legacy")) == (0, 0, 0)


LEGACY = (
    "specs.4.8.gz",
    "prerelease_specs.4.8.gz",
    "gems/alpha-1.0.0.gem",
    "gems/alpha-1.1.0.gem",
    "gems/beta-tool-2.0.gem",
)


def test_the_storage_of_gemstash_is_taken_in(client, sources) -> None:
    """Its layout is that of ``Gemstash::Resource``: a folder for each gem, whose name does not tell that of the gem."""
    stored = {
        "gems/private/g/e/m/gem_one_1_0_0-" + "0" * 32: True,
        "gems/private/g/e/m/gem_two_1_0_0-" + "1" * 32: False,
    }
    files = {}
    for folder, indexed in stored.items():
        name = "gem-one" if indexed else "gem-two"
        files[f"{folder}/gem"] = make_gem(name, "1.0.0")
        files[f"{folder}/properties.yaml"] = f"---\n:indexed: {str(indexed).lower()}\n".encode()
    result = take(client, "ruby", write(sources / "gemstash", files), "main/gems-legacy")
    assert counts(result) == (1, 0, 1), result
    assert client.get("/repositories/main/gems-legacy/gems/gem-one-1.0.0.gem").status == 200


def test_a_yanked_gem_stays_yanked(client, sources) -> None:
    form = "gem_name=beta-tool&version=2.0"
    take(client, "ruby", sources / "gems", "main/gems")
    yanked = client.ask("DELETE", f"/repositories/main/gems/api/v1/gems/yank?{form}")
    assert yanked.status == 200, yanked.text
    assert counts(take(client, "ruby", sources / "gems", "main/gems", again=True)) == (0, 3, 2)
    assert client.get("/repositories/main/gems/gems/beta-tool-2.0.gem").status == 404


def test_a_channel_is_taken_in_from_a_folder_and_from_a_server(client, server, sources) -> None:
    first = take(client, "conda", sources / "channel", "main/channel")
    assert counts(first) == (2, 0, 1), first
    assert counts(take(client, "conda", sources / "channel", "main/channel")) == (0, 0, 1)
    url = f"{server.url}/repositories/main/channel"
    assert counts(take(client, "conda", url, "main/channel-again")) == (2, 0, 0)
    assert counts(take(client, "conda", url, "main/channel-again", again=True)) == (0, 2, 0)
    for subdir in ("noarch", "linux-64"):
        there, here = (
            client.get(f"/repositories/main/{each}/{subdir}/repodata.json").json
            for each in ("channel", "channel-again")
        )
        assert (there["packages"], there["packages.conda"]) == (here["packages"], here["packages.conda"])
