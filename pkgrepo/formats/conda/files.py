"""
Answers uploads and downloads of packages.

===========  =====================================================================  ====================================
form         request                                                                tools
===========  =====================================================================  ====================================
plain        ``PUT [<channel>/]<subdir>/<file>``, the file as the body              curl, rattler-build (Artifactory)
quetz        ``POST api/channels/<channel>/upload/<file>``, the file as the body    rattler-build, quetz-client
prefix       ``POST api/v1/upload/<channel>``, a form with the part ``file``        rattler-build, pixi
===========  =====================================================================  ====================================

Uploads of anaconda-client take several requests: see ``pkgrepo.formats.conda.anaconda``.

The name of the channel is any: the repository decides. Caller and rules are checked before the body is read, and again
when it has arrived.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import DigestMismatch, Invalid, existing
from pkgrepo.formats.conda.description import Description, find_subdir, meta_of
from pkgrepo.formats.conda.index.packages import index_package
from pkgrepo.formats.conda.names import FileName, check_subdir, parse_file_name, version_key
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.conda.paths import PackagePath, media_type, package_path
from pkgrepo.formats.conda.versions import order_key
from pkgrepo.gateway.bodies import check_declared_length, receive_body
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import MultipartLimits, Part, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, json_response
from pkgrepo.model import Action, BlobInfo, NewFile
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish_policy import PublishPolicy, publish_policy
from pkgrepo.untrusted.fields import form_fields

ChannelContext = Context[Any]  # only the documents of the index use its caches

DIGESTS = ("md5",)  # beside sha256, which every file has


@frozen
class Upload:
    """
    A package that has arrived: its file name, the folder that the client wants it in, and its bytes.

    Without a ``subdir`` the package's own one is used. With ``overwrite`` it may replace a file.
    ``derived`` are attributes of a package that was made here, whose name is never burned: it can be made again.
    """

    name: FileName
    subdir: str | None
    blob: BlobInfo
    overwrite: bool = False
    derived: Mapping[str, Any] | None = None


async def publish_upload(context: ChannelContext, staged: Staged, upload: Upload, actor: Admitted) -> Published:
    """
    Inspect a staged package and publish it. Publishing the same bytes again changes nothing.

    :raises Invalid: it is damaged, or another package than its file name or folder says
    :raises FileExists, FileBurned: another file is published under this name, or one was deleted
    """
    name = upload.name
    look = partial(read_package, name=name)
    description = await staged.inspect(context.services.pools.cpu, upload.blob, look)
    release = make_release(upload, description, publish_policy(context.repository))
    return await context.services.content.publish(context.repository, release, staged, actor, index_package)


def make_release(upload: Upload, description: Description, policy: PublishPolicy) -> Release:
    """The release of a package that has been inspected. :raises Invalid: it is for another folder"""
    name = upload.name
    subdir = find_subdir(description.index)
    if upload.subdir is not None and upload.subdir != subdir:
        raise Invalid(f"{name} is for {subdir}, and was sent to {upload.subdir}", "subdir")
    file = NewFile(
        path=package_path(subdir, name),
        blob=upload.blob,
        media_type=media_type(name),
        attrs={"index": description.index, "run_exports": description.exports, **(upload.derived or {})},
    )
    return Release(
        package_key=name.name,
        package_name=name.name,
        version_key=version_key(name.version),
        version_text=name.version,
        sort=order_key(name.version),
        files=(file,),
        meta=meta_of(description),
        overwrite=upload.overwrite and policy.allow_overwrite,
        reuse=policy.reuse_deleted_names,
    )


FORM_LIMITS: Final = MultipartLimits(parts=8)
FORM_OVERHEAD: Final = 16 * 1024 * 1024  # bytes that a form may have besides the package: attestations

MOST_OPTIONS: Final = 16  # of an upload; there are two
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")


@frozen
class Options:
    """What a client wants of an upload: to replace a file, and that the bytes have this sha256 (hex)."""

    force: bool = False
    sha256: str | None = None

    @classmethod
    def of(cls, request: Request) -> Options:
        """The options in the query of a request. :raises Invalid: one is malformed"""
        query = form_fields(request.raw_query.decode("latin-1"), MOST_OPTIONS)
        force = query.get("force", ["false"])[-1].lower()
        if force not in ("true", "false"):
            raise Invalid("force must be true or false", "force")
        return cls(force == "true", check_sha256(query.get("sha256", [None])[-1]))


async def put_package(context: ChannelContext, request: Request, subdir: str | None, file: str) -> Response:
    """
    Publish the package that is the body; ``subdir`` is None for the one that it says itself.

    :raises Invalid: it is no package, or another one; :raises Conflict: its name is taken
    """
    services = context.services
    identity = await services.access.identify(request)
    name = parse_file_name(file)
    subdir = None if subdir is None else check_subdir(subdir)
    options = Options.of(request)
    await services.access.require(identity, Action.WRITE, context.repository, name.name)
    async with services.content.stage(context.repository, name.name, user_id=identity.user_id) as staged:
        blob = await receive_body(
            request,
            staged,
            limit=services.max_upload,
            algorithms=DIGESTS,
            expected=None if options.sha256 is None else {"sha256": options.sha256},
        )
        return await _publish(context, request, staged, name, subdir, blob, options)


async def post_form(context: ChannelContext, request: Request) -> Response:
    """
    Publish the package in the part ``file`` of a form, whose header fields say its name and sha256.

    :raises Refusal: the form is malformed; otherwise as for ``put``
    """
    services, repository = context.services, context.repository
    identity = await services.access.identify(request)
    await services.access.require(identity, Action.WRITE, repository)
    options = Options.of(request)
    check_declared_length(request, services.max_upload + FORM_OVERHEAD)
    found: tuple[FileName, BlobInfo] | None = None
    async with services.content.stage(repository, user_id=identity.user_id) as staged:
        async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
            if part.name != "file":
                continue
            if found is not None:
                raise Refusal(400, "the form has more than one part named 'file'", "bad_form")
            name = parse_file_name(part.headers.get("x-file-name") or part.filename or "")
            await services.access.require(identity, Action.WRITE, repository, name.name)
            found = name, await _receive_part(context, request, part, staged)
        if found is None:
            raise Refusal(400, "the form has no part named 'file'", "bad_form")
        return await _publish(context, request, staged, found[0], None, found[1], options)


async def publish_sent(context: ChannelContext, request: Request, sent: SentFile) -> Uploaded:
    """Publish a package that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``."""
    name, subdir = parse_file_name(sent.name), _sent_subdir(sent)
    identity = await context.admit(request, Action.WRITE, name.name)
    async with context.services.content.stage(context.repository, name.name, user_id=identity.user_id) as staged:
        blob = await sent.receive(staged, DIGESTS)
        _, admitted = await context.admit_publishing(request, name.name)  # again: the file may have taken hours
        published = await publish_upload(context, staged, Upload(name, subdir, blob), admitted)
    return Uploaded(name.name, name.version, published.changed, published.files[0].path, blob.sha256)


def _sent_subdir(sent: SentFile) -> str | None:
    """The folder in the field ``path``, which may end with the name of the file. :raises Invalid: it is none"""
    folder = sent.text("path").strip("/").removesuffix(sent.name).strip("/")
    return check_subdir(folder.rpartition("/")[2]) if folder else None


async def _receive_part(context: ChannelContext, request: Request, part: Part, staged: Staged) -> BlobInfo:
    sha256 = check_sha256(part.headers.get("x-file-sha256"))
    return await staged.receive_part(
        part,
        request.body.declared,
        context.services.max_upload,
        algorithms=DIGESTS,
        expected=None if sha256 is None else {"sha256": sha256},
    )


async def _publish(
    context: ChannelContext,
    request: Request,
    staged: Staged,
    name: FileName,
    subdir: str | None,
    blob: BlobInfo,
    options: Options,
) -> Response:
    services = context.services
    if options.sha256 is not None and blob.sha256 != options.sha256:
        raise DigestMismatch("sha256", options.sha256, blob.sha256)
    identity = await services.access.identify(request, counted=False)  # again: the body may take hours
    admitted = await services.access.publishing(identity, context.repository, name.name, actor_of(request, identity))
    overwrite = options.force and await services.access.authorizer.may(
        identity, Action.OVERWRITE, context.repository, name.name
    )
    upload = Upload(name, subdir, blob, overwrite)
    published = await publish_upload(context, staged, upload, admitted)
    path = published.files[0].path
    return json_response({"path": path, "sha256": blob.sha256}, 201 if published.changed else 200)


def check_sha256(text: str | None) -> str | None:
    """A sha256 (hex) in lower case, or None. :raises Invalid: it is malformed"""
    if text is not None and not _SHA256.fullmatch(text):
        raise Invalid("sha256 must be 64 hexadecimal digits", "sha256")
    return None if text is None else text.lower()


async def get_file(context: ChannelContext, request: Request, path: PackagePath) -> Response:
    """A package. :raises NotFound: there is none"""
    services, repository = context.services, context.repository
    identity = await services.access.admit(request, Action.READ, repository, path.name.name)
    public = package_path(path.subdir, path.name)
    response = await answer_file(services, request, identity, repository, path.name.name, public)
    return existing(response, "file", str(path.name))
