"""Proxies of servers without a compact index, which is made of their lists and gemspecs."""

from __future__ import annotations

import gzip
import zlib

import pytest

from pkgrepo.formats.rubygems.marshal import VERSION
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.upstreams.faults import HTML, failing
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server


@pytest.fixture
def folder(at):
    """A client of the proxy of the server without compact index."""
    return at("folder")


def explained(format_server, package: str, **query: str) -> dict:
    """What the server explains about a package of the proxy."""
    client = HttpClient(f"{format_server.url}/api", ADMIN)
    fields = "&".join(f"{key}={value}" for key, value in query.items())
    return client.get(f"/explain?repository=main/folder&package={package}&{fields}").json


def test_index_is_made_of_lists_and_gemspecs(folder, legacy):
    legacy.add("made", dependencies={"needed": [(">=", "1.0"), ("<", "3")]})
    legacy.add("made", "1.1.0", platform="java")
    legacy.add("made", "2.0.0.rc1")
    listed = folder.get("/versions").body
    assert [line.split()[1] for line in listed.splitlines() if line.startswith(b"made ")] == [
        b"1.0.0,1.1.0-java",
        b"2.0.0.rc1",
    ]
    assert b"made" in folder.get("/names").body.split()
    assert folder.get("/info/made").body == b"---\n1.0.0 needed:< 3&>= 1.0|\n1.1.0-java |\n2.0.0.rc1 |\n"
    assert folder.get("/specs.4.8.gz").body == legacy.documents["/specs.4.8.gz"].body


def test_files_are_served_that_only_the_lists_name(folder, legacy):
    data = legacy.add("two-2", "1.0.0", platform="x86_64-linux")
    assert folder.get("/gems/two-2-1.0.0-x86_64-linux.gem").body == data
    packed = folder.get("/quick/Marshal.4.8/two-2-1.0.0-x86_64-linux.gemspec.rz").body
    assert b"two-2" in zlib.decompress(packed)


def test_only_gemspecs_of_the_gem_that_is_asked_for_are_fetched_and_once(folder, legacy):
    legacy.add("bounded")
    legacy.add("unasked")
    for _ in range(2):
        assert folder.get("/info/bounded").status == 200
    legacy.add("bounded", "1.1.0")
    assert folder.get("/info/bounded").body.splitlines()[1:] == [b"1.0.0 |", b"1.1.0 |"]
    assert legacy.count("/quick/Marshal.4.8/bounded-1.0.0.gemspec.rz") == 1
    assert legacy.count("/quick/Marshal.4.8/bounded-1.1.0.gemspec.rz") == 1
    assert legacy.count("/quick/Marshal.4.8/unasked-1.0.0.gemspec.rz") == 0


def test_gem_that_no_list_names_does_not_exist_and_explain_says_what_was_asked(folder, legacy, format_server):
    legacy.add("present")
    assert folder.get("/info/missing").status == 404
    steps = explained(format_server, "missing")["steps"]
    asked = next(each for each in steps if each["step"] == "asked")
    assert asked["reason"] == "versions, specs.4.8.gz, prerelease_specs.4.8.gz"
    assert "specs.4.8.gz" in asked["sentence"]


def test_gem_of_a_list_whose_gemspec_is_missing_is_left_out(folder, legacy):
    legacy.add("partly")
    legacy.add("partly", "1.1.0")
    legacy.misbehave("/quick/Marshal.4.8/partly-1.1.0.gemspec.rz", Answer(404), repeat=True)
    assert folder.get("/info/partly").body == b"---\n1.0.0 |\n"


@pytest.mark.parametrize(
    "fault",
    [
        failing(500),
        HTML,
        Answer(body=zlib.compress(VERSION + b"0")),
        Answer(body=zlib.compress(bytes(10_000_000))),
    ],
    ids=["error", "page", "nil", "bomb"],
)
def test_gemspec_that_cannot_be_used_is_the_fault_of_the_upstream(folder, legacy, fault, request):
    name = f"broken-{request.node.callspec.id}"
    legacy.add(name)
    path = f"/quick/Marshal.4.8/{name}-1.0.0.gemspec.rz"
    legacy.misbehave(path, fault, repeat=True)
    reply = folder.get(f"/info/{name}")
    assert reply.status == 502
    legacy.behave()
    assert folder.get(f"/info/{name}").status == 200


def test_gemspec_of_another_gem_is_the_fault_of_the_upstream(folder, legacy):
    legacy.add("swapped")
    legacy.add("swapper")
    body = legacy.documents["/quick/Marshal.4.8/swapper-1.0.0.gemspec.rz"].body
    legacy.misbehave("/quick/Marshal.4.8/swapped-1.0.0.gemspec.rz", Answer(body=body), repeat=True)
    assert folder.get("/info/swapped").status == 502


@pytest.mark.parametrize(
    "body",
    [b"<html>", gzip.compress(b"<html>"), gzip.compress(VERSION + b"[\x06i\x06")],
    ids=["page", "text", "number"],
)
def test_list_that_cannot_be_read_is_the_fault_of_the_upstream(at, legacy, body):
    legacy.add("behind-a-page")
    folder = at("folder-broken")
    folder.get("/versions")
    legacy.misbehave("/specs.4.8.gz", Answer(body=body), repeat=True)
    assert folder.get("/info/behind-a-page-never-seen").status == 502


def test_server_with_a_compact_index_is_not_asked_for_lists(mirror, upstream):
    upstream.add("compact")
    assert mirror.get("/info/absent-here").status == 404
    assert upstream.count("/specs.4.8.gz") == 0


def test_second_route_may_have_the_legacy_index_only(at, upstream, legacy):
    upstream.add("in-first")
    legacy.add("in-second")
    both = at("folder-second")
    assert both.get("/info/in-first").status == 200
    assert both.get("/info/in-second").body == b"---\n1.0.0 |\n"


def test_virtual_repository_joins_the_lists(at, legacy):
    legacy.add("joined")
    merged = at("with-folder")
    assert b"\njoined 1.0.0 " in merged.get("/versions").body
    assert merged.get("/info/joined").body == b"---\n1.0.0 |\n"


def test_missing_document_of_a_gem_that_is_listed_is_the_fault_of_the_upstream(mirror, upstream):
    upstream.add("listed-only")
    assert b"listed-only" in mirror.get("/versions").body
    upstream.misbehave("/info/listed-only", Answer(404), repeat=True)
    assert mirror.get("/info/listed-only").status == 502
    assert mirror.get("/gems/listed-only-1.0.0.gem").status == 502


@pytest.mark.parametrize("path", ["/gems/{}-1.0.0.gem", "/quick/Marshal.4.8/{}-1.0.0.gemspec.rz"])
@pytest.mark.parametrize("body", [b"", b"Access denied by policy.\n"])
def test_file_of_a_server_without_checksums_is_what_its_name_says(folder, legacy, path, body):
    name = f"sentence-{len(body)}-of-{len(path)}"
    legacy.add(name)
    assert folder.get(f"/info/{name}").status == 200
    legacy.misbehave(path.format(name), Answer(body=body), repeat=True)
    assert folder.get(path.format(name)).status == 502
    legacy.behave()
    assert folder.get(path.format(name)).status == 200
