"""
Changes of what is published: ``cargo publish``, ``cargo yank`` and its undoing, and ``cargo owner``.

A publish sends a description in JSON and the crate, each behind its length; a form the crate alone. The description
must say what the Cargo.toml in the crate says. It counts for one thing: which registry a dependency is from, since the
registry that is published to is none of its own in Cargo.toml.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from attrs import evolve

from pkgrepo.errors import Conflict, Invalid, TooLarge, existing
from pkgrepo.formats.cargo.configuration import policy_of
from pkgrepo.formats.cargo.crate import Crate, Dependency, Line, differing, index_line, read_crate
from pkgrepo.formats.cargo.index import LINE, apply_change
from pkgrepo.formats.cargo.names import check_new_name, crate_path, package_key, parse_version, spelling
from pkgrepo.gateway.bodies import BodyParts, check_declared_length, read_body
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import sent_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action, BlobInfo, NewFile, Repository, VersionState
from pkgrepo.repositories import semver
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.owners import MOST_OWNERS, change_owners, read_owners
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.untrusted.strict_json import decode_as

CRATE_TYPE: Final = "application/gzip"
DESCRIPTION_SIZE: Final = 1024 * 1024  # bytes
LENGTH: Final = 4  # bytes of a length, little-endian


class _Dependency(Dependency, kw_only=True):
    version: str = msgspec.field(name="version_req")
    package: str = msgspec.field(name="name")
    default_features: bool = msgspec.field(default=True, name="default_features")
    registry_index: str | None = msgspec.field(default=None, name="registry")
    kind: str | None = None
    target: str | None = None
    explicit_name_in_toml: str | None = msgspec.field(default=None, name="explicit_name_in_toml")


class Description(msgspec.Struct):
    """What a client says of a crate that it sends."""

    name: str
    vers: str
    deps: list[_Dependency]
    features: dict[str, list[str]] = {}
    links: str | None = None
    rust_version: str | None = None

    def line(self) -> Line:
        """The line in an index. :raises Invalid: a name is none, or there are too many dependencies or features"""
        deps = [each.line(each.explicit_name_in_toml or each.package, each.kind, each.target) for each in self.deps]
        return index_line(self.name, self.vers, deps, self.features, self.links, self.rust_version)


def read_description(data: bytes) -> Description:
    """The description of a crate. :raises Invalid: it is malformed, or names no crate or version"""
    found = decode_as(data, Description, what="the description of the crate")
    package_key(found.name)
    parse_version(found.vers)
    return found


async def publish(context: Context[object], request: Request) -> Response:
    """
    Publish the crate in the request.

    :raises Conflict: the version is published, or the rules of the repository forbid it
    :raises Invalid: the body is no crate with its description, or one that clients could not use
    """
    identity = await context.admit(request, Action.WRITE)
    services, repository = context.services, context.repository
    check_declared_length(request, services.max_upload + DESCRIPTION_SIZE)
    parts = BodyParts(request.body)
    length = int.from_bytes(await parts.read(LENGTH), "little")
    if length > DESCRIPTION_SIZE:
        raise TooLarge(DESCRIPTION_SIZE, "the description of the crate")
    description = await services.pools.cpu(read_description, await parts.read(length))
    await context.admit_publishing(request, description.name.lower())
    async with services.content.stage(repository, user_id=identity.user_id) as staged:
        size = int.from_bytes(await parts.read(LENGTH), "little")
        if size > services.max_upload:
            raise TooLarge(services.max_upload)
        blob = await staged.receive(parts.pieces(size), limit=services.max_upload, expect_size=size)
        await parts.end()
        crate = await staged.inspect(services.pools.cpu, blob, partial(_read_described, description=description))
        if not await _publish(context, request, staged, blob, crate):
            raise _is_there(crate)
    return json_response({"warnings": {"invalid_categories": [], "invalid_badges": [], "other": list(request.notes)}})


async def take_file(context: Context[object], request: Request, sent: SentFile) -> Uploaded:
    """Publish a crate that is the file of a form: a dependency without a registry is from this one."""
    async with sent_file(context, request, sent) as (target, staged, blob):
        crate = await staged.inspect(target.services.pools.cpu, blob, read_crate)
        changed = await _publish(target, request, staged, blob, crate)
    version = crate.version.text
    return Uploaded(crate.name, version, changed, crate_path(crate.key, version), blob.sha256)


def _read_described(content: int | bytes, description: Description) -> Crate:
    crate = read_crate(content)
    if (crate.name, crate.version.text) != (description.name, description.vers):
        raise Invalid(
            f"the crate is {crate.name} {crate.version.text}, and was sent as {description.name} {description.vers}"
        )
    line = description.line()
    other = differing(line, crate.line)
    if other:
        raise Invalid(f"the Cargo.toml in the crate has other {' and '.join(other)} than were sent with it")
    return evolve(crate, line=line)


async def _publish(context: Context[object], request: Request, staged: Staged, blob: BlobInfo, crate: Crate) -> bool:
    """Publish a staged crate. Returns False if the same bytes are published already."""
    policy = policy_of(context.repository)
    check_new_name(crate.name, standard=not policy.standard_names)
    _, admitted = await context.admit_publishing(request, crate.key)  # again: the body may have taken hours
    release = evolve(
        make_release(crate, blob),
        reuse=policy.reuse_deleted_names,
        guard=partial(check_free, repository=context.repository, crate=crate, blob=blob),
    )
    published = await context.services.content.publish(context.repository, release, staged, admitted, apply_change)
    return published.changed


def make_release(crate: Crate, blob: BlobInfo, about: Mapping[str, Any] | None = None) -> Release:
    """The release of a crate; ``about`` is added to its metadata in place of its line."""
    path = crate_path(crate.key, crate.version.text)
    return Release(
        package_key=crate.key,
        package_name=crate.name,
        version_key=crate.version.key,
        version_text=crate.version.text,
        sort=crate.version.sort,
        files=(NewFile(path=path, blob=blob, media_type=CRATE_TYPE),),
        meta={**crate.meta, **({LINE: crate.line} if about is None else about)},
    )


def check_free(tx: Transaction, *, repository: Repository, crate: Crate, blob: BlobInfo) -> None:
    """
    Check, inside the transaction, that a crate may be published.

    :raises Conflict: the version is published with other bytes or build metadata, or the name is like another one
    """
    package = packages.find_package(tx, repository.id, crate.key)
    others = packages.live_names(tx, repository.id, spelling(crate.name))
    if not policy_of(repository).unique_spellings:
        others = [each for each in others if each.lower() == crate.key]
    other = next((each for each in others if each != crate.name), None)
    if other is not None:
        raise Conflict(
            f"crate {crate.name} was previously named {other}: names differ in more than case, '-' and '_' "
            "(policy.unique_spellings)"
        )
    found = None if package is None else versions.find_version(tx, package.id, crate.version.key)
    if found is not None and found.text != crate.version.text:
        raise Conflict(f"crate version {crate.name}@{found.text} differs in build metadata alone, and is published")
    if found is not None and all(each.sha256 != blob.sha256 for each in files.files_of_version(tx, found.id)):
        raise _is_there(crate)


def _is_there(crate: Crate) -> Conflict:
    return Conflict(f"crate version `{crate.name}@{crate.version.text}` is already uploaded")


async def set_yank(context: Context[object], request: Request, name: str, version: str, *, yanked: bool) -> Response:
    """
    Yank a version, which is then for those alone who have it in a lock file, or restore it, which is judged like
    publishing it.

    :raises NotFound: no such crate or version
    """
    key, parsed = package_key(name), existing(semver.find_version(version), "version", f"{name} {version[:200]}")
    content, place = context.services.content, (key, parsed.key)
    if yanked:
        actor = actor_of(request, await context.admit(request, Action.DELETE, key))
        await content.change(package_changes.yank_version, context.repository, *place, "", actor, apply_change)
    else:
        await context.admit(request, Action.WRITE, key)
        _, admitted = await context.admit_publishing(request, key)
        set_state, live = package_changes.set_version_state, VersionState.LIVE
        await content.change(set_state, context.repository, *place, live, "", admitted, apply_change)
    return json_response({"ok": True}, headers=NO_STORE)  # which cargo needs: it panics without


async def list_owners(context: Context[object], request: Request, name: str) -> Response:
    """The owners of a crate. :raises NotFound: no such crate"""
    key = package_key(name)
    await context.admit(request, Action.READ, key)
    listed = [
        {"id": zlib.crc32(handle.encode()) if user is None else user.id, "login": handle, "name": user and user.name}
        for handle, user in await context.services.catalog.look(read_owners, context.repository.id, key)
    ]
    return json_response({"users": listed}, headers=NO_STORE)


class _Owners(msgspec.Struct):
    users: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MOST_OWNERS)]


async def change_owner(context: Context[object], request: Request, name: str, *, add: bool) -> Response:
    """Add or remove the owners in the body. :raises NotFound: no such crate, or no such user or owner"""
    key = package_key(name)
    await context.admit(request, Action.WRITE, key)
    given = decode_as(await read_body(request), _Owners).users
    _, actor = await context.admit_publishing(request, key)
    content, repository = context.services.content, context.repository
    handles = await content.change(change_owners, repository, key, given, add, actor, apply_change)
    verb = "added to" if add else "removed from"
    sentence = f"{', '.join(handles)} {verb} {name}. Owners are a note: permissions decide who may publish."
    return json_response({"ok": True, "msg": sentence}, headers=NO_STORE)
