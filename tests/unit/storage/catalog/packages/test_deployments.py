"""Deployments in the catalog: states, leases, files, expiry."""

import pytest

from pkgrepo.model.deployments import DeploymentState, StagedFile
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import (
    EXPIRED,
    EXPIRES_MS,
    FAILED,
    INTERRUPTED,
    KEPT_MS,
    LEASE_MS,
    PENDING,
    PUBLISHED,
    PUBLISHING,
    VALIDATED,
    VALIDATING,
)
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

LATER = NOW + LEASE_MS + 1


class Scene:
    """A catalog with a repository; deployments are made of user 1."""

    def __init__(self):
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)

    def add(self, uid="one", *, now_ms=NOW, automatic=True, leased=True, **values):
        defaults = {"package_key": "", "name": "n", "user_id": 1, "actor": "ann", "size": 10, "meta": {"a": 1}}
        return self.catalog.do(
            deployments.add_deployment,
            uid=uid,
            repository_id=self.repository.id,
            automatic=automatic,
            leased=leased,
            now_ms=now_ms,
            **(defaults | values),
        )

    def find(self, uid="one"):
        return self.catalog.peek(deployments.find_deployment, self.repository.id, uid)

    def move(self, deployment, before, after, *, leased=False, now_ms=NOW):
        return self.catalog.do(deployments.set_state, deployment.id, before, after, leased=leased, now_ms=now_ms)

    def stage(self, deployment, path="g/a/1/a-1.jar", content=b"jar"):
        blob = self.catalog.do(blobs.claim_blob, self.repository.storage_id, make_blob(content, md5="0"), NOW)
        staged = StagedFile(path, blob, {"k": "v"})
        return self.catalog.do(deployments.add_staged_file, deployment.id, self.repository.storage_id, staged)

    def end_interrupted(self, now_ms, alone_since_ms=0):
        return self.catalog.do(deployments.end_interrupted, self.repository.storage_id, now_ms, alone_since_ms)

    def files(self, deployment):
        return self.catalog.peek(deployments.staged_files, deployment.id)


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


@pytest.mark.parametrize(
    ("state", "automatic", "key", "expected"),
    [
        (PENDING, True, "", FAILED),
        (PENDING, False, "", FAILED),
        (PENDING, False, "g:a", PENDING),
        (VALIDATING, True, "", FAILED),
        (VALIDATING, False, "", FAILED),
        (VALIDATED, True, "", FAILED),
        (VALIDATED, False, "", VALIDATED),
        (PUBLISHING, True, "", FAILED),
        (PUBLISHING, False, "", VALIDATED),
        (PUBLISHING, False, "g:a", PENDING),
    ],
)
def test_a_deployment_whose_process_was_killed_is_ended_or_waits_again(state, automatic, key, expected):
    scene = Scene()
    made = scene.add(automatic=automatic, package_key=key)
    scene.stage(made)
    if state is not PENDING:
        scene.move(made, PENDING, state, leased=True)
    assert scene.end_interrupted(NOW + LEASE_MS) == 0
    assert scene.find().state is state
    assert scene.end_interrupted(LATER) == 1
    found = scene.find()
    assert (found.state, found.lease_ms) == (expected, None)
    assert found.errors == ({"": [INTERRUPTED]} if expected is FAILED else {})
    assert len(scene.files(made)) == (0 if expected is FAILED else 1)
    assert scene.end_interrupted(LATER) == 0


def test_a_renewed_lease_keeps_a_deployment_from_being_ended():
    scene = Scene()
    made = scene.add()
    scene.catalog.do(deployments.renew_leases, [made.id], NOW + 20_000)
    assert scene.end_interrupted(LATER) == 0
    assert scene.find().state is PENDING


def test_leases_from_before_a_process_was_alone_have_expired_at_once_in_its_storage():
    scene = Scene()
    scene.add()
    assert scene.end_interrupted(NOW + 1, NOW) == 0
    assert scene.catalog.do(deployments.end_interrupted, scene.repository.storage_id + 1, LATER, LATER) == 0
    assert scene.end_interrupted(NOW + 1, NOW + 1) == 1
    assert scene.find().state is FAILED


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
    scene.add()
    assert scene.catalog.do(deployments.expire_deployments, NOW + EXPIRES_MS + 1, 10) == 0


def test_expiry_goes_in_steps():
    scene = Scene()
    for number in range(5):
        scene.add(str(number), leased=False)
    later = NOW + EXPIRES_MS + 1
    assert [scene.catalog.do(deployments.expire_deployments, later, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_states_have_ended_or_not():
    assert [state for state in DeploymentState if state.ended] == [PUBLISHED, FAILED]
