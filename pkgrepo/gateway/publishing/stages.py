"""
Stages, as the API and formats open, show and end them.

===========================  ========================================================================================
who                          may
===========================  ========================================================================================
members: readers by a        see what is staged, and install it from the address of the stage; visibility alone lets
grant, role or default       nobody see it
action
who may publish              open a stage, and publish to it
an approver of all that      approve it, or reject it; see L{IAuthorizer.is_approver}
is staged
who opened it                withdraw it, which is a rejection
===========================  ========================================================================================
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from pkgrepo.auth.permissions.admission import NO_APPROVER, admit_approver
from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.errors import Conflict, Forbidden, Invalid, NotFound, Outdated
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Actor, Extent, Identity, Repository, RepositoryType, Visibility
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.virtual import check_publishes, publish_target, publishes
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.configuration import agreed
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.upkeep.staging import JOINS, Approval, Ended, Inside, approve_stage, reject_stage
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.audit import Entry, append_entry
from pkgrepo.storage.catalog.server.purge import purge_repository
from pkgrepo.storage.catalog.server.repositories import content_serial
from pkgrepo.storage.catalog.server.stages import Stage, StageItem

NOT_COPIED: Final = ("retention", "page", "default")  # settings that are about a repository itself
IMMUTABLE: Final = "immutable_tags"  # of a policy; an approval heeds those of the target
LONGEST: Final = 1000  # characters of a description or a reason


@frozen
class StageContents:
    """
    A stage and what it has, as far as the caller may see that.

    ``serial`` is that of the content, 0 once the stage has ended; ``whole`` tells whether the caller sees all of it.
    """

    stage: Stage
    target: Repository
    content: Sequence[StageItem]
    serial: int
    whole: bool
    hosted: Repository | None = None
    overlay: Repository | None = None


@frozen
class Opening:
    """
    A stage that may be opened for ``target``, on top of ``base``.

    ``configs`` and ``overlay`` are the configurations of its repositories, see L{stages.open_stage}.
    """

    base: Repository
    target: Repository
    description: str
    configs: stages.Configs
    overlay: stages.Configs
    uid: str
    staged_uid: str
    companions: Companions

    def open(self, tx: Transaction, actor: Actor, now_ms: int) -> Stage:
        """Open it: a part of a write command on the target. :raises Conflict: too many are open"""
        stage = stages.open_stage(
            tx,
            self.target,
            self.base,
            self.configs,
            self.overlay,
            self.uid,
            self.staged_uid,
            self.description,
            actor,
            now_ms,
        )
        for each in stages.repositories_of(tx, self.uid):
            self.companions.ensure(tx, each, now_ms)
        return stage


async def prepare_stage(
    services: Services, identity: Identity, base: Repository, description: str = "", package: str | None = None
) -> Opening:
    """
    Check that a stage may be opened for what is published to ``base``, which may be virtual, and of a ``package``.

    :raises ReadOnly: nothing is published there; :raises Forbidden: the caller may not publish there
    :raises Conflict: it is a repository of a stage, or belongs to another one
    """
    if base.parent is not None:
        raise Conflict(f"{base.path} belongs to {base.parent.path}: open a stage of that one")
    await services.access.require(identity, Action.READ, base, Extent.SOME if package is None else package)
    target = publish_target(services.registry, base)
    await services.access.require(identity, Action.WRITE, as_staged(target), package)
    if len(description) > LONGEST:
        raise Invalid(f"the description has more than {LONGEST} characters", "/description")
    return make_opening(services.formats, base, target, description, str(uuid.uuid4()))


def as_staged(target: Repository) -> Repository:
    """A repository as what is staged for it counts when permissions and push rules are checked."""
    return evolve(target, stage="", parent=target)


def make_opening(
    formats: Mapping[str, StoredFormat], base: Repository, target: Repository, description: str, uid: str
) -> Opening:
    """A stage with an id that may be opened; the caller has checked the permissions. ``formats`` are by name."""
    format_, staged_uid = formats[base.format], str(uuid.uuid4())
    configs, overlay = _hosted_config(format_, target), _overlay_config(format_, base, staged_uid)
    return Opening(base, target, description, configs, overlay, uid, staged_uid, Companions(formats))


def held_opening(formats: Mapping[str, StoredFormat], target: Repository) -> Opening:
    """A stage for what brakes hold of a publisher, whoever that is."""
    description = "uploads that policy.burst holds: look at them, and at who published them"
    return make_opening(formats, target, target, description, str(uuid.uuid4()))


async def open_stage(services: Services, opening: Opening, actor: Actor, inside: Inside | None = None) -> StageContents:
    """Open a stage; ``inside`` is called in the transaction. :raises Conflict: too many are open"""

    def command(tx: Transaction, _target: Repository, now_ms: int) -> Stage:
        stage = opening.open(tx, actor, now_ms)
        if inside is not None:
            inside(tx, stage)
        return stage

    stage: Stage = await services.content.change(command, opening.target)
    await services.registry.refresh()
    return _staged(services, stage, opening.target, [], 0, whole=True)


async def find_stage(
    services: Services, identity: Identity, uid: str, repository: Repository | None = None
) -> StageContents:
    """
    A stage that the caller may see; with ``repository`` only one for what is published to that.

    :raises NotFound: there is none
    """
    stage: Stage | None = await services.catalog.look(stages.find_stage, uid.lower())
    found = None if stage is None else await _seen(services, identity, stage, {})
    if found is None or (repository is not None and not _is_for(services, found.target, repository)):
        raise NotFound("stage", uid)
    return found


async def list_stages(
    services: Services,
    identity: Identity,
    repository_id: int | None,
    state: str,
    after: stages.Position | None,
    limit: int,
) -> list[StageContents]:
    """At most ``limit`` stages that the caller may see, the newest first, after a position."""
    found: list[StageContents] = []
    if identity.anonymous:  # who sees none of them, however many there are
        return found
    privates: dict[int, Repository] = {}
    while len(found) < limit:
        some: Sequence[Stage] = await services.catalog.scan(
            stages.list_stages, repository_id=repository_id, state=state, after=after, limit=limit
        )
        found += [each for stage in some if (each := await _seen(services, identity, stage, privates))]
        if len(some) < limit:
            break
        after = stages.position(some[-1])
    return found[:limit]


async def may_approve(services: Services, identity: Identity, staged: StageContents) -> bool:
    """Whether the caller may approve a stage, by rights alone."""
    if not staged.whole:
        return False
    keys = sorted({each.key for each in staged.content}) or [""]
    for key in keys:  # that of files which belong to no package is empty
        if not await services.access.authorizer.is_approver(identity, staged.target, key or None):
            return False
    return True


async def approve(
    services: Services,
    identity: Identity,
    staged: StageContents,
    actor: Actor,
    *,
    serial: int | None = None,
    inside: Inside | None = None,
) -> StageContents:
    """
    Publish what is staged, in one transaction. ``serial`` is that of the content which the approver saw, if known.

    ``inside`` is called in the transaction.

    :raises Forbidden: the caller may not approve it; otherwise see L{approve_stage}
    """
    target = staged.target
    if not staged.whole:
        raise Forbidden(NO_APPROVER.format(target.path))
    check_publishes(target)
    keys, paths = {each.key for each in staged.content}, [each.name for each in staged.content if not each.key]
    admitted = await admit_approver(services.access.authorizer, identity, target, keys - {""}, paths, actor)
    packages = frozenset(each.key for each in staged.content)
    approval = Approval(stage=staged.stage.uid, packages=packages, serial=serial, inside=inside)
    return await _ended(services, await _publish(services, staged, approval, admitted), target)


async def _publish(services: Services, staged: StageContents, approval: Approval, actor: Admitted) -> Ended:
    target, format_ = staged.target, services.formats[staged.target.format]
    if format_.join_staged is None or staged.hosted is None:
        return await services.content.change(approve_stage, target, approval, format_, actor)
    for _ in range(JOINS):
        async with services.content.stage(target) as received:
            joined = await format_.join_staged(services, target, staged.hosted, staged.content, received)
            command = evolve(approval, joined=joined)
            try:
                return await services.content.change_with_blobs(
                    approve_stage, target, received, joined.blobs, command, format_, actor
                )
            except Outdated:
                continue
    raise Conflict(f"others change the metadata of {target.path} that stage {approval.stage} adds to; try again")


async def reject(
    services: Services,
    identity: Identity,
    staged: StageContents,
    reason: str,
    actor: Actor,
    *,
    inside: Inside | None = None,
) -> StageContents:
    """
    End a stage without publishing anything.

    :raises Forbidden: the caller neither opened it nor may approve it; :raises Conflict: it has ended
    """
    if not await _may_withdraw(services, identity, staged) and not await may_approve(services, identity, staged):
        raise Forbidden(
            f"stages of {staged.target.path} are rejected by those who may approve them, or by who opened them"
        )
    if len(reason) > LONGEST:
        raise Invalid(f"the reason has more than {LONGEST} characters", "/reason")
    ended = await services.content.change(reject_stage, staged.target, staged.stage.uid, reason, inside, actor)
    return await _ended(services, ended, staged.target)


async def _may_withdraw(services: Services, identity: Identity, staged: StageContents) -> bool:
    """Whether the caller opened a stage, and may publish all that is staged in it, with the token of this request."""
    if not staged.whole or identity.user_id is None or staged.stage.user_id != identity.user_id:
        return False
    questions = [(Action.WRITE, staged.target, each.key or None) for each in staged.content]
    questions.append((Action.WRITE, staged.target, None))
    return all(await services.access.authorizer.may_each(identity, questions))


def with_row(entry: Entry, now_ms: int) -> Inside:
    """A part of the transaction that adds a row to the audit log."""
    return lambda tx, _stage: append_entry(tx, entry, now_ms)


async def _ended(services: Services, ended: Ended, target: Repository) -> StageContents:
    for each in ended.repositories:  # if this process stops, housekeeping goes on with it
        while await services.catalog.write(purge_repository, each):
            pass
    await services.registry.refresh()
    return _staged(services, ended.stage, target, ended.stage.content, 0, whole=True)


async def _seen(
    services: Services, identity: Identity, stage: Stage, privates: dict[int, Repository]
) -> StageContents | None:
    """
    The stage as the caller sees it; None if they see nothing of it.

    ``privates`` are repositories as if they were private, by id: visibility lets nobody see what was staged, either.
    """
    await services.registry.refresh()
    target = services.registry.find_id(stage.repository_id)
    if target is None or identity.anonymous:
        return None
    hosted = services.registry.of_stage(stage.uid, RepositoryType.HOSTED)
    content: Sequence[StageItem] = stage.content
    serial = 0
    if hosted is not None:
        content, serial = await services.catalog.scan(_read_content, hosted.id)
    private = privates.setdefault(target.id, evolve(target, visibility=Visibility.PRIVATE))
    keys = sorted({each.key for each in content})
    questions = [(Action.READ, private, key or None) for key in keys]
    may = dict(zip(keys, await services.access.authorizer.may_each(identity, questions), strict=True))
    shown = [each for each in content if may[each.key]]
    if not shown:
        own = identity.user_id is not None and stage.user_id == identity.user_id
        questions = [(Action.READ, private, None)]
        if own:  # by a token that may publish what is in it
            questions += [(Action.WRITE, private, key or None) for key in keys or [""]]
        if not any(await services.access.authorizer.may_each(identity, questions)):
            return None
    return _staged(services, stage, target, shown, serial, whole=len(shown) == len(content))


def _read_content(r: Reader, staged: int) -> tuple[list[StageItem], int]:
    return stages.content_of(r, staged), content_serial(r, staged)


def _staged(
    services: Services, stage: Stage, target: Repository, content: Sequence[StageItem], serial: int, *, whole: bool
) -> StageContents:
    of_stage = services.registry.of_stage
    hosted, overlay = of_stage(stage.uid, RepositoryType.HOSTED), of_stage(stage.uid, RepositoryType.VIRTUAL)
    return StageContents(stage, target, content, serial, whole, hosted, overlay)


def _is_for(services: Services, target: Repository, repository: Repository) -> bool:
    """Whether what is published to a repository may go to the target."""
    if repository.type is not RepositoryType.VIRTUAL:
        return target.id == repository.id
    return publishes(repository) and publish_target(services.registry, repository).id == target.id


def _hosted_config(format_: StoredFormat, target: Repository) -> stages.Configs:
    """The rules of the target, under which what was removed from a stage is published to it again, and tags move."""
    config, settings = dict(target.config), {k: v for k, v in target.settings.items() if k not in NOT_COPIED}
    policy = {key: value for key, value in target.policy.items() if key != IMMUTABLE}
    if IMMUTABLE in target.policy:
        settings["policy"] = policy
    reusing = {**settings, "policy": {**policy, "reuse_deleted_names": True}}
    try:
        format_.configurations.validate({**config, **reusing})
    except Invalid:  # the format has no such rule
        return config, settings
    return config, reusing


def _overlay_config(format_: StoredFormat, base: Repository, staged_uid: str) -> stages.Configs:
    given: dict[str, Any] = {"type": RepositoryType.VIRTUAL.value, "members": [staged_uid, base.uid]}
    given["publish_to"] = staged_uid
    given |= agreed(base.config)
    if base.type is RepositoryType.VIRTUAL:  # the names for which it joins the versions of its members
        given["resolution"] = base.config["resolution"]
        if base.policy.get("merge_names"):
            given["policy"] = {"merge_names": base.policy["merge_names"]}
    config, settings = format_.configurations.validate(given)
    return config, settings


def address_of(base_url: str, overlay: Repository) -> str:
    """The address from which what is staged is installed; of images what stands before their names."""
    if has_images(overlay):
        host = base_url.partition("://")[2]
        return f"{host}/{overlay.storage_name}/{overlay.name.replace('+', '.')}".lower()
    return f"{base_url}/repositories/{overlay.path}"
