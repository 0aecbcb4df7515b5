"""Kept gems after the catalog was rebuilt from the readable layout, while the upstream is down."""

import gzip
import hashlib

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.rubygems import RubyUpstream

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]


def test_kept_gems_survive_a_lost_catalog(tmp_path):
    with RubyUpstream() as upstream:
        upstream.add("left", created="2024-01-02T00:00:00Z")
        gem = upstream.add("kept", dependencies={"left": [(">=", "1.0"), ("<", "3")]}, created="2024-01-02T00:00:00Z")
        second = upstream.add("kept", "1.1.0.pre", created="2024-01-01T00:00:00Z")
        upstream.add("kept", "2.0.0")
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("ruby", "mirror", upstream.url)
        with restarts(tmp_path, configuration) as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert mirror.get("/gems/kept-1.1.0.pre.gem").body == second
            assert mirror.get("/gems/kept-1.0.0.gem").body == gem
            lines = mirror.get("/info/kept").text.splitlines()
            data = DataFolder(tmp_path / "data")
            stop_in_step(server, data)
            data.delete_catalog()
            done = pkgrepo(data, "reindex")
            assert done.returncode == 0, done.stderr
            upstream.stop()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            info = mirror.get("/info/kept")
            # In the order of their publication, and with the requirements of the gem itself.
            assert info.text.splitlines() == ["---", lines[2], lines[1].replace("left:>= 1.0&< 3", "left:< 3&>= 1.0")]
            listed = mirror.get("/versions").text.partition("---\n")[2]
            assert listed == f"kept 1.1.0.pre,1.0.0 {hashlib.md5(info.body).hexdigest()}\n"
            assert mirror.get("/names").text == "---\nkept\n"
            assert b"kept" in gzip.decompress(mirror.get("/specs.4.8.gz").body)
            assert b"1.1.0.pre" in gzip.decompress(mirror.get("/prerelease_specs.4.8.gz").body)
            assert b"1.0.0" in gzip.decompress(mirror.get("/latest_specs.4.8.gz").body)
            assert mirror.get("/gems/kept-1.0.0.gem").body == gem
            assert mirror.get("/info/left").status == 503
            stop_in_step(server, data)  # it would not ask again for a while
            upstream.start()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert mirror.get("/versions").body == upstream.versions
            assert mirror.get("/info/kept").body == upstream.info("kept")
            stop_in_step(server, data)
