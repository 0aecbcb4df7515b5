"""The route that copies or moves a version to another repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVarTuple

from attrs import evolve

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import PackageName, VersionName
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.management.packages.refused import find_refusal
from pkgrepo.model import Action, File, Package, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.configuration import agreed
from pkgrepo.repositories.images.push import Quarantine, TagExists
from pkgrepo.repositories.images.quarantine import window_ms
from pkgrepo.repositories.upkeep.promotion import (
    Promoted,
    Promotion,
    manifests_of_image,
    promote_image,
    promote_version,
)
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.tags import every_tag_name
from pkgrepo.storage.catalog.server import trash

from . import images

Ts = TypeVarTuple("Ts")
table = Table("packages")


class PromotionGiven(Body):
    """
    Where to copy a version: the repository to (its id, or storage/name), of the same format and storage.

    With move it is removed from where it was.
    """

    to: Annotated[Word, meaning("The repository, by its id or as storage/name, of the same format and storage.")]
    move: Annotated[bool, meaning("Whether the version is removed from where it was.")] = False


class PromotionRecord(Record):
    """What was copied or moved."""

    package: PackageName
    version: VersionName
    source: Annotated[str, meaning("The repository that it was copied or moved from.")]
    target: Annotated[str, meaning("The repository that has it now.")]
    moved: Annotated[bool, meaning("Whether it was removed from the source.")]
    changed: Annotated[bool, meaning("Whether the target is another one than before.")]
    published: Annotated[list[str], meaning("The paths that are new there; of an image, manifests.")]
    removed: Annotated[list[str], meaning("What was removed from the source.")]
    trash: Annotated[
        str | None, meaning("The id of the entry of the trash by which that can be undone; null for none.")
    ]


@table.command(
    "package promote REPOSITORY NAME==VERSION --to STORAGE/REPOSITORY=to",
    "{:promoted}",
    options="move",
    about="Copy a version to another repository of the same format, with all that belongs to it; no bytes are copied.",
    more="The version is written as the clients of the format do: demo==1.2, demo@1.2, group:artifact:1.2, image:tag, "
    "image@sha256:..., or as an argument of its own.",
)
@table.post(
    "/package/<repository>/<package>/versions/<version>/promote",
    CONTENT_READERS,
    "Copy or move a version to another repository",
    audit="version.promote",
)
async def promote(call: Call, body: PromotionGiven, version: str) -> PromotionRecord:
    """
    By reference: no bytes are copied, and clients of the target see all of it at once, or nothing.

    Also needs the action write in the target, with its push rules, and to move it the action delete in the source. The
    version comes with all its files and its tags, an image with what it consists of, and with its signatures and
    attestations. The answer is 403 if a rule of the source refuses any of that, and 409 if the target has other content
    at one of its paths, had and burned it, or does not take such versions; the version is yanked in one of the two; or
    the repositories are of different formats or storages, or not hosted.
    """
    target = await _target(call, body.to)
    package = await call.find_package()
    access = call.shared.access
    admitted = await access.publishing(call.identity, target, package.key, call.actor)
    if body.move:
        await access.require(call.identity, Action.DELETE, call.repository, package.key)
    policy = call.repository.policy
    promotion = Promotion(
        source=call.repository,
        move=body.move,
        reuse=bool(target.policy.get("reuse_deleted_names", False)),
        burn=not policy.get("reuse_deleted_names", False),
    )
    if images.are_in(call):
        if body.move and not policy.get("allow_delete", True):
            raise Conflict(f"nothing is deleted in {call.repository.path} (policy.allow_delete)")
        name, promoted = await _promote_image(call, target, promotion, version, admitted)
    else:
        name, promoted = await _promote_version(call, target, promotion, version, admitted)
    if body.move:
        call.services.on_change(call.repository)
    entry = await call.catalog.look(trash.find_entry, promotion.trash) if body.move else None
    return PromotionRecord(
        package=package.name,
        version=name,
        source=call.repository.path,
        target=target.path,
        moved=body.move,
        changed=promoted.changed,
        published=list(promoted.published),
        removed=list(promoted.removed),
        trash=None if entry is None else entry.uid,
    )


async def _target(call: Call, name: str) -> Repository:
    """The repository to promote to. :raises Invalid: there is none that the caller may know of"""
    source, target = call.repository, find_repository(call.registry, name)
    if target is None or not await call.knows(target):
        raise Invalid(f"there is no repository {name!r}; give its id, or storage/name", "/to")
    if target.id == source.id:
        raise Invalid("the version is in this repository already", "/to")
    for each in (source, target):
        if each.type is not RepositoryType.HOSTED or each.parent is not None:
            raise Conflict(f"{each.path} is no hosted repository: versions are promoted between hosted ones")
    if target.format != source.format:
        raise Conflict(
            f"{target.path} is a repository of {target.format} packages, and {source.path} of {source.format}"
        )
    if agreed(target.config) != agreed(source.config):
        raise Conflict(f"{target.path} names packages by other patterns than {source.path}")
    if target.storage_id != source.storage_id:
        raise Conflict(f"{target.path} and {source.path} are in different storages, and no bytes are copied")
    return target


async def _check_served(call: Call, package: Package, version: str) -> None:
    """:raises RuleRefused: it is refused here, and not brought to where the rule does not hold"""
    refused = await find_refusal(call, package, version)
    if refused is not None:
        raise refused


async def _promote_version(
    call: Call, target: Repository, promotion: Promotion, version: str, admitted: Admitted
) -> tuple[str, Promoted]:
    package, found = await call.find_version(version)
    await _check_served(call, package, found.text)
    held: Sequence[File] = await call.catalog.look(files.files_of_version, found.id)
    for each in held:
        await call.shared.proxy.package_files.check_kept(call.repository, call.repository, package.key, each)
    promotion = evolve(promotion, asked={each.sha256 for each in held})
    refusal = call.format.refuses(target, found.text)
    if refusal is not None:
        raise Conflict(refusal)
    given = (promotion, package.key, found.key, admitted, call.format.index)
    return found.text, await _change(call, target, promote_version, *given)


async def _promote_image(
    call: Call, target: Repository, promotion: Promotion, name: str, admitted: Admitted
) -> tuple[str, Promoted]:
    package = await call.find_package()
    found = await images.find(call, package, name)
    tag = None if ":" in name else name
    manifests = await call.catalog.scan(manifests_of_image, call.repository, package.id, found.digest, tag)
    for each in dict.fromkeys((name, *manifests)):
        await _check_served(call, package, each)
    promotion = evolve(promotion, asked=manifests)
    of_images = call.format.images
    assert of_images is not None
    keys = of_images.signature_keys(target)
    quarantine = None if keys is None else Quarantine(tuple(keys), call.now_ms + window_ms(target))
    every = tuple(await call.catalog.scan(every_tag_name, package.id))
    immutable = of_images.immutable_tags(target, every)
    given = (promotion, package.key, tag, found.digest, immutable, quarantine, admitted)
    try:
        return name, await _change(call, target, promote_image, *given)
    except TagExists as error:
        raise Conflict(str(error)) from None


async def _change(
    call: Call, target: Repository, command: Callable[[Transaction, Repository, *Ts, int], Promoted], *args: *Ts
) -> Promoted:
    """Run a write command on the target, with its row of the audit log."""
    entry, audit_log = call.entry(detail={"to": target.path}), call.services.callers.audit_log
    result: Promoted = await call.shared.content.change(audit_log.with_row_of(entry, command), target, *args)
    audit_log.copy(entry)
    call.audited = True
    return result
