"""Kept packages of a channel after the catalog was rebuilt from the readable layout, while the upstream is down."""

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.conda import CondaUpstream

from .test_proxied import files, shards, shown

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]


def test_kept_packages_survive_a_lost_catalog(tmp_path):
    with CondaUpstream() as upstream:
        package = upstream.add("kept", "1.0", depends=["other >=1"], record={"patched": True})
        old = upstream.add("kept", "0.9", ending=".tar.bz2")
        native = upstream.add("native", "1.0", subdir="linux-64", noarch=None)
        upstream.add("kept", "2.0")
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("conda", "mirror", upstream.url)
        with restarts(tmp_path, configuration) as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            places = ("/noarch/kept-1.0-py_0.conda", "/noarch/kept-0.9-py_0.tar.bz2", "/linux-64/native-1.0-py_0.conda")
            for place, content in zip(places, (package, old, native), strict=True):
                assert mirror.get(place).body == content
            before = shown(mirror)
            data = DataFolder(tmp_path / "data")
            stop_in_step(server, data)
            data.delete_catalog()
            done = pkgrepo(data, "reindex")
            assert done.returncode == 0, done.stderr
            upstream.stop()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            kept = {file: before[file] for file in ("kept-1.0-py_0.conda", "kept-0.9-py_0.tar.bz2")}
            assert before.keys() - kept.keys() == {"kept-2.0-py_0.conda"}
            for document in ("repodata.json", "current_repodata.json"):
                assert shown(mirror, document=document) == kept
                assert shown(mirror, "linux-64", document).keys() == {"native-1.0-py_0.conda"}
            assert shards(mirror).keys() == kept.keys()
            assert files(mirror.get("/noarch/run_exports.json").json).keys() == kept.keys()
            channel = mirror.get("/channeldata.json").json
            assert (sorted(channel["packages"]), channel["subdirs"]) == (["kept", "native"], ["noarch", "linux-64"])
            for place, content in zip(places, (package, old, native), strict=True):
                assert mirror.get(place).body == content
            assert mirror.get("/osx-64/repodata.json").status == 503
            stop_in_step(server, data)  # it would not ask again for a while
            upstream.start()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert shown(mirror) == before
            stop_in_step(server, data)
