"""Kept artifacts after the catalog was rebuilt from the readable layout, while the upstream is down."""

import hashlib

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.maven import MavenUpstream

from .conftest import two_routes

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

DIRECTORY = "/com/example/kept"


def versions_in(reply):
    """The versions that metadata list."""
    assert reply.status == 200
    return [each.partition("<")[0] for each in reply.text.split("<version>")[1:]]


def test_kept_artifacts_survive_a_lost_catalog(tmp_path):
    with MavenUpstream() as first, MavenUpstream() as second:
        jar = first.deploy("com.example", "kept", "1.0")
        later = first.deploy("com.example", "kept", "1.10")
        first.deploy("com.example", "kept", "2.0")
        other = second.deploy("com.example", "kept", "1.9")
        build = first.build("com.example", "kept", "3-SNAPSHOT", "20240102.030405", 6, b"a build")
        configuration = 'proxy.allow_private = ["127.0.0.1"]\n'
        configuration += hosted("maven", mirror=two_routes(first.url, second.url))
        with restarts(tmp_path, configuration) as start:
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            for each in (jar, later, later.replace(".jar", ".pom"), other, build):
                assert mirror.get(each).status == 200
            assert "2.0" in versions_in(mirror.get(f"{DIRECTORY}/maven-metadata.xml"))
            data = DataFolder(tmp_path / "data")
            stop_in_step(server, data)
            data.delete_catalog()
            done = pkgrepo(data, "reindex")
            assert done.returncode == 0, done.stderr
            first.stop()
            second.stop()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert mirror.get(jar).body == b"kept 1.0"
            metadata = mirror.get(f"{DIRECTORY}/maven-metadata.xml")
            assert versions_in(metadata) == ["1.0", "1.9", "1.10", "3-SNAPSHOT"]
            assert "<release>1.10</release>" in metadata.text
            digest = hashlib.sha1(metadata.body).hexdigest()
            assert mirror.get(f"{DIRECTORY}/maven-metadata.xml.sha1").text == digest
            snapshot = mirror.get(f"{DIRECTORY}/3-SNAPSHOT/maven-metadata.xml").text
            assert "<timestamp>20240102.030405</timestamp><buildNumber>6<" in "".join(snapshot.split())
            assert "<value>3-20240102.030405-6</value>" in snapshot
            assert mirror.get(build).body == b"a build"
            assert mirror.get("/com/example/lost/maven-metadata.xml").status == 503
            stop_in_step(server, data)  # it would not ask again for a while
            first.start()
            server = start()
            mirror = HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD))
            assert versions_in(mirror.get(f"{DIRECTORY}/maven-metadata.xml", Cache_Control="no-cache")) == [
                "1.0",
                "1.9",
                "1.10",
                "2.0",
                "3-SNAPSHOT",
            ]
            stop_in_step(server, data)
