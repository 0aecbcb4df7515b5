"""Push rules and permissions count for every version of a bundle, and decide who sees deployments."""

import pytest

from tests.support.maven_bundles import (
    WAIT,
    artifact,
    deploy,
    served,
    two,
)

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("name", "wrong"), [("releases", "2.0-SNAPSHOT"), ("snapshots", "2.0")])
def test_the_push_policy_counts_for_every_version(repository, name, wrong):
    where = repository(name)
    right = "1.0" if name == "releases" else "1.0-SNAPSHOT"
    members = {**artifact("com.policy", "one", right), **artifact("com.policy", "two", wrong)}
    reply = deploy(where, members)
    assert reply.status == 409
    assert reply.json["errors"] == {
        f"com/policy/two/{wrong}": [f"Repository accepts only {name.upper()}; {wrong} refused"]
    }
    assert served(where, members) == {404}


def test_the_permission_counts_for_every_package(as_token):
    where = as_token("writer")
    mine, others = artifact("com.team", "mine", "1.0"), artifact("com.others", "theirs", "1.0")
    reply = deploy(where, {**mine, **others})
    assert reply.status == 403
    assert list(reply.json["errors"]) == ["com/others/theirs/1.0"]
    assert served(where, mine) == {404}
    assert deploy(where, mine).status == 201


def test_a_token_is_needed_where_the_repository_wants_one(repository, as_token):
    members = two("with-token")
    reply = deploy(repository("tokens"), members)
    assert (reply.status, reply.reason) == (403, "Use an auth token instead of a password for this repository")
    assert deploy(as_token("all", "tokens"), members).status == 201


def test_strangers_and_readers_may_not_deploy(mvn, as_token):
    anonymous = deploy(mvn.as_user(), two("stranger"))
    assert (anonymous.status, anonymous.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')
    assert deploy(as_token("reader"), two("stranger")).status == 403
    assert deploy(mvn.as_user("admin", "wrong"), two("stranger")).status == 401


def test_deployments_of_others_are_not_shown(mvn, as_token, repository):
    uid = deploy(mvn, two("hidden"), f"{WAIT}&publishing_type=USER_MANAGED").json["deployment_id"]
    assert mvn.as_user().get(f"/deploy/{uid}").status == 401
    assert as_token("reader").get(f"/deploy/{uid}").status == 403
    assert mvn.as_user().post(f"/deploy/{uid}").status == 401
    assert mvn.as_user().delete(f"/deploy/{uid}").status == 401
    for method in ("GET", "POST", "DELETE"):  # of the same user, but for other packages
        assert as_token("writer").ask(method, f"/deploy/{uid}").status == 404
    assert mvn.get(f"/deploy/{uid}").json["state"] == "VALIDATED"
    assert repository("private").get(f"/deploy/{uid}").status == 404
