"""Answers anaconda-client: about packages and the caller, removals, and the requests of an upload with credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from pkgrepo.errors import (
    AuthenticationRequired,
    Conflict,
    Invalid,
    NotFound,
    PkgrepoError,
    StorageFailed,
    StorageFull,
    existing,
)
from pkgrepo.formats.conda.anaconda import uploads
from pkgrepo.formats.conda.anaconda.targets import (
    FileTarget,
    PackageTarget,
    ReleaseTarget,
    file_target,
    package_target,
    release_target,
)
from pkgrepo.formats.conda.anaconda.uploads import PREFIX, TICKET, path_of
from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.files import ChannelContext, Upload, check_sha256, get_file, make_release
from pkgrepo.formats.conda.index.packages import index_package
from pkgrepo.formats.conda.paths import PackagePath
from pkgrepo.gateway.bodies import read_body, read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.callers.tokens import limits_in
from pkgrepo.gateway.publishing.removals import Removal, remove
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, BlobInfo, File, Repository, Version
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.content import log_published
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish_policy import publish_policy
from pkgrepo.storage.catalog.packages import deployments, files, packages, versions

DESCRIPTION_SIZE: Final = 1024 * 1024  # bytes of the description of a package, which is not used
LONGEST_NOTE: Final = 100  # characters of a token's name

Target = PackageTarget | ReleaseTarget | FileTarget
Handler = Callable[[ChannelContext, Request, Any], Awaitable[Response]]

_TARGETS: Final[Mapping[str, Callable[[Sequence[str]], Target]]] = {
    "package": package_target,
    "release": release_target,
    "dist": file_target,
    "download": file_target,
    "stage": file_target,
    "commit": file_target,
}


async def answer_anaconda(context: ChannelContext, request: Request, parts: Sequence[str]) -> Response:
    """
    Answer a request whose path begins with one of the words; see the table of this room.

    :raises NotFound: there is no such thing; :raises Invalid: the path or the body is malformed
    """
    method = "GET" if request.method == b"HEAD" else request.method.decode("ascii")
    word, *rest = parts
    parse, handle = _TARGETS.get(word), _HANDLERS.get((method, word))
    if parse is not None and handle is not None:
        return await handle(context, request, parse(rest))
    match method, parts:
        case "GET", ["user"] | ["user", _]:
            return await _user(context, request, *rest)
        case "POST", ["authentications"]:
            return await _log_in(context, request)
        case "DELETE", ["authentications"]:
            return await _log_out(context, request)
    await context.services.access.admit(request, Action.READ, context.repository)
    raise NotFound("address", "/".join(parts)[:200])


async def _user(context: ChannelContext, request: Request, name: str = "") -> Response:
    identity = await context.services.access.admit_known(request, context.repository)
    if not name and identity.anonymous:
        raise AuthenticationRequired
    created_at = context.repository.created_at.isoformat()
    # the client writes the login into addresses as the owner, and the name of a pipeline has slashes
    own = identity.username if identity.pipeline is None else "pipeline"
    user = {"login": name or own, "user_type": "org", "created_at": created_at}
    return json_response(user, headers=NO_STORE)


def _shows(read: Callable[..., dict[str, Any]]) -> Handler:
    """A handler that shows what a query reads of its target."""

    async def show(context: ChannelContext, request: Request, target: Target) -> Response:
        await context.services.access.admit(request, Action.READ, context.repository, target.name)
        return json_response(await context.services.catalog.scan(read, context.repository, target), headers=NO_STORE)

    return show


async def _download(context: ChannelContext, request: Request, target: FileTarget) -> Response:
    return await get_file(context, request, PackagePath(target.subdir, target.file))


async def _describe(context: ChannelContext, request: Request, target: PackageTarget | ReleaseTarget) -> Response:
    """Take a description, which the files themselves have; it must be read before the next request."""
    await context.services.access.admit(request, Action.WRITE, context.repository, target.name)
    await read_body(request, DESCRIPTION_SIZE)
    return json_response({"name": target.name}, headers=NO_STORE)


async def _remove(context: ChannelContext, request: Request, target: Target) -> Response:
    """Remove a package, a version or a file. The client wants 201, but for a file."""
    services, repository = context.services, context.repository
    identity = await services.access.admit(request, Action.DELETE, repository, target.name)
    actor = actor_of(request, identity)
    burn = not publish_policy(repository).reuse_deleted_names
    found = Removal(target.name)
    if not isinstance(target, PackageTarget):
        paths = [target.path] if isinstance(target, FileTarget) else None
        found = Removal(target.name, target.version_key, paths)
    await remove(services, repository, found, actor, index_package, burn=burn)
    return json_response({}, 201 if found.paths is None else 200)


async def _log_in(context: ChannelContext, request: Request) -> Response:
    """A token for the channel, for a caller with a name and a password."""
    services = context.services
    request.repository = context.repository.path
    identity = await services.access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired("log in with your name and password")
    note = (await read_object(request)).get("note")
    name = "".join(each for each in note if each.isprintable()) if isinstance(note, str) else ""
    limits = limits_in(services.registry, context.repository.authority)
    actor = actor_of(request, identity)
    _, text = await services.accounts.issue(identity, name[:LONGEST_NOTE] or "anaconda login", limits, actor)
    return json_response({"token": text}, headers=NO_STORE)


async def _log_out(context: ChannelContext, request: Request) -> Response:
    """Revoke the token that the caller uses. :raises Invalid: it is a password"""
    identity = await context.services.access.admit_known(request, context.repository)
    word, _, text = (request.header(b"authorization") or b"").decode("latin-1").partition(" ")
    if identity.token_id is None or word.lower() not in ("token", "bearer"):
        raise Invalid("only a token can be given up", "authorization")
    await context.services.accounts.revoke_text(identity, text.strip(), actor_of(request, identity))
    return json_response({}, 201, headers=NO_STORE)


MOST_SHOWN: Final = 1000  # versions of a package, and files: the newest ones

_KIND: Final = "conda"  # of packages and files; the client knows others


def read_package(r: Reader, repository: Repository, target: PackageTarget) -> dict[str, Any]:
    """A package with its newest versions and their files. :raises NotFound: there is none"""
    package = existing(packages.find_package(r, repository.id, target.name), "package", target.name)
    newest = versions.list_versions(r, package.id)[-MOST_SHOWN:]
    by_id = {each.id: each for each in newest}
    shown: list[dict[str, Any]] = []
    for version in reversed(newest):
        if len(shown) >= MOST_SHOWN:
            break
        shown += [_file(file, version) for file in files.files_of_version(r, version.id)]
    texts = [each.text for each in newest]
    public = not repository.is_private
    about = newest[-1].meta if newest else {}
    return {
        "name": package.name,
        "full_name": f"{target.owner}/{package.name}",
        "owner": {"login": target.owner},
        "public": public,
        "summary": about.get("summary", ""),
        "package_types": [_KIND],
        "latest_version": texts[-1] if texts else "",
        "versions": texts,
        "releases": [{"version": each.text} for each in by_id.values()],
        "files": shown[:MOST_SHOWN],
    }


def read_release(r: Reader, repository: Repository, target: ReleaseTarget) -> dict[str, Any]:
    """A version with its files. :raises NotFound: there is none"""
    version = _version(r, repository, target)
    return {
        "version": version.text,
        "distributions": [_file(file, version) for file in files.files_of_version(r, version.id)[:MOST_SHOWN]],
        "public_attrs": _texts(version),
    }


def read_file(r: Reader, repository: Repository, target: FileTarget) -> dict[str, Any]:
    """A file. :raises NotFound: there is none"""
    file = existing(files.find_file(r, repository.id, target.path), "file", target.path)
    return _file(file, _version(r, repository, target)) | {"attrs": file.attrs.get("index", {})}


def _version(r: Reader, repository: Repository, target: ReleaseTarget | FileTarget) -> Version:
    package = existing(packages.find_package(r, repository.id, target.name), "package", target.name)
    found = versions.find_version(r, package.id, target.version_key)
    return existing(found, "version", f"{target.name} {target.version_key}")


def _file(file: File, version: Version) -> dict[str, Any]:
    return {
        "basename": file.path,
        "version": version.text,
        "type": _KIND,
        "description": _texts(version).get("description", ""),
        "size": file.size,
        "sha256": file.sha256,
        "md5": file.digests.get("md5"),
        "upload_time": file.created_at.isoformat(),
    }


def _texts(version: Version) -> Mapping[str, Any]:
    return {key: version.meta[key] for key in ("summary", "description", "license") if key in version.meta}


STAGE_SIZE: Final = 1024 * 1024  # bytes of the document that begins an upload, with all fields of index.json

_CONDA: Final = "conda"  # the type of a file, beside those of other package managers


async def _stage(context: ChannelContext, request: Request, target: FileTarget) -> Response:
    """
    Begin an upload: the address that takes the file, and a ticket for it.

    :raises Invalid: the body is malformed, or names a file of another package manager
    :raises FileExists, FileBurned, Forbidden: see L{uploads.stage_upload}
    """
    repository = context.repository
    services = context.services
    identity = await services.access.identify(request)
    await services.access.require(identity, Action.WRITE, repository, target.file.name)
    if identity.anonymous:
        raise AuthenticationRequired
    document = await read_object(request, STAGE_SIZE)
    kind = document.get("distribution_type", _CONDA)
    if kind != _CONDA:
        raise Invalid("this is a conda channel, which takes conda packages only", "distribution_type")
    sha256 = document.get("sha256")
    if sha256 is not None and not isinstance(sha256, str):
        raise Invalid("sha256 must be a text", "sha256")
    deployment, ticket = await services.catalog.write(
        uploads.stage_upload,
        repository,
        uploads.Wish(target, check_sha256(sha256)),
        identity,
        reuse=publish_policy(repository).reuse_deleted_names,
        now_ms=services.clock.now_ms(),
    )
    url = f"{services.base_url(request)}{PREFIX}{deployment.uid}"
    response = {"post_url": url, "form_data": {TICKET: ticket}, "dist_id": deployment.uid}
    return json_response(response, headers=NO_STORE)


async def _commit(context: ChannelContext, request: Request, target: FileTarget) -> Response:
    """
    Publish the file of an upload.

    :raises NotFound: the caller has no such upload; :raises Conflict: its file has not arrived
    :raises FileExists, FileBurned: it may not be published; then the upload is over
    """
    repository = context.repository
    services = context.services
    identity = await services.access.identify(request)
    await services.access.require(identity, Action.WRITE, repository, target.file.name)
    uid = (await read_object(request)).get("dist_id")
    deployment: Deployment | None = await services.catalog.look(
        deployments.find_deployment, repository.id, uid if isinstance(uid, str) else ""
    )
    if deployment is None or deployment.user_id != identity.user_id or path_of(deployment) != target.path:
        raise NotFound("upload", str(target.file))
    if deployment.state is not DeploymentState.VALIDATED:
        raise Conflict("the file of this upload has not arrived")
    release = await _release(context, target, deployment)
    actor = await services.access.publishing(identity, repository, target.file.name, actor_of(request, identity))
    try:
        async with services.content.stage(repository) as staged:
            await services.content.change_with_blobs(
                uploads.publish_upload, repository, staged, [], deployment, release, actor
            )
    except (StorageFull, StorageFailed):
        raise  # it can be committed again
    except PkgrepoError:
        await _drop(context, deployment, release.files[0].blob)
        raise
    log_published(repository, release.package_key, release.version_text, actor)
    url = services.repository_url(request, repository)
    return json_response({"basename": target.path, "url": f"{url}/{target.path}"})


async def _release(context: ChannelContext, target: FileTarget, deployment: Deployment) -> Release:
    """The release of an upload whose file is here. :raises Conflict: the storage has lost it"""
    file: StagedFile | None = await context.services.catalog.look(
        deployments.find_staged_file, deployment.id, target.path
    )
    if file is None or not file.blob.locator:
        raise Conflict("the storage has lost the file of this upload; start it again")
    attrs: Mapping[str, Any] = file.attrs
    policy = publish_policy(context.repository)
    return make_release(Upload(target.file, target.subdir, file.blob), Description(**attrs), policy)


async def _drop(context: ChannelContext, deployment: Deployment, blob: BlobInfo) -> None:
    services = context.services
    if await services.catalog.write(deployments.remove_deployment, deployment.id):
        await services.content.discard(context.repository, [blob.sha256], deployment.created_ms)


# By method and first word; the rest of the path is the target.
_HANDLERS: Final[Mapping[tuple[str, str], Handler]] = {
    ("GET", "package"): _shows(read_package),
    ("GET", "release"): _shows(read_release),
    ("GET", "dist"): _shows(read_file),
    ("GET", "download"): _download,
    ("POST", "package"): _describe,
    ("PATCH", "package"): _describe,
    ("POST", "release"): _describe,
    ("PATCH", "release"): _describe,
    ("POST", "stage"): _stage,
    ("POST", "commit"): _commit,
    ("DELETE", "package"): _remove,
    ("DELETE", "release"): _remove,
    ("DELETE", "dist"): _remove,
}
