"""Directories as clients ask for them: Ivy and Gradle parse the HTML, programs get JSON."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile

import pytest

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def filled(format_server):
    client = HttpClient(f"{format_server.url}/repositories/main/mvn", (USER, PASSWORD))
    for version in ("1.0", "1.1", "1.0+build"):
        where = f"/com/listed/app/{version}"
        assert client.put(f"{where}/app-{version}.jar", version.encode()).status == 201
    assert client.put("/com/listed/notes.txt", b"notes").status == 201
    return client


def links(reply):
    return re.findall(r'<a href="([^"]*)">([^<]*)</a>', reply.text)


def test_a_directory_lists_its_versions_with_a_slash_each(filled):
    reply = filled.as_user().get("/com/listed/app/")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    folders = [each for each in links(reply) if each[0].endswith("/")]
    assert folders == [(each, each) for each in ("../", "1.0+build/", "1.0/", "1.1/")]
    assert ("maven-metadata.xml", "maven-metadata.xml") in links(reply)
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_files_are_listed_with_their_checksums(filled):
    names = [href for href, _ in links(filled.get("/com/listed/app/1.0/"))]
    jar = "app-1.0.jar"
    assert names[1:6] == [jar, *(f"{jar}.{each}" for each in ("md5", "sha1", "sha256", "sha512"))]
    for name in names[1:6]:
        assert filled.get(f"/com/listed/app/1.0/{name}").status == 200
    assert "notes.txt" in [href for href, _ in links(filled.get("/com/listed/"))]


def test_every_link_leads_somewhere(filled):
    todo, seen = ["/com/listed/"], set()
    while todo:
        path = todo.pop()
        reply = filled.get(path)
        assert reply.status == 200, path
        seen.add(path)
        if path.endswith("/"):
            todo += [path + href for href, _ in links(reply)[1:] if "metadata" not in href]
    assert len(seen) == 5 + 4 * 5


def test_head_has_the_headers_of_get_and_a_second_get_is_not_modified(filled):
    path = "/com/listed/app/"
    got, head = filled.get(path), filled.ask("HEAD", path)
    differing = {"date", "x-request-id"}
    assert {k: v for k, v in head.headers.items() if k not in differing} == {
        k: v for k, v in got.headers.items() if k not in differing
    }
    assert head.body == b""
    assert filled.get(path, if_none_match=got.headers["etag"]).status == 304


def test_json_is_for_those_who_ask_for_it(filled):
    reply = filled.get("/com/listed/", accept="application/json")
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["vary"] == "Accept"
    entries = {each["name"]: each for each in reply.json["entries"]}
    assert entries["app"] == {"name": "app", "kind": "folder"}
    assert (entries["notes.txt"]["kind"], entries["notes.txt"]["size"]) == ("file", 5)
    for accept in ("*/*", "text/html", "text/html, application/json;q=0.5", "text/html, image/gif, *; q=.2"):
        reply = filled.get("/com/listed/", accept=accept)
        assert reply.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/com/absent/", "/com/listed/app/2.0/", "/com/list/", "/com/listed/notes.txt/"])
def test_a_missing_directory_is_not_found(filled, path):
    assert filled.get(path).status == 404
    assert filled.ask("HEAD", path).status == 404


@pytest.mark.parametrize("path", ["/com//listed/", "/com/%2e%2e/", "/com/./", "/com%2flisted/", "/com/%00/", "//"])
def test_a_path_that_is_none_is_refused(filled, path):
    assert filled.get(path).status == 400


def test_only_browsers_are_sent_to_the_address_with_a_slash(filled):
    path = "/com/listed/app"
    reply = filled.get(path, accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (reply.status, reply.headers["location"]) == (302, "app/")
    assert filled.get(path).status == 404
    assert filled.get(path, accept="*/*").status == 404
    assert filled.get("/com/absent", accept="text/html").status == 404


def test_the_root_lists_groups(filled):
    for path in ("/", ""):
        assert ("com/", "com/") in links(filled.get(path))


def archived(reply):
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}


def test_a_directory_is_an_archive_of_what_is_stored_in_it(filled):
    reply = filled.as_user().get("/com/listed/?archive=tar.gz")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/gzip")
    jars = {f"app/{each}/app-{each}.jar": each.encode() for each in ("1.0", "1.0+build", "1.1")}
    assert archived(reply) == {**jars, "notes.txt": b"notes"}
    assert [*archived(filled.get("/com/listed/app/1.1/?archive=tar.gz"))] == ["app-1.1.jar"]
    assert filled.get("/com/listed/?archive=rar").status == 400
    assert filled.get("/com/absent/?archive=zip").status == 404


def test_an_archive_is_without_versions_that_are_blocked(repository, api):
    client = repository("blocked")
    for version in ("1.0", "2.0"):
        assert client.put(f"/com/team/app/{version}/app-{version}.jar", b"x").status == 201
    body = {"repository": "main/blocked", "package": "com.team:app", "versions": "2.0", "reason": "broken"}
    assert api.post_json("/policy/blocks", body).status < 300
    for path in ("/?archive=tar.gz", "/com/team/?archive=tar.gz", "/com/team/app/?archive=tar.gz"):
        assert [each.rpartition("/")[2] for each in archived(client.get(path))] == ["app-1.0.jar"]
    assert client.get("/com/team/app/2.0/?archive=tar.gz").status == 403


def test_a_token_for_some_packages_has_no_archives(repository, as_token):
    """What is below a group belongs to other groups, too."""
    client = as_token("writer", "private")
    for path in ("/com/team/packed/1.0/packed-1.0.jar", "/com/team/inner/app/1.0/app-1.0.jar"):
        assert repository("private").put(path, b"x").status == 201
    assert client.get("/com/team/").status == 200
    for path in ("/", "/com/team/", "/com/team/?ARCHIVE=zip&", "/com/team/?archive=zip&"):
        assert client.get(f"{path}{'' if '?' in path else '?'}archive=tar.gz").status in (403, 404)


def test_a_private_repository_lists_nothing_to_strangers(repository, as_token):
    private = repository("private")
    assert private.put("/com/hidden/app/1.0/app-1.0.jar", b"x").status == 201
    for path in ("/", "/com/hidden/app/", "/com/absent/"):
        reply = private.as_user().get(path)
        assert (reply.status, "Basic" in reply.headers["www-authenticate"]) == (401, True)
    assert private.get("/com/hidden/app/").status == 200


def test_a_token_for_some_packages_lists_these_alone(repository, as_token):
    client = as_token("writer", "private")
    assert repository("private").put("/com/team/app/1.0/app-1.0.jar", b"x").status == 201
    assert repository("private").put("/com/other/app/1.0/app-1.0.jar", b"x").status == 201
    for path in ("/com/team/app/", "/com/team/app/1.0/", "/com/team/"):
        assert client.get(path).status == 200
    for path in ("/", "/com/", "/com/other/", "/com/other/app/", "/com/other/app/1.0/"):
        assert client.get(path).status in (403, 404)


def test_a_deleted_version_leaves_no_directory(filled):
    assert filled.put("/com/gone/app/1.0/app-1.0.jar", b"x").status == 201
    assert filled.get("/com/gone/app/").status == 200
    assert filled.ask("DELETE", "/com/gone/app/1.0/").status == 204
    assert filled.get("/com/gone/app/").status == 404
    assert filled.get("/com/gone/").status == 404


def test_plain_files_are_in_the_tree_of_the_api_and_can_be_deleted_there(api, filled):
    assert filled.put("/free/place/x.txt", b"free").status == 201
    level = api.get("/repository/main%2Fmvn/tree/free/place").json["items"]
    assert [(each["name"], each["digest"]) for each in level] == [
        ("x.txt", f"sha256:{hashlib.sha256(b'free').hexdigest()}")
    ]
    before = api.get("/repository/main%2Fmvn").json["usage_bytes"]
    reply = api.ask(
        "DELETE", "/repository/main%2Fmvn/packages", b'{"paths": ["free/place/x.txt"]}',
        {"Content-Type": "application/json"},
    )  # fmt: skip
    assert reply.json == {"deleted": ["free/place/x.txt"], "missing": [], "rejected": []}
    assert filled.get("/free/place/x.txt").status == 404
    assert api.get("/repository/main%2Fmvn").json["usage_bytes"] == before - 4
