"""Listings, searches and questions about versions, of what a proxy has kept and of all members together."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.support.data_folder import wait_for
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess
from tests.support.upstreams.maven import MavenUpstream

pytestmark = pytest.mark.server

At = Callable[[str], HttpClient]


def names(client: HttpClient, path: str) -> list[str]:
    """The names in a directory without checksums; none if it does not exist."""
    found = re.findall(r'<a href="([^"]*)">', client.get(path).text)[1:]
    return [each for each in found if not each.endswith((".md5", ".sha1", ".sha256", ".sha512"))]


def test_a_proxy_lists_what_it_has_kept_and_asks_nobody(
    at: At, format_server: ServerProcess, first: MavenUpstream
) -> None:
    mirror = at("mirror")
    kept, other = (first.deploy("com.kept", "app", version) for version in ("1.0", "2.0"))
    assert mirror.get("/com/kept/app/").status == 404
    assert mirror.get(kept).status == 200
    wait_for(lambda: names(mirror, "/com/kept/app/") != [], format_server)
    asked = first.count()
    assert names(mirror, "/com/kept/app/") == ["1.0/", "maven-metadata.xml"]
    assert "app-1.0.jar" in names(mirror, "/com/kept/app/1.0/")
    assert first.count() == asked
    listed = mirror.get("/solrsearch/select?q=g:com.kept").json["response"]["docs"]
    assert [(each["id"], each["latestVersion"], each["repositoryId"]) for each in listed] == [
        ("com.kept:app", "1.0", "main/mirror")
    ]
    server = HttpClient(format_server.url)
    assert server.get("/api/maven/versions/main/mirror/com/kept/app").json["versions"] == ["1.0", "2.0"]
    assert server.get("/api/maven/versions/main/mirror/com/kept/absent").status == 404
    location = server.get("/api/maven/latest/file/main/mirror/com/kept/app").headers["location"]
    assert location.endswith(other)
    assert HttpClient(location).get("").status == 200


def test_what_a_proxy_has_kept_of_a_reserved_name_is_not_listed(
    at: At, format_server: ServerProcess, first: MavenUpstream
) -> None:
    mirror, guarded = at("mirror"), at("guarded")
    kept = first.deploy("com.guarded", "app", "1.0")
    assert mirror.get(kept).status == 200
    wait_for(lambda: names(mirror, "/com/guarded/app/") != [], format_server)
    assert guarded.get(kept).status != 200
    assert names(guarded, "/com/guarded/app/") == names(guarded, "/com/guarded/app/1.0/") == []


def test_a_virtual_repository_lists_all_members_and_hides_what_a_hosted_one_replaces(
    at: At, format_server: ServerProcess, first: MavenUpstream, second: MavenUpstream
) -> None:
    every, own, mirror, other = (at(name) for name in ("all", "own", "mirror", "other"))
    one = first.deploy("com.listed", "one", "1.0")
    two = second.deploy("com.listed", "one", "2.0")
    stranger = first.deploy("com.listed", "ours", "9.0")
    assert mirror.get(one).status == other.get(two).status == mirror.get(stranger).status == 200
    wait_for(lambda: names(mirror, "/com/listed/") == ["one/", "ours/"], format_server)
    wait_for(lambda: names(other, "/com/listed/") == ["one/"], format_server)
    assert own.put("/com/listed/ours/1.0/ours-1.0.jar", b"ours").status == 201
    assert own.put("/com/listed/notes.txt", b"notes").status == 201
    assert names(every, "/com/listed/") == ["one/", "ours/", "notes.txt"]
    assert names(every, "/com/listed/one/") == ["1.0/", "2.0/", "maven-metadata.xml"]
    assert names(every, "/com/listed/ours/") == ["1.0/", "maven-metadata.xml"]
    assert names(every, "/com/listed/ours/9.0/") == []
    docs = every.get("/solrsearch/select?q=g:com.listed").json["response"]["docs"]
    assert [(each["id"], each["repositoryId"]) for each in docs] == [
        ("com.listed:one", "main/mirror"),
        ("com.listed:ours", "main/own"),
    ]
    docs = every.get("/solrsearch/select?q=g:com.listed&core=gav").json["response"]["docs"]
    assert {each["id"] for each in docs} == {"com.listed:one:1.0", "com.listed:one:2.0", "com.listed:ours:1.0"}
    server = HttpClient(format_server.url)
    assert server.get("/api/maven/versions/main/all/com/listed/ours").json["versions"] == ["1.0"]
    assert server.get("/api/maven/versions/main/all/com/listed/one").json["versions"] == ["1.0", "2.0"]
    assert server.get("/api/maven/versions/main/all/com/listed/absent").status == 404
    assert server.get("/api/maven/details/main/all/com/listed/notes.txt").json["contentLength"] == 5
