"""py-rattler and rattler-build through a proxy and a virtual channel: cold, again, and without the upstream."""

from __future__ import annotations

import json
import re

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.access_log import log_since_mark
from tests.support.conda_packages import make_installable
from tests.support.configurations import config, hosted, proxy, tokens, virtual
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.server_process import running

pytestmark = pytest.mark.clients

TOKEN = make_token(TokenKind.CI)
INDEXES = [f"{each}/repodata_shards.msgpack.zst" for each in ("linux-64", "noarch")]


def log_of(server, repository, mark):
    """The reads of a channel in a server's log so far: paths and statuses. It is complete up to the mark."""
    log_since_mark(server, mark)
    return re.findall(rf" GET /repositories/main/{repository}/(\S+) (\d+)", server.output)


@pytest.mark.shows("proxy", "virtual", by=("rattler",))
def test_packages_of_an_upstream_and_own_ones_are_installed_again_and_without_the_upstream(
    tmp_path_factory, tmp_path, rattler
):
    configuration = tokens(ADMIN[0], {"builder": TOKEN}, {"builder": ("main/*", ["read", "write"], [])})
    with running(tmp_path_factory.mktemp("upstream"), hosted("conda", "ch") + configuration) as upstream:
        origin = HttpClient(f"{upstream.url}/repositories/main/ch", ADMIN)
        for name, index in (("other", {"depends": ["third"]}), ("third", {"subdir": "linux-64", "noarch": None})):
            for version in ("1.0", "2.0"):
                data = make_installable(name, version, "h0_0", {f"share/{name}.txt": version.encode()}, **index)
                subdir = index.get("subdir", "noarch")
                assert origin.put(f"/{subdir}/{name}-{version}-h0_0.conda", data).status == 201
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
            (
                configuration,
                hosted("conda", "own"),
                proxy("conda", "mirror", f"{upstream.url}/repositories/main/ch", cache_ttl="0"),
                virtual("conda", "all", "main/own", "main/mirror", publish_to="main/own"),
            )
        )
        with running(tmp_path_factory.mktemp("server"), configuration) as server:
            channel = f"{server.url}/repositories/main/all"
            own = tmp_path / "demo-1.0-h0_0.conda"
            own.write_bytes(make_installable("demo", "1.0", "h0_0", {"share/demo.txt": b"own"}, depends=["other"]))
            rattler(form="quetz", url=channel, token=TOKEN, files=[str(own)])
            arguments = {"channel": channel, "specs": ["demo"], "cache": str(tmp_path / "cache")}
            expected = ["demo-1.0-h0_0.conda", "other-2.0-h0_0.conda", "third-2.0-h0_0.conda"]

            def install(name, **others):
                printed = rattler(prefix=str(tmp_path / name), **{**arguments, **others})
                assert json.loads(printed.splitlines()[-1]) == expected
                files = [(tmp_path / name / f"share/{each}.txt").read_bytes() for each in ("demo", "other", "third")]
                assert files == [b"own", b"2.0", b"2.0"]

            install("first")
            seen, asked = len(log_of(server, "all", "first")), len(log_of(upstream, "ch", "first"))
            install("again")
            assert sorted(log_of(server, "all", "again")[seen:]) == [(path, "304") for path in INDEXES]
            again = log_of(upstream, "ch", "again")[asked:]
            assert {status for _, status in again} == {"304"}, again
            upstream.stop()
            install("offline", cache=str(tmp_path / "empty"))
            mirror = {"channel": f"{server.url}/repositories/main/mirror", "specs": ["other"]}
            place = {"prefix": str(tmp_path / "mirror"), "cache": str(tmp_path / "none")}
            assert json.loads(rattler(**mirror, **place).splitlines()[-1]) == expected[1:]


def test_package_that_the_channel_replaces_is_installed_again(tmp_path_factory, tmp_path, rattler):
    overwritable = hosted("conda", ch=config(policy="allow_overwrite = true"))
    with running(tmp_path_factory.mktemp("upstream"), overwritable) as upstream:
        origin = HttpClient(f"{upstream.url}/repositories/main/ch", ADMIN)
        mirrored = proxy("conda", "mirror", f"{upstream.url}/repositories/main/ch", cache_ttl="0")
        with running(tmp_path_factory.mktemp("server"), f'proxy.allow_private = ["127.0.0.1"]\n{mirrored}') as server:
            mirror = f"{server.url}/repositories/main/mirror"
            for content in (b"first", b"second"):
                data = make_installable("demo", "1.0", "h0_0", {"share/demo.txt": content})
                assert origin.put("/noarch/demo-1.0-h0_0.conda?force=true", data).status == 201
                prefix = tmp_path / content.decode()
                rattler(channel=mirror, specs=["demo"], prefix=str(prefix), cache=str(tmp_path / "cache"))
                assert (prefix / "share/demo.txt").read_bytes() == content
