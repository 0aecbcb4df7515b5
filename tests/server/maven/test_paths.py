"""Hostile paths: refused as such, stored under exactly their name, or not found, and never an error of the server."""

from __future__ import annotations

import random
import threading
from urllib.parse import quote, quote_from_bytes

import pytest

from tests.support.maven_files import JAR

pytestmark = pytest.mark.server

REFUSED = (
    "/../../etc/passwd",
    "/a/%2e%2e/b",
    "/a/%2E./b",
    "/a/./b",
    "/a%2Fb/c",
    "/a%5cb/c",
    "/a\\b",
    "/a//b",
    "//a",
    "/a%00b",
    "/a%0d%0ab",
    "/a%0a",
    "/%0a",
    "/a%7f",
    "/%ff",
    "/a%ED%A0%80",
    "/x/" + "a" * 256,
    "/" + "a/" * 512 + "b",
    "/x.jar.sha1.md5",
)


@pytest.mark.parametrize("path", REFUSED)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_paths_that_lead_elsewhere_are_refused(mvn, method, path):
    reply = mvn.ask(method, path, b"x" if method == "PUT" else None)
    assert reply.status == 400
    assert "passwd" not in reply.reason


@pytest.mark.parametrize("path", ["", "/", "/com/example/", "/com/example/app/1.0/"])
def test_a_directory_cannot_be_put(mvn, path):
    assert mvn.put(path, b"x").status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/odd/1.0+build/a+b.txt",
        "/odd/a b~@$_.txt",
        "/odd/gr\u00fc\u00dfe/\u6587.txt",
        "/odd/%41.txt",
        "/odd/question?.txt",
        "/odd/hash#.txt",
        "/odd/" + "n" * 255,
        "/odd/\u00e9" + "n" * 253,
        "/odd/" + "d/" * 509 + "f",
        "/odd/a:b/1.0/a:b-1.0.jar",
        "/odd.dot/app/1.0/app-1.0.jar",
        "/odd/app/1.0+build.7/app-1.0+build.7.jar",
        "/odd/CON/aux.txt",
        "/odd/ leading and trailing ",
        "/odd/.hidden",
        "/odd/-rf",
    ],
)
def test_every_legal_path_is_stored_under_exactly_its_name(mvn, path):
    raw = quote(path, safe="/+~@$_-.:")
    assert mvn.put(raw, path.encode()).status == 201
    assert mvn.get(raw).body == path.encode()
    assert mvn.get(f"{raw}.sha256").status == 200
    assert mvn.get(quote(path, safe="/")).body == path.encode()
    assert mvn.delete(raw).status == 204
    assert mvn.get(raw).status == 404


def test_names_differ_by_case_and_by_a_plus_sign(mvn):
    for name in ("case.txt", "Case.txt", "a+b.txt", "a%20b.txt"):
        assert mvn.put(f"/differ/{name}", name.encode()).status == 201
    for name in ("case.txt", "Case.txt", "a+b.txt", "a%20b.txt"):
        assert mvn.get(f"/differ/{name}").body == name.encode()


def test_random_bytes_in_paths(mvn, format_server):
    rng = random.Random(11)
    pieces = [
        b"/",
        b"//",
        b"%",
        b"%2f",
        b"..",
        b".",
        b"a",
        b"-1.0",
        b".jar",
        b".sha1",
        b"%00",
        b"\xff",
        b"maven-metadata.xml",
    ]
    with mvn.connect() as connection:
        reader = connection.makefile("rb")
        for _ in range(300):
            path = b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 9)))
            raw = b"/" + (path if rng.random() < 0.5 else quote_from_bytes(path, safe="/%").encode())
            raw = raw.replace(b"\xff", b"%FF")
            head = mvn.head_lines("GET", "/x").replace(b"/x HTTP", raw + b" HTTP")
            connection.sendall(head)
            status = int(reader.readline().split(b" ")[1])
            length = 0
            while (line := reader.readline()).strip():
                name, _, value = line.lower().partition(b":")
                length = int(value) if name == b"content-length" else length
            reader.read(length)
            assert status in (200, 302, 400, 404), raw
    assert "Traceback" not in format_server.output


def test_many_refused_uploads_at_once_leave_the_server_well(mvn, repository):
    where = repository("releases")
    path = "/com/example/crowd/1.1-SNAPSHOT/crowd-1.1-SNAPSHOT.jar"
    replies = []

    def put(client, expected):
        replies.extend((client.put(path, JAR).status, expected) for _ in range(15))

    threads = [
        threading.Thread(target=put, args=(client, expected))
        for client, expected in ((where, 409), (where.as_user(), 401)) * 10
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(replies) == 300
    assert all(status == expected for status, expected in replies)
    assert mvn.put("/crowd/after.txt", b"x").status == 201
