"""Sessions: the files of one version are announced, sent one by one, and published together."""

import hashlib

import pytest

from tests.support.maven_bundles import SIGNATURE, artifact, make_jar, make_pom, make_zip

pytestmark = pytest.mark.server

SPEAKS = {"x-service-deploy": "maven 1"}
GROUP = "com.session"


def members_of(name, version="1.0", **rest):
    """The files of a version by name."""
    return {path.rpartition("/")[2]: content for path, content in artifact(GROUP, name, version, **rest).items()}


def announce(name, members, version="1.0", **digests):
    files = [{"file_name": each, "sha1": hashlib.sha1(content).hexdigest()} for each, content in members.items()]
    return {"group_id": GROUP, "artifact_id": name, "version": version, "name": "n", "files": files, **digests}


def begin(where, name, members, version="1.0"):
    reply = where.post_json("/deploy", announce(name, members, version))
    assert reply.status == 200, reply
    return reply.json["deploy_id"]


def path_of(name, file, version="1.0"):
    return f"/{GROUP.replace('.', '/')}/{name}/{version}/{file}"


def test_the_files_of_a_session_are_visible_together_after_publish(repository):
    where = repository("bundles")
    members = members_of("whole")
    uid = begin(where, "whole", members)
    for file, content in members.items():
        assert where.ask("PUT", f"/deploy/{uid}/{file}", content, SPEAKS).status == 201
        assert where.get(path_of("whole", file)).status == 404
    published = where.post(f"/deploy/{uid}/publish")
    assert published.status == 200, published
    assert [(each["name"], each["path"]) for each in published.json["files"]] == [
        (file, path_of("whole", file)[1:]) for file in sorted(members)
    ]
    for file, content in members.items():
        assert where.get(path_of("whole", file)).body == content
    assert where.get(f"/deploy/{uid}").json["state"] == "PUBLISHED"
    assert where.post(f"/deploy/{uid}/publish").status == 409
    assert where.ask("PUT", f"/deploy/{uid}/{file}", content, SPEAKS).status == 409


def test_a_file_that_is_not_the_announced_one_is_refused_and_can_be_sent_again(mvn):
    members = members_of("again")
    uid = begin(mvn, "again", members)
    [jar] = [file for file in members if file.endswith(".jar")]
    wrong = mvn.put(f"/deploy/{uid}/{jar}", b"other")
    assert (wrong.status, "sha1" in wrong.reason) == (400, True)
    assert mvn.put(f"/deploy/{uid}/{jar}", members[jar]).status == 201
    again = mvn.put(f"/deploy/{uid}/{jar}", members[jar])
    assert (again.status, "already exists" in again.reason) == (409, True)
    assert mvn.put(f"/deploy/{uid}/again-1.0.war", b"x").status == 404
    assert mvn.delete(f"/deploy/{uid}").status == 204


def test_files_that_are_missing_keep_the_session_open(mvn):
    members = members_of("missing")
    uid = begin(mvn, "missing", members)
    jar, pom = members
    mvn.put(f"/deploy/{uid}/{jar}", members[jar])
    reply = mvn.post(f"/deploy/{uid}/publish", Accept="application/json")
    assert reply.status == 400
    assert {each["path"] for each in reply.json["errors"]} >= {path_of("missing", pom)[1:]}
    assert mvn.get(f"/deploy/{uid}").json["state"] == "PENDING"
    mvn.put(f"/deploy/{uid}/{pom}", members[pom])
    assert mvn.post(f"/deploy/{uid}/publish").status == 200


def test_nobody_else_pushes_to_the_artifact_while_a_session_is_open(mvn):
    members = members_of("held")
    uid = begin(mvn, "held", members)
    jar = next(iter(members))
    plain = mvn.put(path_of("held", jar), members[jar])
    assert (plain.status, plain.reason) == (409, "A deploy session for com.session:held is open")
    assert mvn.put(path_of("held", "held-2.0.jar", "2.0"), b"x").status == 409
    assert mvn.put(path_of("free", "free-1.0.jar"), b"x").status == 201
    second = mvn.post_json("/deploy", announce("held", members))
    assert (second.status, "is open already" in second.reason) == (409, True)
    assert mvn.delete(f"/deploy/{uid}").status == 204
    assert mvn.put(path_of("held", jar), members[jar]).status == 201


def test_a_session_that_would_overwrite_stays_open_and_publishes_nothing(repository):
    where = repository("fixed")
    members = members_of("taken")
    jar, pom = members
    assert where.put(path_of("taken", jar), b"before").status == 201
    uid = begin(where, "taken", members)
    for file, content in members.items():
        assert where.put(f"/deploy/{uid}/{file}", content).status == 201
    reply = where.post(f"/deploy/{uid}/publish")
    assert (reply.status, "already exists" in reply.reason) == (409, True)
    assert where.get(path_of("taken", pom)).status == 404
    assert where.get(path_of("taken", jar)).body == b"before"
    assert where.delete(f"/deploy/{uid}").status == 204


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("bad-1.0.pom", b"<project>"),
        ("bad-1.0.pom", b"<html/>"),
        ("bad-1.0.pom", make_pom(GROUP, "other", "1.0")),
        ("bad-1.0.jar.asc", b"signed"),
        ("bad-1.0.jar.sigstore.json", b"[]"),
    ],
)
def test_a_malformed_file_is_refused(mvn, file, content):
    reply = mvn.post_json("/deploy", announce("bad", {file: content}))
    uid = reply.json["deploy_id"]
    assert mvn.put(f"/deploy/{uid}/{file}", content).status == 400
    assert mvn.delete(f"/deploy/{uid}").status == 204


def test_signatures_and_snapshots_are_taken(mvn):
    version = "1.0-SNAPSHOT"
    members = members_of("snap", version, file_version="1.0-20240102.030405-1")
    members[f"{next(iter(members))}.asc"] = SIGNATURE
    uid = begin(mvn, "snap", members, version)
    for file, content in members.items():
        assert mvn.put(f"/deploy/{uid}/{file}", content).status == 201
    assert mvn.post(f"/deploy/{uid}").status == 200
    assert mvn.get(path_of("snap", next(iter(members)), version)).status == 200


FILES = [{"file_name": "app-1.0.pom"}]


@pytest.mark.parametrize(
    "change",
    [
        {"group_id": ""},
        {"group_id": "a/b"},
        {"artifact_id": ".."},
        {"artifact_id": "a" * 300},
        {"version": ""},
        {"version": "1/2"},
        {"version": None},
        {"files": []},
        {"files": [{"file_name": "../x"}]},
        {"files": [{"file_name": "app-2.0.pom"}]},
        {"files": [{"file_name": "app-1.0.pom.sha1"}]},
        {"files": [{"file_name": "maven-metadata.xml"}]},
        {"files": FILES * 2},
        {"files": [{"file_name": "app-1.0.pom", "sha1": "12"}]},
        {"files": [{"file_name": "app-1.0.pom", "sha1": "x" * 40}]},
        {"files": [{"file_name": f"app-1.0.{number}"} for number in range(600)]},
        {"name": 7},
    ],
)
def test_a_malformed_document_is_refused(mvn, change):
    document = {"group_id": GROUP, "artifact_id": "app", "version": "1.0", "files": FILES, **change}
    reply = mvn.post_json("/deploy", document)
    assert reply.status == 400, reply


@pytest.mark.parametrize("body", ["", "[]", "{", "null", '"x"', "[" * 10_000])
def test_a_body_that_is_no_document_is_refused(mvn, body):
    assert mvn.post("/deploy", body, Content_Type="application/json").status == 400


def test_sessions_obey_the_push_rules_from_the_start(repository, as_token):
    members = members_of("ruled", "1.0-SNAPSHOT")
    reply = repository("releases").post_json("/deploy", announce("ruled", members, "1.0-SNAPSHOT"))
    assert (reply.status, "accepts only RELEASES" in reply.reason) == (409, True)
    assert as_token("reader").post_json("/deploy", announce("ruled", members, "1.0-SNAPSHOT")).status == 403
    assert as_token("writer").post_json("/deploy", announce("ruled", members, "1.0-SNAPSHOT")).status == 403
    assert repository("mvn").as_user().post_json("/deploy", announce("ruled", members)).status == 401


def test_an_unknown_session_is_not_found_by_those_who_speak_the_protocol(mvn):
    path = "/deploy/00000000-0000-0000-0000-000000000001/app-1.0.jar"
    assert mvn.ask("PUT", path, make_jar(), SPEAKS).status == 404
    assert mvn.ask("PUT", path, make_jar()).status == 201  # an ordinary path
    assert mvn.delete(path).status == 204


def test_a_bundle_takes_no_files(mvn):
    members = artifact(GROUP, "nofiles", "1.0")
    reply = mvn.post("/deploy?wait=1&publishing_type=USER_MANAGED", make_zip(members), Content_Type="application/zip")
    assert mvn.put(f"/deploy/{reply.text}/nofiles-1.0.jar", b"x").status == 400
    assert mvn.delete(f"/deploy/{reply.text}").status == 204
