"""Deployments whose process was stopped: what becomes of them, and who may go on with them."""

import pytest

from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import (
    FAILED,
    LEASE_MS,
    PENDING,
    PUBLISHED,
    PUBLISHING,
    VALIDATED,
    VALIDATING,
)
from pkgrepo.storage.catalog.packages.interrupted_deployments import (
    FREE,
    GIVEN_UP,
    INTERRUPTED,
    MOST_ATTEMPTS,
    list_interrupted,
    release,
    release_interrupted,
    take_over,
)
from tests.support.catalogs import NOW
from tests.support.deployments import Scene

LATER = NOW + LEASE_MS + 1


def released(scene, now_ms=LATER, alone_since_ms=0):
    return scene.catalog.do(release_interrupted, scene.repository.storage_id, now_ms, alone_since_ms)


def interrupted(scene, now_ms=LATER, limit=10):
    return [each.uid for each in scene.catalog.peek(list_interrupted, now_ms, limit)]


def taken(scene, deployment, now_ms=LATER):
    return scene.catalog.do(take_over, deployment.id, now_ms)


@pytest.mark.parametrize(
    ("state", "automatic", "key", "expected", "lease"),
    [
        (PENDING, True, "", FAILED, None),
        (PENDING, False, "", FAILED, None),
        (PENDING, False, "g:a", PENDING, None),
        (VALIDATING, True, "", VALIDATING, FREE),
        (VALIDATING, False, "", VALIDATING, FREE),
        (VALIDATED, True, "", VALIDATED, FREE),
        (VALIDATED, False, "", VALIDATED, None),
        (PUBLISHING, True, "", VALIDATED, FREE),
        (PUBLISHING, False, "", VALIDATED, None),
        (PUBLISHING, False, "g:a", PENDING, None),
    ],
)
def test_what_becomes_of_a_deployment_whose_process_was_killed(state, automatic, key, expected, lease):
    scene = Scene()
    made = scene.add(automatic=automatic, package_key=key)
    scene.stage(made)
    if state is not PENDING:
        scene.move(made, PENDING, state, leased=True)
    assert released(scene, NOW + LEASE_MS) == 0
    assert scene.find().state is state
    assert released(scene) == 1
    found = scene.find()
    assert (found.state, found.lease_ms) == (expected, lease)
    assert found.errors == ({"": [INTERRUPTED]} if expected is FAILED else {})
    assert len(scene.files(made)) == (0 if expected is FAILED else 1)
    assert released(scene) == 0
    assert interrupted(scene) == (["one"] if lease == FREE else [])


def test_a_renewed_lease_keeps_a_deployment_from_being_released():
    scene = Scene()
    made = scene.add()
    scene.catalog.do(deployments.renew_leases, [made.id], NOW + 20_000)
    assert released(scene) == 0
    assert interrupted(scene) == []
    assert taken(scene, made) is None
    assert scene.find().state is PENDING


def test_leases_from_before_a_process_was_alone_have_expired_at_once_in_its_storage():
    scene = Scene()
    scene.add()
    assert released(scene, NOW + 1, NOW) == 0
    assert scene.catalog.do(release_interrupted, scene.repository.storage_id + 1, LATER, LATER) == 0
    assert released(scene, NOW + 1, NOW + 1) == 1
    assert scene.find().state is FAILED


@pytest.mark.parametrize("given_up", [False, True])
def test_one_process_takes_over_what_another_one_has_left(given_up):
    scene = Scene()
    made = scene.add()
    scene.move(made, PENDING, PUBLISHING, leased=True)
    if given_up:
        scene.catalog.do(release, made.id, NOW)
    found = taken(scene, made)
    assert found == scene.find()
    assert (found.state, found.lease_ms, found.touched_ms) == (VALIDATED, LATER + LEASE_MS, LATER)
    assert interrupted(scene) == []
    assert taken(scene, made) is None


def test_what_cannot_be_continued_is_not_taken_over():
    scene = Scene()
    assert taken(scene, scene.add()) is None
    assert scene.find().state is FAILED
    session = scene.add("two", package_key="g:a", automatic=False)
    assert taken(scene, session) is None
    assert (scene.find("two").state, scene.find("two").lease_ms) == (PENDING, None)


def test_a_deployment_that_stops_every_process_fails():
    scene = Scene()
    made = scene.add()
    scene.move(made, PENDING, VALIDATING, leased=True)
    now_ms = LATER
    for _ in range(MOST_ATTEMPTS):
        assert taken(scene, made, now_ms) is not None
        now_ms += LEASE_MS + 1
    assert taken(scene, made, now_ms) is None
    assert (scene.find().state, scene.find().errors) == (FAILED, {"": [GIVEN_UP]})


def test_what_has_ended_is_neither_released_nor_taken_over():
    scene = Scene()
    made = scene.add()
    scene.catalog.do(deployments.end_deployment, made.id, PUBLISHED, {}, NOW)
    scene.catalog.do(release, made.id, LATER)
    assert scene.find().state is PUBLISHED
    assert taken(scene, made) is None


def test_the_oldest_of_active_repositories_are_listed_first():
    scene = Scene()
    for number in range(4):
        made = scene.add(str(number), now_ms=NOW + number)
        scene.move(made, PENDING, VALIDATING, leased=True, now_ms=NOW + number)
    assert interrupted(scene, LATER + 1) == ["0", "1"]
    assert interrupted(scene, LATER + 1, 1) == ["0"]
    scene.catalog.tx.execute("UPDATE repository SET active = 0")
    assert interrupted(scene, LATER + 1) == []
