"""The readable layout of a Maven repository is one itself, and a lost catalog is rebuilt from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

POM = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<project><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId><artifactId>app</artifactId>
<version>1.0</version><description>K\xe4se</description><licenses><license><name>MIT</name></license></licenses>
</project>"""
BUILD = "1.1-20240102.030405-6"

PLUGINS = b"""<metadata><plugins>
<plugin><name>Demo</name><prefix>demo</prefix><artifactId>demo-maven-plugin</artifactId></plugin>
</plugins></metadata>"""
DOCUMENTS = ["com/example/app", "com/example/app/1.0", "com/example/app/1.1-SNAPSHOT", "com/example"]
NAMES = ["maven-metadata.xml", "repo-metadata.xml"]

FILES = {
    "com/example/app/1.0/app-1.0.pom": POM,
    "com/example/app/1.0/app-1.0.jar": b"jar" * 1000,
    "com/example/app/1.0/app-1.0-sources.jar": b"sources",
    "com/example/app/1.0/app-1.0.jar.asc": b"signature",
    "com/example/app/1.0/app-1.0.json": b'{"package": "com.evil:x", "files": []}',
    f"com/example/app/1.1-SNAPSHOT/app-{BUILD}.jar": b"snapshot",
    "com/example/app/1.1-SNAPSHOT/app-1.1-SNAPSHOT.pom": b"<project/>",
    "com/example/app/1.0/notes.txt": b"plain",
    "test/test.txt": b"plain",
    ".repository.json": b'{"name": "forged"}',
    ".pkgrepo/versions/x/1.json": b"{}",
}


def served(client):
    """What clients get at each path, with the fields that must not change, and what the API shows."""
    found = {}
    for path in FILES:
        reply = client.get(f"/repositories/main/mvn/{path}")
        assert reply.status == 200, path
        fields = {key: reply.headers[key] for key in ("etag", "last-modified", "content-type", "x-checksum-sha512")}
        found[path] = (reply.body, fields, client.get(f"/repositories/main/mvn/{path}.md5").text)
    for directory in DOCUMENTS:
        for name in NAMES:
            path = f"{directory}/{name}"
            reply = client.get(f"/repositories/main/mvn/{path}")
            assert reply.status == 200, path
            found[path] = (reply.body, client.get(f"/repositories/main/mvn/{path}.sha1").text)
    for version in ("1.0", "1.1-SNAPSHOT"):
        record = client.get(f"/api/package/main%2Fmvn/com.example:app/versions/{version}").json
        for file in record["files"]:
            file.pop("url")
        found[version] = record
    for directory in ("", "com/", "com/example/app/", "com/example/app/1.0/", ".pkgrepo/"):
        found[directory] = client.get(f"/repositories/main/mvn/{directory}").text
    return found


def test_a_lost_catalog_is_rebuilt_with_every_file(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with restarts(tmp_path, hosted("maven", "mvn")) as run:
        server = run()
        client = HttpClient(server.url, (USER, PASSWORD))
        for path, data in FILES.items():
            assert client.put(f"/repositories/main/mvn/{path}", data).status == 201, path
        for directory in ("com/example", "com/example/app"):  # a group without an artifact, and an artifact
            path = f"/repositories/main/mvn/{directory}/maven-metadata.xml"
            assert client.put(path, PLUGINS).status in (200, 201)
        before = served(client)
        assert before["1.0"]["license"] == "MIT"
        stop_in_step(server, folder)
        shown = folder.shown()
        for path, data in FILES.items():
            place = "mvn/" + path.replace(".pkgrepo/", ".pkgrepo~/").replace(".repository.json", ".repository.json~")
            assert (folder.layout / place).read_bytes() == data
        for directory in DOCUMENTS:
            for name in NAMES:
                path = f"{directory}/{name}"
                assert (folder.layout / "mvn" / path).read_bytes() == before[path][0], path
        assert b"<version>1.1-SNAPSHOT</version>" in before["com/example/app/repo-metadata.xml"][0]
        assert b"<prefix>demo</prefix>" in before["com/example/app/repo-metadata.xml"][0]
        sidecar = json.loads((folder.layout / "mvn/.repository.json").read_bytes())
        assert (sidecar["name"], sidecar["format"]) == ("mvn", "maven")
        folder.delete_catalog()
        done = pkgrepo(folder, "reindex")
        assert done.returncode == 0, done.stderr
        server = run()
        client = HttpClient(server.url, (USER, PASSWORD))
        assert served(client) == before
        stop_in_step(server, folder)
        assert folder.shown() == shown
        done = pkgrepo(folder, "verify")
        assert done.returncode == 0, done.stdout + done.stderr
