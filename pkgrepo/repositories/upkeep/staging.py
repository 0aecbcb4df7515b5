"""
Approval and rejection of what is staged; see ``pkgrepo.storage.catalog.server.stages`` for the states.

An approval is one transaction on the repository that the stage is for: it ends the stage, and publishes all of its
content there by reference, as promotions do. A refusal of one version refuses all of them, and the stage stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, NewFile, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.model.deployments import DeploymentState
from pkgrepo.repositories.format import Joined, StoredFormat
from pkgrepo.repositories.images.push import Quarantine, TagExists
from pkgrepo.repositories.images.quarantine import window_ms
from pkgrepo.repositories.publish.deployments import end_deployment_of
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.upkeep.promotion import Promotion, promote_image, promote_versions
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import files, packages, tags
from pkgrepo.storage.catalog.packages.tags import every_tag_name
from pkgrepo.storage.catalog.people.users import find_user
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.repositories import get_repository
from pkgrepo.storage.catalog.server.stages import Stage, StageItem

JOINS: Final = 20  # attempts to approve a stage while others change what its files are joined with
Inside = Callable[[Transaction, Stage], None]  # a part of the transaction, after the stage has ended
EMPTY: Final = "nothing is staged in it yet"


@frozen(kw_only=True)
class Approval:
    """
    Which stage to publish.

    ``packages`` are the keys that the approver may publish; ``serial`` is that of the content which the approver has
    seen, None for any. ``inside`` is called in the transaction. Some plain files are ``joined`` with those in the
    repository.
    """

    stage: str
    packages: Collection[str]
    serial: int | None = None
    inside: Inside | None = None
    joined: Joined | None = None


@frozen
class Ended:
    """
    A stage that was ended, and the catalog keys of its repositories, whose rows are to be purged.

    ``surplus`` are locators of copies that the catalog did not need.
    """

    stage: Stage
    repositories: Sequence[int]
    surplus: tuple[str, ...] = ()


def approve_stage(
    tx: Transaction, target: Repository, approval: Approval, format: StoredFormat, actor: Admitted, now_ms: int
) -> Ended:
    """
    The write command on the repository that a stage is for: publish what is staged, and end the stage.

    :raises NotFound: there is no such stage; :raises Conflict: it has ended, is empty or too large, or was changed
        since the approver saw it; the repository does not take one of its versions
    :raises FileExists, FileBurned: other content has the path of one of its files, or had it
    :raises Outdated: what files are joined with was changed since it was read
    """
    stage = stages.get_open(tx, approval.stage)
    assert stage.repository_id == target.id
    staged = get_repository(tx, stages.staged_id(tx, stage.uid))
    content = stages.content_of(tx, staged.id)
    if not content:
        raise Conflict(f"stage {stage.uid} cannot be approved: {EMPTY}")
    if len(content) > stages.MOST_ITEMS:
        raise Conflict(f"stage {stage.uid} has more than {stages.MOST_ITEMS} versions, tags and files")
    if approval.serial not in (None, staged.serial) or not {each.key for each in content} <= {*approval.packages}:
        raise Conflict(f"stage {stage.uid} was changed since you saw it; look at it again")
    ids = _repositories(tx, stage)
    stages.end_stage(tx, stage, stages.APPROVED, content, actor, now_ms)  # first: its bytes are counted once
    end_deployment_of(tx, stage, DeploymentState.PUBLISHED, {}, now_ms)
    if approval.inside is not None:
        approval.inside(tx, stage)
    person = _person(tx, actor)
    promotion = Promotion(
        source=staged,
        move=False,
        reuse=bool(target.policy.get("reuse_deleted_names", False)),
        burn=False,
        stage=stage.uid,
        approved=lambda meta: format.approved(meta, person),
    )
    _publish_versions(
        tx, target, promotion, [each for each in content if each.kind == "version"], format, actor, now_ms
    )
    for each in content:
        if each.kind == "file" and (approval.joined is None or each.name not in approval.joined.paths):
            _publish_file(tx, target, staged, each, actor, now_ms)
    surplus = () if approval.joined is None else approval.joined.put(tx, target, actor, now_ms)
    _publish_images(tx, target, promotion, [each for each in content if each.kind == "tag"], format, actor, now_ms)
    # What is about an image is published with it; other manifests follow.
    _publish_images(tx, target, promotion, [each for each in content if each.kind == "manifest"], format, actor, now_ms)
    return Ended(existing(stages.find_stage(tx, stage.uid), "stage", stage.uid), ids, tuple(surplus))


def reject_stage(
    tx: Transaction, _target: Repository, uid: str, reason: str, inside: Inside | None, actor: Actor, now_ms: int
) -> Ended:
    """
    The write command on the repository that a stage is for: end the stage, and give up what is staged.

    :raises NotFound: there is no such stage; :raises Conflict: it has ended
    """
    stage = stages.get_open(tx, uid)
    content = stages.content_of(tx, stages.staged_id(tx, uid))
    ids = _repositories(tx, stage)
    stages.end_stage(tx, stage, stages.REJECTED, content, actor, now_ms, reason)
    errors = {"": [f"it was rejected by {actor.name}{f': {reason}' if reason else ''}"]}
    end_deployment_of(tx, stage, DeploymentState.FAILED, errors, now_ms)
    if inside is not None:
        inside(tx, stage)
    return Ended(existing(stages.find_stage(tx, uid), "stage", uid), ids)


def _person(tx: Transaction, actor: Actor) -> Mapping[str, str]:
    user = None if actor.user_id is None else find_user(tx, actor.user_id)
    return {"name": actor.name, "email": "" if user is None else user.email}


def _repositories(tx: Transaction, stage: Stage) -> list[int]:
    rows = tx.all("SELECT id FROM repository WHERE stage = ? AND deleted_at IS NULL ORDER BY id DESC", (stage.uid,))
    return [each for (each,) in rows]


def _publish_versions(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    items: Sequence[StageItem],
    format: StoredFormat,
    actor: Admitted,
    now_ms: int,
) -> None:
    for each in items:
        refusal = format.refuses(target, each.name)
        if refusal is not None:
            raise Conflict(refusal)
    keys = [(each.key, format.version_key(each.name)) for each in items]
    promote_versions(tx, target, promotion, keys, actor, format.index, now_ms)


def _publish_file(
    tx: Transaction, target: Repository, staged: Repository, item: StageItem, actor: Admitted, now_ms: int
) -> None:
    file = existing(files.find_file(tx, staged.id, item.name), "file", item.name)
    blob = blobs.use_again(tx, target.storage_id, file.sha256, file.path, now_ms)
    put_plain_file(tx, target, NewFile(file.path, blob, file.media_type, file.attrs), False, actor, None, now_ms)


def _publish_images(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    items: Sequence[StageItem],
    format: StoredFormat,
    actor: Admitted,
    now_ms: int,
) -> None:
    if format.images is None or not items:
        return
    keys = format.images.signature_keys(target)
    quarantine = None if keys is None else Quarantine(tuple(keys), now_ms + window_ms(target))
    for image, tag, digest in _manifests(tx, promotion.source, items):
        there = packages.find_package(tx, target.id, image)
        names = () if there is None else tuple(every_tag_name(tx, there.id))
        immutable = format.images.immutable_tags(target, tuple({*names, *([] if tag is None else [tag])}))
        try:
            promote_image(tx, target, promotion, image, tag, digest, immutable, quarantine, actor, now_ms)
        except TagExists as error:
            raise Conflict(str(error)) from None


def _manifests(
    tx: Transaction, staged: Repository, items: Sequence[StageItem]
) -> Iterator[tuple[str, str | None, str]]:
    """Of each item the image, the tag if it is one, and the digest."""
    for each in items:
        if each.kind == "manifest":
            yield each.key, None, each.name
            continue
        package = existing(packages.find_package(tx, staged.id, each.key), "image", each.key)
        tag = existing(tags.find_tag(tx, package.id, each.name), "tag", each.name)
        yield each.key, tag.name, str(tag.digest)
