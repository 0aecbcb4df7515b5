"""Hostile bundles are refused with a sentence, take bounded time and memory, and leave nothing."""

import io
import tarfile
import threading
import warnings
import zipfile

import pytest

from tests.support.http_client import read_reply
from tests.support.maven_bundles import artifact, make_pom, make_tar, make_tar_gz, make_zip

pytestmark = pytest.mark.server

WAIT = "/deploy?wait=true"
JSON = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
GOOD = artifact("com.attack", "good", "1.0")


def refused(where, body, expected, status=400):
    """Check that a bundle fails with a sentence, and that nothing of it is visible."""
    reply = where.ask("POST", WAIT, body, JSON)
    assert (reply.status, reply.json["state"]) == (status, "FAILED"), reply
    texts = [text for each in reply.json["errors"].values() for text in each]
    assert any(expected in text for text in texts), texts
    assert "Traceback" not in reply.text
    assert {where.get(f"/{path}").status for path in GOOD} == {404}


@pytest.mark.parametrize("make", [make_zip, make_tar_gz])
def test_a_bomb_is_refused(mvn, make):
    bomb = make({**GOOD, "com/attack/good/1.0/good-1.0.bin": bytes(50 * 1024 * 1024)})
    assert len(bomb) < 200_000
    refused(mvn, bomb, "unpacks to more than 2097152 bytes")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\\b", "a\x00b", "C:/x", "a//b", "./../x"])
def test_unsafe_names_are_refused(mvn, name):
    refused(mvn, make_zip([*GOOD.items(), (name, b"x")]), "has an entry")


def test_links_are_refused(mvn):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path, content in GOOD.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("com/attack/good/1.0/good-1.0-sources.jar")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    refused(mvn, target.getvalue(), "that is a link")
    info = zipfile.ZipInfo("com/attack/good/1.0/good-1.0-sources.jar")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    data = io.BytesIO(make_zip(GOOD))
    with zipfile.ZipFile(data, "a") as zipped:
        zipped.writestr(info, "/etc/passwd")
    refused(mvn, data.getvalue(), "a link or a device")


def test_two_entries_of_one_name_are_refused(mvn):
    jar = next(iter(GOOD))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        refused(mvn, make_zip([*GOOD.items(), (jar, b"other")]), "two entries of the name")
    refused(mvn, make_tar([*GOOD.items(), (jar, b"other")]), "two files at this path")


def test_too_many_files_are_refused(repository):
    where = repository("private")
    names = [(f"com/attack/m{n}/1/m{n}-1.jar", b"") for n in range(15_000)]
    refused(where, make_tar_gz([*GOOD.items(), *names]), "at most 10000 files", 413)


def test_too_many_entries_are_refused(mvn):
    names = [(f"com/attack/m{n}/1/m{n}-1.jar.md5", b"") for n in range(30_000)]
    refused(mvn, make_tar_gz(names), "entries")


def test_poms_with_entities_are_refused(mvn):
    pom = next(path for path in GOOD if path.endswith(".pom"))
    laughs = (
        b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
        b"<project><artifactId>&b;</artifactId></project>"
    )
    refused(mvn, make_zip({**GOOD, pom: laughs}), "DOCTYPE")
    deep = b"<project>" + b"<x>" * 100_000
    refused(mvn, make_zip({**GOOD, pom: deep}), "elements within each other")


def test_a_zip_without_content_for_its_entries_is_refused(mvn):
    data = make_zip(GOOD)
    for cut in (10, len(data) // 2, len(data) - 1):
        refused(mvn, data[:cut], "the bundle")


def test_names_that_are_as_long_as_allowed_work(mvn):
    group, name = "g" * 200, "a" * 100
    members = {
        f"{group}/{name}/1/{name}-1.pom": make_pom(group, name, "1"),
        f"{group}/{name}/1/{name}-1-{'c' * 148}.ja": b"x",
    }
    assert mvn.ask("POST", WAIT, make_zip(members), JSON).status == 201
    assert {mvn.get(f"/{path}").status for path in members} == {200}


def test_sentences_about_hostile_names_are_harmless(mvn):
    reply = mvn.ask("POST", WAIT, make_zip([("caf\u00e9\u202e<script>", b"x")]), JSON)
    assert reply.status == 400
    assert reply.reason.isascii()
    assert len(reply.reason) <= 120


def test_many_wrong_requests_at_once_leave_room_for_good_ones(mvn):
    bad = make_zip({"README": b"x"})
    statuses = []

    def send(body):
        statuses.append(mvn.ask("POST", WAIT, body, JSON).status)

    threads = [threading.Thread(target=send, args=(bad if n % 3 else b"x" * n,)) for n in range(60)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(statuses) <= {400, 409}  # the limit of open deployments
    assert mvn.ask("POST", WAIT, make_zip(artifact("com.attack", "after", "1.0")), JSON).status == 201


def test_connections_that_end_in_the_middle_of_a_body_leave_no_deployment(mvn):
    data = make_zip(artifact("com.attack", "cut", "1.0"))
    for cut in range(0, len(data), 50):
        with mvn.connect() as connection:
            head = mvn.head_lines(
                "POST", WAIT, Content_Type="application/zip", Content_Length=str(len(data)), Accept="application/json"
            )
            connection.sendall(head + data[:cut])
    uids = []
    for number in range(10):  # more than the limit allows if those above counted
        reply = mvn.ask(
            "POST", f"{WAIT}&publishing_type=USER_MANAGED", make_zip(artifact("com.x", f"a{number}", "1")), JSON
        )
        assert reply.status == 201, reply
        uids.append(reply.json["deployment_id"])
    for uid in uids:
        assert mvn.delete(f"/deploy/{uid}").status == 204
    assert mvn.get("/com/attack/cut/1.0/cut-1.0.jar").status == 404


def test_a_body_that_comes_slowly_is_taken(mvn):
    members = artifact("com.attack", "slow", "1.0")
    data = make_zip(members)
    with mvn.connect() as connection:
        head = mvn.head_lines(
            "POST", WAIT, Content_Type="application/zip", Content_Length=str(len(data)), Accept="application/json"
        )
        connection.sendall(head)
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
        reply = read_reply(connection)
    assert (reply.status, reply.json["state"]) == (201, "PUBLISHED")
