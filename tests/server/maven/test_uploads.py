"""Accepted uploads, and what can be downloaded then."""

from __future__ import annotations

import threading
from base64 import b64encode
from hashlib import md5, sha256, sha512

import pytest

from tests.support.http_client import basic
from tests.support.maven_files import JAR, make_pom, put_all, sums
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server


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
        for _ in range(2):  # the second one may come from the cache
            checksum = mvn.as_user().get(f"{path}.{name}")
            assert (checksum.status, checksum.text) == (200, digest)
            assert checksum.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("typed-1.0.pom", "application/xml"),
        ("typed-1.0.module", "application/json"),
        ("typed-1.0-sources.jar", "application/java-archive"),
        ("typed-1.0.war", "application/java-archive"),
        ("typed-1.0-bin.tar.gz", "application/gzip"),
        ("typed-1.0.jar.asc", "text/plain"),
        ("typed-1.0.jar.sigstore.json", "application/json"),
        ("typed-1.0.so", "application/octet-stream"),
    ],
)
def test_files_of_every_kind_have_their_media_type(mvn, name, media_type):
    path = f"/com/example/typed/1.0/{name}"
    data = make_pom("com.example", "typed", "1.0") if name.endswith(".pom") else name.encode()
    assert mvn.put(path, data).status == 201
    got = mvn.get(path)
    assert (got.body, got.headers["content-type"]) == (data, media_type)
    assert mvn.get(f"{path}.sha512").text == sha512(data).hexdigest()


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", ""), ("PUT", "/"), ("PUT", "/com/example/"), ("POST", ""), ("POST", "/com/x.jar")]
)
def test_uploads_to_other_addresses_are_told_the_right_one(mvn, method, path):
    reply = mvn.ask(method, path, JAR)
    assert reply.status in (400, 405)
    assert reply.reason.endswith(f"; deploy to {mvn.url}/")


@pytest.mark.parametrize(
    "headers",
    [
        {"User_Agent": "npm/11.19.1 node/v20.20.2 linux x64"},
        {"User_Agent": "yarn/1.22.22 npm/? node/v20"},
        {"User_Agent": "Bun/1.4.5", "npm_command": "publish"},
    ],
)
def test_an_npm_package_is_no_plain_file(mvn, headers):
    reply = mvn.put("/some-npm-package", make_publish("some-npm-package", "1.0.0"), **headers)
    assert (reply.status, "takes no npm packages" in reply.reason) == (415, True)
    assert mvn.get("/some-npm-package").status == 404


def test_a_text_file_can_be_put_anywhere(mvn):
    assert mvn.ask("PUT", "/test/test.txt", iter([b"te", b"st\n"])).status == 201
    assert mvn.get("/test/test.txt").body == b"test\n"
    assert mvn.get("/test/test.txt.sha1").text == sums(b"test\n")["sha1"]
    assert mvn.put("/test/test.txt", b"test\n").status == 200
    assert mvn.put("/test/test.txt", b"other\n").status == 200
    assert mvn.get("/test/test.txt").body == b"other\n"


def test_credentials_come_as_password_as_token_in_its_place_or_as_bearer(mvn, token_texts):
    path = "/com/team/credentials/1.0/credentials-1.0.jar"
    nobody = mvn.as_user()
    for fields in (
        basic(("admin", "correct horse battery")),
        basic(("whoever", token_texts["writer"])),
        {"Authorization": f"Bearer {token_texts['writer']}"},
    ):
        assert nobody.ask("PUT", path, JAR, fields).status in (200, 201)


def test_replacing_a_file_replaces_all_that_is_said_of_it(mvn):
    path = "/com/example/exchanged/1.0/exchanged-1.0.jar"
    assert mvn.put(path, b"old").status == 201
    assert mvn.get(path).body == b"old"
    assert mvn.get(f"{path}.md5").text == md5(b"old").hexdigest()
    assert mvn.put(path, b"newer").status == 200
    got = mvn.get(path)
    assert (got.body, got.headers["x-checksum-sha256"]) == (b"newer", sha256(b"newer").hexdigest())
    assert mvn.get(f"{path}.md5").text == md5(b"newer").hexdigest()
    assert mvn.put(path, b"newer").status == 200


def test_all_files_of_a_new_version_can_arrive_at_once(mvn):
    names = [f"at-once-1.0{rest}" for rest in (".jar", ".pom", "-sources.jar", "-javadoc.jar", ".jar.asc", ".module")]
    files = {name: name.encode() for name in names}
    files["at-once-1.0.pom"] = make_pom("com.example", "at-once", "1.0")
    replies = {}

    def put(name):
        replies[name] = mvn.put(f"/com/example/at-once/1.0/{name}", files[name]).status

    threads = [threading.Thread(target=put, args=(name,)) for name in files]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert replies == dict.fromkeys(files, 201)
    assert {name: mvn.get(f"/com/example/at-once/1.0/{name}").body for name in files} == files


def test_what_the_pom_says_stays_when_other_files_follow(mvn, api):
    pom = make_pom("com.example", "described", "1.0", "<name>Describes things</name>")
    put_all(mvn, "com.example", "described", "1.0", {".jar": JAR, ".pom": pom, "-sources.jar": b"x"})
    shown = api.get("/package/main%2Fmvn/com.example%3Adescribed/versions/1.0")
    assert shown.status == 200
    assert "Describes things" in shown.text


@pytest.mark.parametrize("pom", [b"<project>", b"no xml", b""])
def test_a_malformed_pom_is_refused(mvn, pom):
    path = "/com/example/broken/1.0/broken-1.0.pom"
    reply = mvn.put(path, pom)
    assert (reply.status, "POM" in reply.reason) == (400, True)
    assert mvn.get(path).status == 404


def test_a_pom_with_a_document_type_is_stored_and_not_read(mvn):
    pom = b'<!DOCTYPE project SYSTEM "http://127.0.0.1:1/x.dtd"><project><modelVersion>4.0.0</modelVersion></project>'
    path = "/com/example/typed-pom/1.0/typed-pom-1.0.pom"
    assert mvn.put(path, pom).status == 201
    assert mvn.get(path).body == pom


ANNOUNCED = {
    "X-Checksum-Sha1": sums(JAR)["sha1"],
    "X-Checksum-Sha256": sums(JAR)["sha256"].upper(),
    "X-Checksum-Md5": sums(JAR)["md5"],
    "Content-MD5": b64encode(md5(JAR).digest()).decode(),
    "Digest": f"SHA-256={b64encode(sha256(JAR).digest()).decode()},unixsum=30637",
    "Content-Digest": f"sha-512=:{b64encode(sha512(JAR).digest()).decode()}:",
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_announced_digests_are_checked_before_the_file_is_visible(mvn, name):
    path = f"/com/example/announced/1.0/announced-1.0-{name.lower()}.jar"
    wrong = mvn.ask("PUT", path, JAR + b"damaged", {name: ANNOUNCED[name]})
    assert (wrong.status, "digest" in wrong.reason) == (400, True)
    assert mvn.get(path).status == 404
    assert mvn.ask("PUT", path, JAR, {name: ANNOUNCED[name]}).status == 201


@pytest.mark.parametrize(
    "fields",
    [
        {"X-Checksum-Sha1": "nonsense"},
        {"X-Checksum-Sha1": "ab"},
        {"Content-MD5": "!"},
        {"Digest": "sha-256=?"},
        {"X-Checksum-Md5": "0" * 32, "Content-MD5": b64encode(b"1" * 16).decode()},
        {"Content-Range": "bytes 0-9/100"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_a_malformed_head_is_refused_without_the_body(mvn, fields):
    with mvn.connect() as connection:
        head = mvn.head_lines(
            "PUT", "/com/example/x/1.0/x-1.0.jar", **fields, Content_Length="1000000", Expect="100-continue"
        )
        connection.sendall(head)
        assert connection.recv(1000).split(b" ")[1] in (b"400", b"415")
    assert mvn.get("/com/example/x/1.0/x-1.0.jar").status == 404


def test_a_body_that_is_too_large_is_refused(mvn):
    path = "/com/example/large/1.0/large-1.0.jar"
    with mvn.connect() as connection:
        connection.sendall(mvn.head_lines("PUT", path, Content_Length="3000000", Expect="100-continue"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")
    assert mvn.ask("PUT", path, iter([b"x" * 1_000_000] * 3)).status == 413
    assert mvn.get(path).status == 404


def test_an_upload_that_is_cut_off_leaves_nothing(mvn):
    path = "/com/example/cut/1.0/cut-1.0.jar"
    with mvn.connect() as connection:
        connection.sendall(mvn.head_lines("PUT", path, Content_Length="1000") + b"x" * 500)
    assert mvn.get(path).status == 404
    assert mvn.put(path, JAR).status == 201


def test_a_folder_and_a_file_never_share_a_path(mvn):
    assert mvn.put("/com/example/place/1.0/place-1.0.jar", JAR).status == 201
    for path in ("/com/example/place/1.0", "/com/example/place", "/com"):
        reply = mvn.put(path, b"x")
        assert (path, reply.status) == (path, 409)
        assert "folder" in reply.reason
    reply = mvn.put("/com/example/place/1.0/place-1.0.jar/x/1.0/x-1.0.jar", b"x")
    assert (reply.status, "is a file" in reply.reason) == (409, True)
    assert mvn.put("/plain", b"x").status == 201
    assert mvn.put("/plain/x/1.0/x-1.0.jar", b"x").status == 409


def test_an_upload_may_have_conditions(mvn):
    for path in ("/com/example/conditions/1.0/conditions-1.0.jar", "/conditions.txt"):
        assert mvn.put(path, b"one", If_Match="*").status == 412
        assert mvn.get(path).status == 404
        assert mvn.put(path, b"one", If_None_Match="*").status == 201
        assert mvn.put(path, b"two", If_None_Match="*").status == 412
        assert mvn.put(path, b"two", If_Match='"other"').status == 412
        assert mvn.put(path, b"two", If_Unmodified_Since="Mon, 01 Jan 2001 00:00:00 GMT").status == 412
        assert mvn.get(path).body == b"one"
        assert mvn.put(path, b"two", If_Match=mvn.get(path).headers["etag"]).status == 200
        assert mvn.get(path).body == b"two"
