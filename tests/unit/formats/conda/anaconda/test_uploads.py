"""Tickets and limits of uploads of anaconda-client, in the catalog."""

import pytest

from pkgrepo.errors import Conflict, FileBurned, Forbidden
from pkgrepo.formats.conda.anaconda import uploads
from pkgrepo.formats.conda.anaconda.targets import file_target
from pkgrepo.formats.conda.anaconda.uploads import MOST_OPEN, TICKET_MS, Wish
from pkgrepo.model import Identity
from pkgrepo.model.deployments import DeploymentState, StagedFile
from pkgrepo.storage.catalog.packages import deployments
from tests.support.catalogs import NOW
from tests.support.deployments import Scene

ANN = Identity(user_id=1, username="ann", via="token")
BOB = Identity(user_id=2, username="bob", via="token")


def begin(scene, name="demo", identity=ANN, *, now_ms=NOW, reuse=False):
    target = file_target(["any", name, "1.0", "noarch", f"{name}-1.0-0.conda"])
    return scene.catalog.do(uploads.stage_upload, scene.repository, Wish(target), identity, reuse=reuse, now_ms=now_ms)


def take(scene, uid, ticket, now_ms=NOW):
    return scene.catalog.do(uploads.take_ticket, scene.repository, uid, ticket, now_ms)


def count(scene, identity=ANN):
    return scene.catalog.peek(deployments.open_deployments, scene.repository.id, identity.user_id)[0]


def test_a_ticket_is_taken_once_until_it_expires():
    scene = Scene()
    (first, ticket), (second, other) = begin(scene), begin(scene, "two")
    for uid, text, now_ms in (
        (first.uid, other, NOW),
        (first.uid, "", NOW),
        (second.uid, ticket, NOW),
        ("none", ticket, NOW),
        (first.uid, ticket, NOW + TICKET_MS + 1),
    ):
        with pytest.raises(Forbidden):
            take(scene, uid, text, now_ms)
    assert take(scene, first.uid, ticket, NOW + TICKET_MS).id == first.id
    with pytest.raises(Forbidden):
        take(scene, first.uid, ticket)
    assert ticket not in str(first.meta)


def test_a_deployment_of_another_kind_has_no_ticket():
    scene = Scene()
    with pytest.raises(Forbidden):
        take(scene, scene.add().uid, "")


def test_a_user_has_so_many_uploads_of_which_unused_ones_are_removed():
    scene = Scene()
    made = [begin(scene, f"p{number}") for number in range(MOST_OPEN)]
    with pytest.raises(Forbidden, match="unfinished"):
        begin(scene)
    begin(scene, identity=BOB)
    take(scene, made[0][0].uid, made[0][1])
    begin(scene, now_ms=NOW + TICKET_MS + 1)
    assert (count(scene), count(scene, BOB)) == (2, 0)  # the one that is used, and the new one


def test_a_file_of_a_removed_one_is_refused_unless_names_are_reused(monkeypatch):
    scene = Scene()
    monkeypatch.setattr(uploads, "has_tombstone", lambda *_: True)
    with pytest.raises(FileBurned):
        begin(scene)
    begin(scene, reuse=True)


def test_the_files_of_a_user_take_so_much_together():
    scene = Scene()
    made, ticket = begin(scene)
    take(scene, made.uid, ticket)
    scene.stage(made, "x")
    blob = scene.files(made)[0].blob
    file = StagedFile("noarch/demo-1.0-0.conda", blob)
    keep = uploads.keep_upload
    with pytest.raises(Forbidden, match="more than"):
        scene.catalog.do(keep, scene.repository, made, file, blob.size - 1, NOW)
    scene.catalog.do(keep, scene.repository, made, file, blob.size, NOW)
    assert scene.catalog.peek(deployments.find_state, scene.repository.id, made.id) is DeploymentState.VALIDATED
    with pytest.raises(Conflict):
        scene.catalog.do(keep, scene.repository, made, file, blob.size * 9, NOW)
