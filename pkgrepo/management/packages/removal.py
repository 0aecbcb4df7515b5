"""The routes that delete and yank packages, versions and files."""

from __future__ import annotations

import uuid
from functools import partial

from pkgrepo.errors import Conflict, Invalid, NotFound, PkgrepoError, existing
from pkgrepo.gateway.callers.access import require_plain_removal
from pkgrepo.management.api.access_rules import CONTENT_DELETERS, CONTENT_PUBLISHERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.model import Action, File, Package, Repository, RepositoryType, Version, VersionState
from pkgrepo.proxy.virtual import check_yanks
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.plain_files import remove_plain_file
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.server import trash
from pkgrepo.storage.catalog.server.trash import FOR_GOOD, Disposal

from . import images
from . import schema as schemas
from .schema import DeletedPaths, DeletedVersion, PathsGiven, Reason, Rejected

PURGE = Parameter("purge", "Delete it for good: it cannot be restored from the trash.", "boolean")

table = Table("packages")


@table.command(
    "package delete REPOSITORY NAME==VERSION",
    "deleted {name} {version} with {deleted:count file}{trash:restorable}",
    tried="would delete {name} {version} with {deleted:count file}",
    options="purge, dry-run",
    lines="deleted:indented",
    ask="Delete {name} {version} from {repository}?",
    about="Delete a package, or one of its versions; of an image a tag, or a manifest by its digest.",
)
@table.delete(
    "/package/<repository>/<package>/versions/<version>",
    CONTENT_DELETERS,
    "Delete a version",
    query=[DRY_RUN, PURGE],
    audit="version.delete",
)
async def delete_version(call: Call, version: str) -> DeletedVersion:
    """
    Deletes all files of the version, and the package if this was its last version. It can be restored from the trash.

    For images, a tag is deleted without its manifest; a digest deletes the manifest with its tags. The name of a
    deleted file cannot be published again unless policy.reuse_deleted_names of the repository is set. Of a proxy
    repository only what is cached is deleted: it is fetched again when a client asks for it.
    """
    await _settle(call, call.repository)
    if images.are_in(call):
        image, dry = await call.find_package(), call.flag("dry_run")
        disposal = _disposal(call)
        gone = await images.delete(call, image, version, disposal, dry_run=dry)
        return await _deleted(call, gone, disposal, dry)
    package, found = await call.find_version(version)
    if call.flag("dry_run"):
        held = await call.catalog.look(files.files_of_version, found.id)
        return DeletedVersion(deleted=[file.path for file in held], dry_run=True)
    disposal = _disposal(call)
    return await _deleted(call, await _remove(call, package.key, found.key, None, disposal), disposal)


@table.command(
    "package delete REPOSITORY NAME",
    "deleted {name} with {deleted:count file}{trash:restorable}",
    tried="would delete {name} with {deleted:count file}",
    options="purge, dry-run",
    lines="deleted:indented",
    ask="Delete {name} from {repository}, all of it?",
)
@table.delete(
    "/package/<repository>/<package>",
    CONTENT_DELETERS,
    "Delete a package",
    query=[DRY_RUN, PURGE],
    audit="package.delete",
)
async def delete_package(call: Call) -> DeletedVersion:
    """Deletes its versions one after the other; an error leaves the remaining ones in place."""
    await _settle(call, call.repository)
    package = await call.find_package()
    call.object = f"{call.repository.path}/{package.key}"
    if images.are_in(call):
        dry = call.flag("dry_run")
        disposal = _disposal(call)
        return await _deleted(call, await images.delete_image(call, package, disposal, dry_run=dry), disposal, dry)
    if call.flag("dry_run"):
        held = await call.catalog.scan(files.files_of_package, package.id)
        return DeletedVersion(deleted=[file.path for file in held], dry_run=True)
    disposal = _disposal(call)
    return await _deleted(call, await _remove_package(call, package.id, package.key, disposal), disposal)


@table.delete(
    "/repository/<repository>/packages",
    CONTENT_DELETERS,
    "Delete packages, versions and files by their paths",
    query=[PURGE],
    audit="packages.delete",
)
async def delete_paths(call: Call, body: PathsGiven) -> DeletedPaths:
    """The paths are deleted independently; the status is 200 even if some could not be deleted."""
    deleted: list[str] = []
    missing: list[str] = []
    rejected: list[Rejected] = []
    await _settle(call, call.repository)
    for path in body.paths:
        try:
            await _delete_path(call, path.strip("/"))
            deleted.append(path)
        except NotFound:
            missing.append(path)
        except PkgrepoError as error:
            rejected.append(Rejected(path=path, reason=str(error)))
    return DeletedPaths(deleted=deleted, missing=missing, rejected=rejected)


@table.command(
    "package yank REPOSITORY NAME==VERSION",
    "{package} {version} is {state}",
    options="reason",
    more="Clients do not choose it any more, and its files stay.",
)
@table.post(
    "/package/<repository>/<package>/versions/<version>/yank", CONTENT_DELETERS, "Yank a version", audit="version.yank"
)
async def yank(call: Call, body: Reason, version: str) -> schemas.VersionState:
    """
    Clients no longer select the version unless it is pinned; its files stay available.

    Not for images (409), and not in proxy and virtual repositories (405), where it would change nothing.
    """
    package, found = await _withdrawn(call, version)
    reason = " ".join(body.reason.split())
    entry = call.entry(detail={"reason": reason})
    changed = await call.change_content(
        entry, package_changes.yank_version, package.key, found.key, reason, call.actor, call.format.index
    )
    return _shown(package, changed)


@table.command("package unyank REPOSITORY NAME==VERSION", "{package} {version} is {state}")
@table.post(
    "/package/<repository>/<package>/versions/<version>/unyank",
    CONTENT_PUBLISHERS,
    "Undo the yank of a version",
    audit="version.unyank",
)
async def unyank(call: Call, version: str) -> schemas.VersionState:
    """
    The version becomes live again, which is judged like publishing it: by the action write and the push rules.

    Not for images (409), and not in proxy and virtual repositories (405).
    """
    package, found = await _withdrawn(call, version)
    admitted = await call.shared.access.publishing(call.identity, call.repository, package.key, call.actor)
    change, state = package_changes.set_version_state, VersionState.LIVE
    entry = call.entry(detail={"reason": ""})
    changed = await call.change_content(entry, change, package.key, found.key, state, "", admitted, call.format.index)
    return _shown(package, changed)


def _disposal(call: Call) -> Disposal:
    """How the call wants something to be deleted: all of it into one entry of the trash, or for good."""
    return FOR_GOOD if call.flag("purge") else Disposal(entry=str(uuid.uuid4()))


async def _deleted(call: Call, gone: list[str], disposal: Disposal, dry: bool = False) -> DeletedVersion:
    entry = None if dry or disposal.entry is None else await call.catalog.look(trash.find_entry, disposal.entry)
    return DeletedVersion(deleted=gone, dry_run=dry, trash=None if entry is None else entry.uid)


async def _settle(call: Call, repository: Repository) -> None:
    if repository.type is RepositoryType.PROXY:
        await call.shared.proxy.settle()


async def _withdrawn(call: Call, version: str) -> tuple[Package, Version]:
    """The version that is yanked, or is not any more. :raises Conflict, ReadOnly: such versions are not yanked"""
    if images.are_in(call):
        raise Conflict("images cannot be withdrawn; delete the tag, or the manifest by its digest")
    check_yanks(call.repository)
    return await call.find_version(version)


def _shown(package: Package, version: Version) -> schemas.VersionState:
    return schemas.VersionState(package=package.name, version=version.text, state=version.state, reason=version.reason)


async def _delete_path(call: Call, path: str) -> None:
    repository, disposal = call.repository, _disposal(call)
    file: File | None = await call.catalog.look(files.find_file, repository.id, path)
    place = None if file is None else await call.catalog.look(package_and_version_of_file, file.id)
    if file is not None and place is not None:
        await _require_delete(call, place[0])
        await _remove(call, *place, await _with_companions(call, file), disposal)
        return
    if file is not None and file.package_id is None:
        access, tree = call.shared.access, call.services.formats[repository.format].tree
        await require_plain_removal(access, call.catalog, tree, call.identity, repository, file.path)
        entry = call.entry(f"{repository.path}/{file.path}")
        await call.change_content(entry, remove_plain_file, file.path, call.actor)
        return
    found = await _package_named(call, repository, path)
    if found is not None:
        await _require_delete(call, found.key)
        if images.are_in(call):
            await images.delete_image(call, found, disposal)
        else:
            await _remove_package(call, found.id, found.key, disposal)
        return
    name, _, version = path.rpartition("/")
    found = existing(await _package_named(call, repository, name), "path", path)
    await _require_delete(call, found.key)
    if images.are_in(call):
        await images.delete(call, found, version, disposal)
        return
    await _remove(call, found.key, _version_key(call, repository, version), None, disposal)


async def _with_companions(call: Call, file: File) -> list[str]:
    """The paths of a file and of the files that belong to it: signatures, extracted metadata, provenance."""
    assert file.version_id is not None
    every: list[File] = await call.catalog.look(files.files_of_version, file.version_id)
    return [
        each.path
        for each in every
        if each.id == file.id or (each.role is not None and each.path.startswith(f"{file.path}."))
    ]


async def _require_delete(call: Call, package: str | None) -> None:
    # not ``require``: what a proxy repository has cached can be removed
    access = call.shared.access
    await access.require_permission(call.identity, Action.DELETE, call.repository, package)
    await access.authorizer.check_push_rules(call.identity, Action.DELETE, call.repository, package)


async def _remove_package(call: Call, package_id: int, key: str, disposal: Disposal) -> list[str]:
    gone: list[str] = []
    for version in await call.catalog.scan(versions.version_keys, package_id):
        gone += await _remove(call, key, version, None, disposal)
    return gone


async def _remove(call: Call, package: str, version: str, paths: list[str] | None, disposal: Disposal) -> list[str]:
    repository = call.repository
    hosted = repository.type is RepositoryType.HOSTED  # in a proxy repository, the same file is fetched again
    burn = hosted and not repository.policy.get("reuse_deleted_names", False)
    entry = call.entry(f"{repository.path}/{package}@{version}", {"paths": paths} if paths else {})
    indexer = call.services.formats[repository.format].index
    gone: list[str] = await call.change_content(
        entry,
        partial(package_changes.remove_files, disposal=disposal),
        package,
        version,
        paths,
        call.actor,
        indexer,
        burn,
    )
    return gone


async def _package_named(call: Call, repository: Repository, name: str) -> Package | None:
    try:
        key = call.services.formats[repository.format].package_key(name)
    except Invalid:
        return None
    found: Package | None = await call.catalog.look(packages.find_package, repository.id, key)
    return found


def _version_key(call: Call, repository: Repository, text: str) -> str:
    try:
        key: str = call.services.formats[repository.format].version_key(text)
    except Invalid:
        raise NotFound("version", text) from None
    return key
