"""Checksums that clients upload: compared with what is stored, or kept until that arrives."""

from __future__ import annotations

import json

import pytest

from tests.support.data_folder import DataFolder
from tests.support.maven_files import JAR, sums

pytestmark = pytest.mark.server


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_a_right_checksum_is_accepted_in_every_form(mvn, algorithm):
    path = "/com/example/compared/1.0/compared-1.0.jar"
    assert mvn.put(path, JAR).status in (200, 201)
    digest = sums(JAR)[algorithm]
    for form in (
        "{}",
        "{}\n",
        "{}  compared-1.0.jar\n",
        "{} *compared-1.0.jar",
        "SHA1(compared-1.0.jar)= {}",
        "X = {}\n",
    ):
        for each in (digest, digest.upper()):
            assert mvn.put(f"{path}.{algorithm}", form.format(each).encode()).status == 201
    assert mvn.get(f"{path}.{algorithm}").text == digest


def test_a_wrong_checksum_is_refused_and_changes_nothing(mvn, format_server):
    path = "/com/example/wrong/1.0/wrong-1.0.jar"
    assert mvn.put(path, JAR).status == 201
    reply = mvn.put(f"{path}.sha1", b"0" * 40)
    assert (reply.status, reply.reason) == (400, f"sha1 mismatch: server has {sums(JAR)['sha1']}")
    assert mvn.get(f"{path}.sha1").text == sums(JAR)["sha1"]
    assert mvn.get(path).body == JAR
    [(package, data)] = DataFolder(format_server.folder / "data").rows(
        "SELECT package_key, data FROM event WHERE kind = 'checksum_mismatch' AND data LIKE '%wrong-1.0.jar%'"
    )
    assert package == "com.example:wrong"
    assert json.loads(data)["sent"] == "0" * 40


@pytest.mark.parametrize("body", [b"", b"nonsense", b"0" * 39, b"0" * 41, b"g" * 40, b"\xff\xfe", b"0" * 4000])
def test_what_is_no_checksum_is_refused(mvn, body):
    path = "/com/example/unread/1.0/unread-1.0.jar"
    assert mvn.put(path, JAR).status in (200, 201)
    assert mvn.put(f"{path}.sha1", body).status == 400
    assert mvn.put(f"{path}.sha1", b" " * 5000).status == 413


def test_a_checksum_may_come_first_and_is_never_served(mvn):
    path = "/com/example/ahead/1.0/ahead-1.0.jar"
    assert mvn.put(f"{path}.sha1", sums(JAR)["sha1"].encode()).status == 201
    assert mvn.get(f"{path}.sha1").status == 404
    assert mvn.get(path).status == 404
    assert mvn.put(path, JAR).status == 201
    assert mvn.put(path, b"another").status == 200  # the checksum was for the first one


@pytest.mark.parametrize("path", ["/com/example/claimed/1.0/claimed-1.0.jar", "/claimed.txt"])
def test_a_file_that_differs_from_the_checksum_before_it_is_refused_until_that_is_mended(mvn, path):
    assert mvn.put(f"{path}.sha256", b"0" * 64).status == 201
    for _ in range(2):
        reply = mvn.put(path, JAR)
        assert (reply.status, "sha256" in reply.reason) == (400, True)
        assert mvn.get(path).status == 404
    assert mvn.put(f"{path}.sha256", sums(JAR)["sha256"].encode()).status == 201
    assert mvn.put(path, JAR).status == 201
    assert mvn.get(f"{path}.md5").text == sums(JAR)["md5"]


def test_a_checksum_of_a_signature(mvn):
    path = "/com/example/sums/1.0/sums-1.0.jar.asc"
    assert mvn.put(path, b"signature").status == 201
    assert mvn.put(f"{path}.sha1", sums(b"signature")["sha1"].encode()).status == 201
    assert mvn.put(f"{path}.sha1", sums(b"else")["sha1"].encode()).status == 400


def test_checksums_cannot_be_deleted(mvn):
    path = "/com/example/kept/1.0/kept-1.0.jar"
    assert mvn.put(path, JAR).status == 201
    reply = mvn.delete(f"{path}.sha1")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, PUT")
