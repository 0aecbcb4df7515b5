"""Bundles publish all of their artifacts at once, or nothing and say why."""

import hashlib

import pytest

from tests.support.maven_bundles import (
    WAIT,
    ZIP,
    artifact,
    deploy,
    make_tar,
    make_tar_gz,
    make_zip,
    served,
    two,
    wait_for_end,
    with_checksums,
)

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_zip, "application/zip"),
        (make_tar, "application/x-tar"),
        (make_tar_gz, "application/gzip"),
        (make_tar_gz, "application/octet-stream"),
    ],
)
def test_two_components_are_published_at_once(repository, make, kind):
    where = repository("bundles")
    members = with_checksums(two(f"at-once-{make.__name__.replace('_', '-')}-{kind.rpartition('/')[2]}"))
    reply = where.ask("POST", WAIT, make(members), {"Content-Type": kind, "Accept": "application/json"})
    assert (reply.status, reply.json["state"], reply.json["errors"]) == (201, "PUBLISHED", {})
    assert reply.json["component_count"] == 2
    assert reply.json["file_count"] == 4
    for path, content in members.items():
        assert where.get(f"/{path}").body == content
    sha512 = hashlib.sha512(next(iter(members.values()))).hexdigest()
    assert where.get(f"/{next(iter(members))}.sha512").text == sha512


def test_a_plain_put_is_refused_where_only_bundles_are_taken(repository):
    where = repository("bundles")
    path, content = next(iter(two("plain-put").items()))
    reply = where.put(f"/{path}", content)
    expected = "This repository accepts bundle deploys only: POST /repositories/main/bundles/deploy"
    assert (reply.status, reply.reason) == (403, expected)
    assert where.get(f"/{path}").status == 404


def test_one_wrong_checksum_publishes_nothing(mvn):
    members = with_checksums(two("wrong-sum"))
    wrong = next(path for path in members if path.endswith("wrong-sum-two-1.0.jar.sha1"))
    members[wrong] = b"0" * 40
    reply = deploy(mvn, members)
    jar = wrong.removesuffix(".sha1")
    assert (reply.status, reply.json["state"]) == (400, "FAILED")
    assert list(reply.json["errors"]) == [jar]
    assert reply.json["errors"][jar][0].startswith("sha1 mismatch: the deployment says 000")
    assert reply.reason.startswith(f"{jar}: sha1 mismatch")
    assert served(mvn, members) == {404}


def test_the_id_of_a_deployment_is_answered_as_text_or_json_and_its_end_can_be_asked(mvn):
    members = two("asked")
    reply = mvn.ask("POST", "/deploy?name=build+7", make_zip(members), ZIP)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (201, "text/plain")
    status = wait_for_end(mvn, reply.text)
    assert (status["state"], status["name"], status["user"]) == ("PUBLISHED", "build 7", "admin")
    assert status["components"] == [
        {"group_id": "com.example", "artifact_id": "asked-one", "version": "1.0"},
        {"group_id": "com.example.sub", "artifact_id": "asked-two", "version": "1.0"},
    ]
    other = deploy(mvn, two("asked-too"), "/deploy")
    assert other.status == 201
    assert sorted(other.json) == ["deployment_id", "state"]


def test_a_bundle_that_a_user_publishes_is_not_visible_before(mvn):
    members = two("managed")
    reply = deploy(mvn, members, f"{WAIT}&publishing_type=user_managed")
    assert (reply.status, reply.json["state"], reply.json["publishing_type"]) == (201, "VALIDATED", "USER_MANAGED")
    uid = reply.json["deployment_id"]
    assert served(mvn, members) == {404}
    for path, content in members.items():
        assert mvn.get(f"/deploy/{uid}/files/{path}").body == content
        assert mvn.get(f"/deploy/{uid}/files/{path}.sha1").text == hashlib.sha1(content).hexdigest()
    part = mvn.get(f"/deploy/{uid}/files/{next(iter(members))}", Range="bytes=1-3")
    assert (part.status, part.body) == (206, next(iter(members.values()))[1:4])
    assert mvn.get(f"/deploy/{uid}/files/com/example/other/1.0/other-1.0.jar").status == 404
    published = mvn.post(f"/deploy/{uid}/publish", Accept="application/json")
    assert (published.status, published.json["state"]) == (200, "PUBLISHED")
    assert served(mvn, members) == {200}
    assert mvn.get(f"/deploy/{uid}/files/{next(iter(members))}").status == 404
    again = mvn.post(f"/deploy/{uid}")
    assert (again.status, "is PUBLISHED" in again.reason) == (409, True)
    assert mvn.delete(f"/deploy/{uid}").status == 409


def test_a_validated_deployment_can_be_dropped(mvn):
    members = two("dropped")
    uid = deploy(mvn, members, f"{WAIT}&publishingType=USER_MANAGED").json["deployment_id"]
    assert mvn.delete(f"/deploy/{uid}").status == 204
    assert mvn.get(f"/deploy/{uid}").status == 404
    assert mvn.post(f"/deploy/{uid}").status == 404
    assert served(mvn, members) == {404}


def test_the_same_bundle_again_changes_nothing(repository):
    where = repository("fixed")
    members = two("again")
    first = deploy(where, members)
    stamp = where.get(f"/{next(iter(members))}").headers["last-modified"]
    second = deploy(where, members)
    assert [first.json["state"], second.json["state"]] == ["PUBLISHED", "PUBLISHED"]
    assert where.get(f"/{next(iter(members))}").headers["last-modified"] == stamp


def test_a_bundle_that_overlaps_publishes_nothing_where_files_are_fixed(repository):
    where = repository("fixed")
    first, second = artifact("com.example", "overlap-one", "1.0"), artifact("com.example", "overlap-two", "1.0")
    assert deploy(where, second).status == 201
    jar = next(iter(second))
    reply = deploy(where, {**first, **second, jar: b"other"})
    assert (reply.status, reply.json["state"]) == (409, "FAILED")
    assert list(reply.json["errors"]) == [jar]
    assert "already exists" in reply.json["errors"][jar][0]
    assert served(where, first) == {404}
    assert where.get(f"/{jar}").body == second[jar]


def test_a_bundle_replaces_files_where_that_is_allowed(mvn):
    members = artifact("com.example", "replaced", "1.0")
    assert deploy(mvn, members).status == 201
    jar = next(iter(members))
    assert deploy(mvn, {**members, jar: b"other"}).status == 201
    assert mvn.get(f"/{jar}").body == b"other"


def test_a_snapshot_without_timestamp_is_replaced_even_where_files_are_fixed(repository):
    where = repository("fixed")
    members = artifact("com.example", "moving", "1.0-SNAPSHOT")
    jar = next(iter(members))
    for content in (b"one", b"two"):
        assert deploy(where, {**members, jar: content}).status == 201
        assert where.get(f"/{jar}").body == content
