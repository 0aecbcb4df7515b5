"""Bundles at the same time, and how many of them a user may have."""

import json
import threading

import pytest

from tests.support.maven_bundles import (
    JSON,
    WAIT,
    artifact,
    deploy,
    make_pom,
    make_zip,
    served,
    two,
)

pytestmark = pytest.mark.server


def test_of_parallel_bundles_of_one_version_one_is_published_whole(repository):
    where = repository("fixed")
    names = [f"com/example/race-{part}/1.0/race-{part}-1.0" for part in ("one", "two", "three")]
    poms = {f"{name}.pom": make_pom("com.example", name.split("/")[2], "1.0") for name in names}
    bundles = [{**poms, **{f"{name}.jar": b"of %d" % number for name in names}} for number in range(6)]
    replies = []

    def run(members):
        replies.append(deploy(where, members))

    threads = [threading.Thread(target=run, args=(members,)) for members in bundles]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409, 409]
    assert len({where.get(f"/{name}.jar").body for name in names}) == 1


def test_parallel_bundles_of_other_versions_are_all_published(mvn):
    bundles = [artifact("com.example", "parallel", f"1.{number}") for number in range(8)]
    replies = []
    threads = [threading.Thread(target=lambda each=each: replies.append(deploy(mvn, each))) for each in bundles]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [reply.status for reply in replies] == [201] * 8
    assert {status for each in bundles for status in served(mvn, each)} == {200}


def test_ordinary_paths_may_look_like_those_of_deployments(mvn):
    uid = "00000000-0000-0000-0000-000000000000"
    for path in ("/deploy", f"/deploy/{uid}/file", f"/deploy/{uid}/publish/x", f"/deploy/{uid}/files/a"):
        if path != "/deploy":
            assert mvn.put(path, b"x").status == 201
            assert mvn.get(path).body == b"x"
    members = artifact("deploy.example", "app", "1.0")
    for path, content in members.items():
        assert mvn.put(f"/{path}", content).status == 201
    assert mvn.get(f"/deploy/{uid}").status == 404
    assert mvn.delete(f"/deploy/{uid}/file").status == 204


def test_a_user_has_a_limited_number_of_open_deployments(as_token, mvn):
    uids = []
    where = mvn.as_user("admin", "correct horse battery")
    open_before = 0
    while True:
        reply = deploy(where, artifact("com.many", f"a{len(uids)}", "1.0"), f"{WAIT}&publishing_type=USER_MANAGED")
        if reply.status != 201:
            break
        uids.append(reply.json["deployment_id"])
        assert len(uids) <= 50 - open_before
    assert reply.status == 409
    assert "open deployments here; publish or drop some" in reply.text
    assert where.delete(f"/deploy/{uids[0]}").status == 204
    assert deploy(where, two("room-again")).status == 201
    for uid in uids[1:]:
        assert where.delete(f"/deploy/{uid}").status == 204


def test_the_sizes_of_open_deployments_are_limited_together(repository):
    where = repository("private")
    big = bytes(range(256)) * 4 * 1800  # 1.8 MB; four uploads of 2 MiB are allowed
    uids = []
    while True:
        name = f"big{len(uids)}"
        members = artifact("com.big", name, "1.0", jar=big + name.encode())
        data = make_zip(members, packed=False)
        reply = where.ask("POST", f"{WAIT}&publishing_type=USER_MANAGED", data, JSON)
        if reply.status != 201:
            break
        uids.append(reply.json["deployment_id"])
        assert len(uids) <= 4
    assert reply.status == 409
    assert "would take more than 8388608 bytes" in reply.text
    for uid in uids:
        assert where.delete(f"/deploy/{uid}").status == 204


def test_statuses_have_no_secrets_and_are_not_cached(mvn):
    reply = mvn.get(f"/deploy/{deploy(mvn, two('uncached')).json['deployment_id']}")
    assert reply.headers["cache-control"] == "no-store"
    assert json.dumps(reply.json).count("horse") == 0
    assert set(reply.json) == {
        "deployment_id", "name", "state", "publishing_type", "user", "size", "created_at", "updated_at", "errors",
        "components", "component_count", "file_count",
    }  # fmt: skip
