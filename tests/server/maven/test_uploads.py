"""Accepted uploads, and what can be downloaded then."""

from __future__ import annotations

import hashlib

import pytest

pytestmark = pytest.mark.server

JAR = b"PK\x03\x04 this is a jar" * 100
POM = b"""<?xml version="1.0" encoding="UTF-8"?>
<project><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId><artifactId>app</artifactId>
<version>1.0</version></project>"""


def sums(data):
    return {each: hashlib.new(each, data).hexdigest() for each in ("md5", "sha1", "sha256", "sha512")}


def test_a_file_is_stored_and_served_with_all_its_digests(mvn):
    path = "/com/example/stored/1.0/stored-1.0.jar"
    reply = mvn.put(path, JAR)
    assert (reply.status, reply.body) == (201, b"")
    got = mvn.as_user().get(path)
    assert (got.status, got.body) == (200, JAR)
    assert got.headers["content-type"] == "application/java-archive"
    assert got.headers["etag"] == f'"{{SHA1{{{sums(JAR)["sha1"]}}}}}"'
    assert got.headers["x-content-type-options"] == "nosniff"
    for name, digest in sums(JAR).items():
        assert got.headers[f"x-checksum-{name}"] == digest
        checksum = mvn.as_user().get(f"{path}.{name}")
        assert (checksum.status, checksum.text) == (200, digest)
        assert checksum.headers["content-type"] == "text/plain"


def test_a_text_file_can_be_put_anywhere(mvn):
    reply = mvn.ask("PUT", "/test/test.txt", iter([b"te", b"st\n"]))
    assert reply.status == 201
    assert mvn.get("/test/test.txt").body == b"test\n"
    assert mvn.get("/test/test.txt.sha1").text == sums(b"test\n")["sha1"]
