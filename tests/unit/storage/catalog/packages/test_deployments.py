"""Deployments in the catalog: states, leases, files, expiry."""

import pytest

from pkgrepo.model.deployments import DeploymentState
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.packages import deployments, interrupted_deployments
from pkgrepo.storage.catalog.packages.deployments import (
    ARCHIVE,
    EXPIRED,
    EXPIRES_MS,
    FAILED,
    KEPT_MS,
    LEASE_MS,
    PENDING,
    PUBLISHED,
    VALIDATED,
    VALIDATING,
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
        scene.catalog.do(deployments.forget_deployment, each.id)
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
    scene.catalog.do(interrupted_deployments.release, made.id, NOW)
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
