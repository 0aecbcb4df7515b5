"""Kept packages in the readable layout, and after the catalog was rebuilt from it."""

from urllib.parse import urlsplit

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.npm import NpmUpstream

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

SHORT = "application/vnd.npm.install-v1+json"
THEIRS = {"signatures": [{"keyid": "theirs", "sig": "s"}]}


def test_kept_packages_survive_a_lost_catalog(tmp_path):
    with NpmUpstream() as upstream:
        tarball = upstream.add("@sc/kept", dist=THEIRS, dependencies={"left": "^1.0.0"}, deprecated="use another")
        upstream.add("@sc/kept", "1.1.0", dist=THEIRS)
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("npm", "mirror", upstream.url)
        with restarts(tmp_path, configuration) as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert mirror.get("/@sc/kept/-/kept-1.0.0.tgz").body == tarball
            before = mirror.get("/@sc%2fkept").json
            data = DataFolder(tmp_path / "data")
            stop_in_step(server, data)
            layout = data.layout / "mirror" / "@sc" / "kept" / "1.0.0"
            assert (layout / "kept-1.0.0.tgz").read_bytes() == tarball
            assert not (layout.parent / "1.1.0").exists()
            data.delete_catalog()
            done = pkgrepo(data, "reindex")
            assert done.returncode == 0, done.stderr
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            upstream.stop()
            assert mirror.get("/@sc/kept/-/kept-1.0.0.tgz").body == tarball
            document = mirror.get("/@sc%2fkept").json
            # Of the server's address the port is another one.
            tarballs = [each["versions"]["1.0.0"]["dist"].pop("tarball") for each in (before, document)]
            path = "/repositories/main/mirror/@sc/kept/-/kept-1.0.0.tgz"
            assert [urlsplit(each).path for each in tarballs] == [path] * 2
            assert document["versions"] == {"1.0.0": before["versions"]["1.0.0"]}
            assert (document["dist-tags"], document["time"]["1.0.0"]) == ({"latest": "1.0.0"}, before["time"]["1.0.0"])
            short = mirror.get("/@sc%2fkept", Accept=SHORT).json
            assert short["versions"]["1.0.0"]["dependencies"] == {"left": "^1.0.0"}
            assert mirror.get("/@sc/kept/-/kept-1.1.0.tgz").status == 503
            found = mirror.get("/-/v1/search?text=kept").json["objects"]
            assert [each["package"]["version"] for each in found] == ["1.0.0"]
            stop_in_step(server, data)  # it would not ask again for a while
            upstream.start()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            document = mirror.get("/@sc%2fkept", Cache_Control="no-cache").json
            assert list(document["versions"]) == ["1.0.0", "1.1.0"]
            assert document["versions"]["1.0.0"]["dist"]["signatures"] == THEIRS["signatures"]
            stop_in_step(server, data)
