"""Deletion of files, versions, builds and artifacts."""

from __future__ import annotations

import pytest

from tests.support.maven_files import JAR, make_pom, put_all

pytestmark = pytest.mark.server


def fill(where, artifact, *versions):
    for version in versions:
        files = {".jar": JAR, ".jar.asc": b"signature", ".pom": make_pom("com.example", artifact, version)}
        put_all(where, "com.example", artifact, version, files)


def present(where, artifact, version, *rests):
    base = f"/com/example/{artifact}/{version}/{artifact}-{version}"
    return [where.get(base + rest).status == 200 for rest in rests]


def test_a_file_goes_with_its_signatures_and_checksums(mvn):
    fill(mvn, "gone", "1.0")
    reply = mvn.delete("/com/example/gone/1.0/gone-1.0.jar")
    assert (reply.status, reply.body) == (204, b"")
    assert present(mvn, "gone", "1.0", ".jar", ".jar.asc", ".jar.sha1", ".pom") == [False, False, False, True]
    assert mvn.delete("/com/example/gone/1.0/gone-1.0.jar").status == 404


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_version(mvn, api, slash):
    artifact = f"versions{len(slash)}"
    fill(mvn, artifact, "1.0", "1.1")
    assert mvn.delete(f"/com/example/{artifact}/1.0{slash}").status == 204
    assert present(mvn, artifact, "1.0", ".jar", ".pom", ".jar.asc") == [False] * 3
    assert present(mvn, artifact, "1.1", ".jar", ".pom", ".jar.asc") == [True] * 3
    assert mvn.delete(f"/com/example/{artifact}/1.0{slash}").status == 404
    listed = api.get(f"/package/main%2Fmvn/com.example%3A{artifact}/versions").json
    assert [each["version"] for each in listed["items"]] == ["1.1"]


@pytest.mark.parametrize("slash", ["", "/"])
def test_an_artifact(mvn, api, slash):
    artifact = f"artifact{len(slash)}"
    fill(mvn, artifact, "1.0", "1.1", "1.2")
    assert mvn.delete(f"/com/example/{artifact}{slash}").status == 204
    for version in ("1.0", "1.1", "1.2"):
        assert present(mvn, artifact, version, ".jar", ".pom") == [False] * 2
    assert mvn.delete(f"/com/example/{artifact}{slash}").status == 404
    assert api.get(f"/package/main%2Fmvn/com.example%3A{artifact}").status == 404


def test_one_build_of_a_snapshot(mvn):
    for build in (1, 2, 12):
        put_all(
            mvn, "com.example", "built", "1.1-SNAPSHOT", {".jar": JAR, ".pom": make_pom("com.example", "built", "1.1")},
            name=f"1.1-20240102.03040{build % 10}-{build}",
        )  # fmt: skip
    base = "/com/example/built/1.1-SNAPSHOT"
    assert mvn.delete(f"{base}/2").status == 204
    left = [mvn.get(f"{base}/built-1.1-20240102.03040{n % 10}-{n}.pom").status for n in (1, 2, 12)]
    assert left == [404 if n == 2 else 200 for n in (1, 2, 12)]
    assert mvn.delete(f"{base}/2").status == 404
    assert mvn.delete(f"{base}/{'9' * 30}").status == 404
    assert mvn.delete(f"{base}/%C2%B2").status == 404  # a digit, but no ASCII one


def test_a_plain_file_and_nothing_above_it(mvn):
    assert mvn.put("/folder/inner/file.txt", b"x").status == 201
    for path in ("/folder", "/folder/", "/folder/inner/", "/", ""):
        assert (path, mvn.delete(path).status) == (path, 404)
    assert mvn.delete("/folder/inner/file.txt").status == 204
    assert mvn.get("/folder/inner/file.txt").status == 404
    assert mvn.delete("/folder/inner/file.txt").status == 404


def test_groups_are_not_deleted(mvn):
    fill(mvn, "member", "1.0")
    for path in ("/com/example/", "/com/", "/com/example"):
        assert mvn.delete(path).status == 404
    assert present(mvn, "member", "1.0", ".jar") == [True]


def test_what_was_deleted_can_be_deployed_again_where_files_may_be_overwritten(mvn):
    fill(mvn, "again", "1.0")
    assert mvn.delete("/com/example/again/1.0/").status == 204
    assert mvn.put("/com/example/again/1.0/again-1.0.jar", b"other").status == 201
    assert mvn.delete("/com/example/again/").status == 204
    fill(mvn, "again", "1.0")
    assert present(mvn, "again", "1.0", ".jar", ".pom") == [True] * 2


def test_a_deletion_is_no_way_around_the_rule_about_overwriting(repository):
    where = repository("fixed")
    fill(where, "burned", "1.0")
    assert where.delete("/com/example/burned/1.0/").status == 204
    reply = where.put("/com/example/burned/1.0/burned-1.0.jar", b"other")
    assert (reply.status, "was deleted" in reply.reason) == (409, True)
    with where.connect() as connection:
        head = where.head_lines(
            "PUT", "/com/example/burned/1.0/burned-1.0.jar", Content_Length="5", Expect="100-continue"
        )
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 409 ")
    fill(where, "burned", "1.1")


def test_a_repository_that_keeps_everything(repository):
    where = repository("unyankable")
    fill(where, "kept", "1.0")
    for path in ("/com/example/kept/1.0/kept-1.0.jar", "/com/example/kept/1.0/", "/com/example/kept", "/no/such/thing"):
        reply = where.delete(path)
        assert (path, reply.status) == (path, 403)
        assert reply.reason == "Deleting is disabled in this repository (yanking_allowed)"
    assert present(where, "kept", "1.0", ".jar", ".pom") == [True] * 2


def test_who_may_delete(mvn, as_token):
    fill(mvn, "guarded", "1.0")
    path = "/com/example/guarded/1.0/"
    nobody = mvn.as_user().delete(path)
    assert (nobody.status, nobody.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')
    for name in ("reader", "writer", "elsewhere"):
        assert as_token(name).delete(path).status == 403
    assert present(mvn, "guarded", "1.0", ".jar") == [True]
    assert as_token("all").delete(path).status == 204


def test_metadata_is_computed_unless_it_is_stored_as_it_came(mvn):
    fill(mvn, "computed", "1.0")
    for path in ("/com/example/computed/maven-metadata.xml", "/com/example/computed/1.0/repo-metadata.xml"):
        reply = mvn.delete(path)
        assert (reply.status, "computed" in reply.reason) == (405, True)
    stored = b"<metadata><plugins/></metadata>"
    assert mvn.put("/alone/maven-metadata.xml", stored).status == 201
    assert mvn.get("/alone/repo-metadata.xml").status == 200
    assert mvn.delete("/alone/repo-metadata.xml").status == 204
    assert mvn.get("/alone/maven-metadata.xml").status == 404


def test_signatures_of_signatures_go_too(mvn):
    base = "/com/example/signed-twice/1.0/signed-twice-1.0.jar"
    for rest in ("", ".sigstore.json", ".sigstore.json.asc", ".asc"):
        assert mvn.put(base + rest, b"x" + rest.encode()).status == 201
    assert mvn.put(base.replace(".jar", ".jar2"), b"x").status == 201
    assert mvn.delete(base).status == 204
    for rest in ("", ".sigstore.json", ".sigstore.json.asc", ".asc"):
        assert mvn.get(base + rest).status == 404
    assert mvn.get(base.replace(".jar", ".jar2")).status == 200
