"""Deployments in the catalog: states, leases, files, expiry."""

import pytest

from pkgrepo.model.deployments import DeploymentState
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import (
    ARCHIVE,
    EXPIRED,
    EXPIRES_MS,
    FAILED,
    FREE,
    GIVEN_UP,
    INTERRUPTED,
    KEPT_MS,
    LEASE_MS,
    MOST_ATTEMPTS,
    PENDING,
    PUBLISHED,
    PUBLISHING,
    VALIDATED,
    VALIDATING,
    list_interrupted,
    release_deployment,
    release_interrupted,
    take_over,
)
from tests.support.catalogs import NOW
from tests.support.deployments import Scene


def test_a_new_deployment_is_found_with_its_values_in_its_repository_only():
    scene = Scene()
    made = scene.add()
    assert scene.find() == made
    assert (made.state, made.automatic, made.user_id, made.actor) == (PENDING, True, 1, "ann")
    assert (made.name, made.size, made.meta, made.errors) == ("n", 10, {"a": 1}, {})
    assert (made.lease_ms, made.created_ms, made.touched_ms) == (NOW + LEASE_MS, NOW, NOW)
    assert scene.catalog.peek(deployments.find_deployment, scene.repository.id + 1, "one") is None
    assert scene.catalog.peek(deployments.find_state, scene.repository.id, made.id) is PENDING
    assert scene.catalog.peek(deployments.find_state, scene.repository.id + 1, made.id) is None


def test_a_state_changes_only_from_the_state_before():
    scene = Scene()
    made = scene.add()
    assert scene.move(made, PENDING, VALIDATING, leased=True, now_ms=NOW + 5)
    assert not scene.move(made, PENDING, VALIDATED)
    found = scene.find()
    assert (found.state, found.lease_ms, found.touched_ms) == (VALIDATING, NOW + 5 + LEASE_MS, NOW + 5)
    assert scene.move(made, VALIDATING, VALIDATED)
    assert scene.find().lease_ms is None


def test_files_are_listed_by_path_and_each_path_has_one():
    scene = Scene()
    made, other = scene.add(), scene.add("two")
    assert scene.stage(made, "b")
    assert scene.stage(made, "a", b"other")
    assert not scene.stage(made, "b", b"third")
    assert scene.stage(other, "b", b"third")
    assert [(each.path, each.blob.size, each.attrs) for each in scene.files(made)] == [
        ("a", 5, {"k": "v"}),
        ("b", 3, {"k": "v"}),
    ]
    found = scene.catalog.peek(deployments.find_staged_file, made.id, "b")
    assert found == scene.files(made)[1]
    assert found.blob.digests["md5"] == "0"
    assert scene.catalog.peek(deployments.find_staged_file, made.id, "c") is None


def test_the_locator_of_a_damaged_file_is_empty():
    scene = Scene()
    made = scene.add()
    scene.stage(made)
    blob = scene.files(made)[0].blob
    scene.catalog.do(blobs.mark_suspect, scene.repository.storage_id, blob.sha256, blob.locator)
    assert scene.files(made)[0].blob.locator == ""


def collectable(scene):
    found, _ = scene.catalog.peek(gc.candidates, scene.repository.storage_id, NOW + 1, 10)
    return len(found)


@pytest.mark.parametrize("state", [PUBLISHED, FAILED])
def test_the_end_drops_the_files_whose_bytes_may_then_be_collected(state):
    scene = Scene()
    made, other = scene.add(), scene.add("two")
    scene.stage(made)
    scene.stage(other, content=b"other")
    assert collectable(scene) == 0
    scene.catalog.do(deployments.end_deployment, made.id, state, {"p": ["no"]}, NOW + 7)
    found = scene.find()
    assert (found.state, found.errors, found.lease_ms, found.touched_ms) == (state, {"p": ["no"]}, None, NOW + 7)
    assert scene.files(made) == []
    assert len(scene.files(other)) == 1
    assert collectable(scene) == 1


def test_what_has_ended_does_not_end_again():
    scene = Scene()
    made = scene.add()
    scene.catalog.do(deployments.end_deployment, made.id, PUBLISHED, {}, NOW)
    scene.catalog.do(deployments.end_deployment, made.id, FAILED, {"": ["no"]}, NOW)
    assert (scene.find().state, scene.find().errors) == (PUBLISHED, {})


def test_a_deployment_is_removed_with_its_files_unless_it_is_worked_on_or_published():
    scene = Scene()
    made = scene.add(automatic=False)
    scene.stage(made)
    assert not scene.catalog.do(deployments.remove_deployment, made.id)
    scene.move(made, PENDING, PUBLISHED)
    assert not scene.catalog.do(deployments.remove_deployment, made.id)
    scene.move(made, PUBLISHED, VALIDATED)
    assert scene.catalog.do(deployments.remove_deployment, made.id)
    assert scene.find() is None
    assert scene.files(made) == []
    assert collectable(scene) == 1


def test_an_archive_is_kept_until_the_files_are_stored_and_is_no_file():
    scene = Scene()
    made = scene.add()
    scene.stage(made, ARCHIVE, b"zip")
    scene.stage(made, "a")
    assert [each.path for each in scene.files(made)] == ["a"]
    assert len(scene.catalog.peek(deployments.staged_digests, made.id)) == 2
    assert scene.catalog.peek(deployments.find_staged_file, made.id, ARCHIVE).blob.size == 3

    def finish():
        return scene.catalog.do(deployments.finish_validation, made.id, 7, leased=True, now_ms=NOW + 1)

    assert not finish()
    assert scene.catalog.peek(deployments.find_staged_file, made.id, ARCHIVE) is not None
    scene.move(made, PENDING, VALIDATING)
    assert finish()
    found = scene.find()
    assert (found.state, found.size, found.lease_ms) == (VALIDATED, 7, NOW + 1 + LEASE_MS)
    assert scene.catalog.peek(deployments.find_staged_file, made.id, ARCHIVE) is None
    assert collectable(scene) == 1


def test_only_what_has_not_arrived_is_forgotten():
    scene = Scene()
    arriving, stored = scene.add("one"), scene.add("two")
    scene.move(stored, PENDING, VALIDATING)
    for each in (arriving, stored):
        scene.catalog.do(deployments.forget_deployment, each.id, PENDING)
    assert scene.find("one") is None
    assert scene.find("two") is not None


def test_open_deployments_of_a_user_are_counted_with_their_sizes():
    scene = Scene()
    scene.add("one", size=5)
    second = scene.add("two", size=7)
    scene.add("three", size=100, user_id=2)
    ended = scene.add("four", size=1000)
    scene.catalog.do(deployments.end_deployment, ended.id, FAILED, {}, NOW)
    scene.catalog.do(deployments.set_size, second.id, 8)
    assert scene.catalog.peek(deployments.open_deployments, scene.repository.id, 1) == (2, 13)
    assert scene.catalog.peek(deployments.open_deployments, scene.repository.id, 9) == (0, 0)


def test_a_session_is_open_for_its_package_until_it_ends_or_expires():
    scene = Scene()
    made = scene.add(package_key="g:a", leased=False)

    def is_open(key="g:a", now_ms=NOW):
        return scene.catalog.peek(deployments.has_open_session, scene.repository.id, key, now_ms)

    assert is_open()
    assert not is_open("g:b")
    assert not is_open(now_ms=NOW + EXPIRES_MS + 1)
    scene.catalog.do(deployments.end_deployment, made.id, PUBLISHED, {}, NOW)
    assert not is_open()


def test_renewing_gives_no_lease_to_what_has_none():
    scene = Scene()
    made = scene.add(leased=False)
    scene.catalog.do(deployments.renew_leases, [made.id], NOW)
    assert scene.find().lease_ms is None


def test_what_is_not_published_within_a_day_fails_and_is_removed_a_week_later():
    scene = Scene()
    made = scene.add(automatic=False)
    scene.stage(made)
    scene.move(made, PENDING, VALIDATED)
    end = NOW + EXPIRES_MS
    assert scene.catalog.do(deployments.expire_deployments, end, 10) == 0
    assert scene.catalog.do(deployments.expire_deployments, end + 1, 10) == 1
    found = scene.find()
    assert (found.state, found.errors) == (FAILED, {"": [EXPIRED]})
    assert scene.files(made) == []
    assert scene.catalog.do(deployments.expire_deployments, end + 1 + KEPT_MS, 10) == 0
    assert scene.find() is not None
    assert scene.catalog.do(deployments.expire_deployments, end + 2 + KEPT_MS, 10) == 1
    assert scene.find() is None


def test_what_a_process_works_on_does_not_expire():
    scene = Scene()
    made, later = scene.add(), NOW + EXPIRES_MS + 1
    scene.catalog.do(deployments.renew_leases, [made.id], later)
    assert scene.catalog.do(deployments.expire_deployments, later, 10) == 0


def test_what_no_process_takes_over_expires_too():
    scene = Scene()
    made = scene.add()
    scene.move(made, PENDING, VALIDATING, leased=True)
    scene.catalog.do(deployments.release_deployment, made.id, NOW)
    assert scene.catalog.do(deployments.expire_deployments, NOW + EXPIRES_MS + 1, 10) == 1
    assert scene.find().state is FAILED


def test_expiry_goes_in_steps():
    scene = Scene()
    for number in range(5):
        scene.add(str(number), leased=False)
    later = NOW + EXPIRES_MS + 1
    assert [scene.catalog.do(deployments.expire_deployments, later, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_states_have_ended_or_not():
    assert [state for state in DeploymentState if state.ended] == [PUBLISHED, FAILED]


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
        scene.catalog.do(release_deployment, made.id, NOW)
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
    scene.catalog.do(release_deployment, made.id, LATER)
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
