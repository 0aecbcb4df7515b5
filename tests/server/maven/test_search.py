"""Searches and questions about versions, as editors, build tools, scripts and badges send them."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET

import pytest

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server

POM = b"<project><artifactId>tool</artifactId><packaging>maven-plugin</packaging></project>"
BUILDS = ["1.1-20240102.030405-6", "1.1-20240103.030405-7"]


@pytest.fixture(scope="module")
def server(format_server):
    client = HttpClient(format_server.url, (USER, PASSWORD))
    files = {
        "org/search/tool/1.0/tool-1.0.jar": b"tool 1.0",
        "org/search/tool/1.10/tool-1.10.jar": b"tool 1.10",
        "org/search/tool/1.10/tool-1.10-sources.jar": b"sources",
        "org/search/tool/1.10/tool-1.10.pom": POM,
        "org/search/tool/1.9/tool-1.9.jar": b"tool 1.9",
        **{f"org/search/tool/1.1-SNAPSHOT/tool-{each}.jar": each.encode() for each in BUILDS},
        "org/search/tool-kit/2.0-rc/tool-kit-2.0-rc.jar": b"kit",
        "org/elsewhere/other/1/other-1.jar": b"other",
    }
    for path, data in files.items():
        assert client.put(f"/repositories/main/mvn/{path}", data).status == 201
    assert client.put("/repositories/main/private/org/search/hidden/1/hidden-1.jar", b"hidden").status == 201
    return client


def found(client, query, where="/repositories/main/mvn"):
    reply = client.get(f"{where}/solrsearch/select?{query}")
    assert reply.status == 200, reply.text
    answer = reply.json
    assert answer["responseHeader"]["status"] == 0
    docs = answer["response"]["docs"]
    assert answer["response"]["numFound"] >= len(docs)
    return docs


def ids(client, query, where="/repositories/main/mvn"):
    return [each["id"] for each in found(client, query, where)]


TOOL, KIT = "org.search:tool", "org.search:tool-kit"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=g:org.search", [TOOL, KIT]),
        ("q=g:org.search+AND+a:tool", [TOOL]),
        ("q=g:org.search&rows=1", [TOOL]),
        ("q=g:org.search&rows=1&start=1", [KIT]),
        ("q=g:%22org.search%22+AND+a:tool*", [TOOL, KIT]),
        ("q=a:tool-kit", [KIT]),
        ("q=search+kit", [KIT]),
        ("q=tool+g:org.search", [TOOL, KIT]),
        ("q=g:org.search+AND+v:1.9", [TOOL]),
        ("q=g:org.search+AND+p:maven-plugin", [TOOL]),
        ("q=g:org.search+AND+l:sources", [TOOL]),
        ("q=1:" + hashlib.sha1(b"kit").hexdigest(), [KIT]),
        ("q=g:org.se%25", []),
        ("q=nothing-like-it", []),
    ],
)
def test_artifacts_are_found(server, query, expected):
    assert ids(server.as_user(), query) == expected


def test_an_artifact_is_shown_with_its_latest_version(server):
    (doc,) = found(server, "q=g:org.search+AND+a:tool")
    timestamp = doc.pop("timestamp")
    assert doc == {
        "id": TOOL, "g": "org.search", "a": "tool", "latestVersion": "1.10", "versionCount": 4, "p": "maven-plugin",
        "repositoryId": "main/mvn", "text": ["org.search", "tool"], "ec": ["-sources.jar", ".jar", ".pom"],
    }  # fmt: skip
    assert 1_000_000_000_000 < timestamp < 3_000_000_000_000


def test_versions_are_found_from_the_highest(server):
    docs = found(server, "q=g:org.search+AND+a:tool&core=gav")
    assert [each["v"] for each in docs] == ["1.10", "1.9", "1.1-SNAPSHOT", "1.0"]
    assert docs[0]["id"] == f"{TOOL}:1.10"
    assert "latestVersion" not in docs[0]
    assert ids(server, "q=g:org.search+AND+v:1.9&core=gav") == [f"{TOOL}:1.9"]
    assert ids(server, "q=l:sources+g:org.search&core=gav") == [f"{TOOL}:1.10"]
    assert ids(server, "q=1:" + hashlib.sha1(b"tool 1.0").hexdigest() + "&core=gav") == [f"{TOOL}:1.0"]


@pytest.mark.parametrize("query", ["q=g:a+g:b", "rows=x", "start=-1", "core=x", "wt=xml", "q=" + "x" * 600])
def test_wrong_parameters_are_refused(server, query):
    assert server.get(f"/repositories/main/mvn/solrsearch/select?{query}").status == 400


def test_a_search_over_all_repositories_finds_what_the_caller_may_read(server, repository, as_token):
    assert ids(server.as_user(), "q=g:org.search", "") == [TOOL, KIT]
    assert ids(server, "q=g:org.search", "") == ["org.search:hidden", TOOL, KIT]
    private = repository("private")
    assert private.as_user().get("/solrsearch/select?q=hidden").status == 401
    assert ids(server, "q=g:org.search", "/repositories/main/private") == ["org.search:hidden"]
    assert private.put("/com/team/mine/1/mine-1.jar", b"x").status == 201
    limited = as_token("writer", "private").get("/solrsearch/select?q=*:*").json["response"]
    assert all(each["g"] == "com.team" for each in limited["docs"])
    assert limited["numFound"] == len(limited["docs"]) >= 1


def test_a_search_over_all_repositories_passes_over_hidden_ones(server):
    hidden = {"name": "unlisted", "storage": "main", "format": "maven", "visibility": "hidden"}
    assert server.post_json("/api/repository", {**hidden, "config": {"type": "Hosted"}}).status == 201
    jar = "/repositories/main/unlisted/org/unlisted/tool/1/tool-1.jar"
    assert server.put(jar, b"jar").status == 201
    assert ids(server.as_user(), "q=g:org.unlisted", "") == []
    assert server.as_user().get(jar).body == b"jar"
    assert ids(server, "q=g:org.unlisted", "") == ["org.unlisted:tool"]


def ask(client, path):
    return client.get(f"/api/maven/{path}")


ARTIFACT = "main/mvn/org/search/tool"


def test_questions_about_versions(server):
    anybody = server.as_user()
    assert ask(anybody, f"versions/{ARTIFACT}").json == {
        "isSnapshot": False, "versions": ["1.0", "1.1-SNAPSHOT", "1.9", "1.10"],
    }  # fmt: skip
    assert ask(anybody, f"versions/{ARTIFACT}?filter=none:SNAPSHOT").json["versions"] == ["1.0", "1.9", "1.10"]
    assert ask(anybody, f"versions/{ARTIFACT}/1.1-SNAPSHOT").json == {"isSnapshot": True, "versions": BUILDS}
    assert ask(anybody, f"latest/version/{ARTIFACT}").json == {"isSnapshot": False, "version": "1.10"}
    assert ask(anybody, f"latest/version/{ARTIFACT}?filter=1.9&type=raw").text == "1.9"
    assert ask(anybody, f"latest/version/{ARTIFACT}?filter=has:SNAP&type=raw").text == "1.1-SNAPSHOT"
    assert ask(anybody, f"latest/version/{ARTIFACT}/1.1-SNAPSHOT?type=raw").text == BUILDS[1]
    assert ask(anybody, f"latest/version/{ARTIFACT}?filter=7").status == 404


@pytest.mark.parametrize(
    ("query", "data"),
    [
        ("", b"tool 1.10"),
        ("?classifier=sources", b"sources"),
        ("?extension=pom", POM),
        ("?filter=1.0", b"tool 1.0"),
        ("/1.1-SNAPSHOT", BUILDS[1].encode()),
        ("?filter=has:SNAPSHOT", BUILDS[1].encode()),
    ],
)
def test_the_latest_file_is_one_redirect_away(server, query, data):
    reply = ask(server, f"latest/file/{ARTIFACT}{query}")
    assert reply.status == 302
    assert HttpClient(reply.headers["location"]).get("").body == data
    if "?" not in query:
        details = ask(server, f"latest/details/{ARTIFACT}{query}").json
        assert (details["type"], details["contentLength"]) == ("FILE", len(data))


def test_details_of_files_and_directories(server):
    reply = ask(server, f"details/{ARTIFACT}/1.10/tool-1.10.pom").json
    assert reply == {
        "name": "tool-1.10.pom", "type": "FILE", "contentType": "application/xml", "contentLength": len(POM),
    }  # fmt: skip
    listed = ask(server, f"details/{ARTIFACT}").json
    assert (listed["name"], listed["type"]) == ("tool", "DIRECTORY")
    assert [each["name"] for each in listed["files"]] == ["1.0", "1.1-SNAPSHOT", "1.10", "1.9", "maven-metadata.xml"]


@pytest.mark.parametrize(
    "path",
    [
        "versions/main/mvn/org/search/absent", "versions/main/mvn/x", "versions/main/mvn", "versions/main/mvn/",
        "versions/main/none/org/search/tool", "versions/none/mvn/a/b", "details/main/mvn/org/absent",
        "nothing/main/mvn/a", "versions/main/mvn/org//tool", "versions/main/mvn/%2e%2e/tool",
        "latest/file/main/mvn/org/search/tool?extension=../x",
    ],
)  # fmt: skip
def test_what_is_not_there(server, path):
    assert ask(server, path).status in (400, 404)


def test_private_repositories_answer_nobody_else(server):
    for path in (
        "versions/main/private/org/search/hidden",
        "details/main/private/org/search",
        "latest/file/main/private/a/b",
    ):
        assert ask(server.as_user(), path).status == 401
    assert server.as_user().get("/api/badge/latest/main/private/org/search/hidden").status == 401
    assert ask(server, "versions/main/private/org/search/hidden").json["versions"] == ["1"]


def test_a_badge_shows_the_latest_version(server):
    reply = server.as_user().get("/api/badge/latest/main/mvn/org/search/tool?name=%3Cb%3E&prefix=v&color=f00")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/svg+xml; charset=utf-8")
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    root = ET.fromstring(reply.text)
    assert root.get("aria-label") == "<b>: v1.10"
    assert server.get("/api/badge/latest/main/mvn/org/absent/x").status == 404


def test_the_management_api_is_where_it_was(server):
    assert server.get("/api/repository/main%2Fmvn").status == 200
    assert server.get("/api/maven").status == 404


def test_the_management_api_shows_artifacts(server):
    page = server.get("/api/repository/main%2Fmvn/packages?q=org.search:tool").json["items"]
    tool = next(each for each in page if each["key"] == TOOL)
    assert (tool["latest"], tool["versions"], tool["files"]) == ("1.10", 4, 7)
    versions = server.get(f"/api/package/main%2Fmvn/{TOOL}/versions").json["items"]
    assert [each["version"] for each in versions] == ["1.10", "1.9", "1.1-SNAPSHOT", "1.0"]
    record = server.get(f"/api/package/main%2Fmvn/{TOOL}/versions/1.10").json
    assert record["metadata"]["packaging"] == "maven-plugin"
    assert {each["name"] for each in record["files"]} == {"tool-1.10.jar", "tool-1.10-sources.jar", "tool-1.10.pom"}
    assert set(record["files"][0]["digests"]) == {"md5", "sha1", "sha256", "sha512"}
    for file in record["files"]:
        assert HttpClient(file["url"]).get("").status == 200
    hits = server.get("/api/search/packages?q=tool-kit").json["items"]
    assert KIT in [each["key"] for each in hits]
    level = server.get("/api/repository/main%2Fmvn/tree/org/search/tool").json["items"]
    assert [each["name"] for each in level] == ["1.0", "1.1-SNAPSHOT", "1.10", "1.9"]
    stats = server.get("/api/repository/main%2Fmvn/stats")
    assert stats.status == 200
    setup = server.get("/api/repository/main%2Fmvn/setup").json
    assert "/repositories/main/mvn" in str(setup)
    assert server.get("/api/openapi.json").status == 200
