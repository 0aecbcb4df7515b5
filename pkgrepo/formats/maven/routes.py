"""
The path table of a Maven repository.

An encoded slash must not separate segments, so ``paths`` reads the raw path. What is published and removed goes to the
members that take it, which depend on the path.

=============  =====================================  =================================================================
method         path                                   answered by
=============  =====================================  =================================================================
GET, HEAD      file, checksum of a file               ``files``
GET, HEAD      directory                              ``listing``
GET, HEAD      ``solrsearch/select``                  ``search``
GET, HEAD      metadata, checksum of metadata         ``metadata``
PUT            file, checksum, plain file, metadata   ``upload``
DELETE         file, version, artifact, build         ``removal``
any            ``deploy`` and what is below it        ``deploy``, if it is the address of a deployment
=============  =====================================  =================================================================
"""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid, NotFound, ReadOnly
from pkgrepo.formats.maven.caches import MavenCaches
from pkgrepo.formats.maven.deploy.addresses import Address, find_address
from pkgrepo.formats.maven.deploy.forms import publish_sent, read_sent
from pkgrepo.formats.maven.deploy.requests import answer_deployment
from pkgrepo.formats.maven.files import admit, get_checksum, get_file
from pkgrepo.formats.maven.listing import find_moved, list_directory
from pkgrepo.formats.maven.metadata.requests import get_metadata
from pkgrepo.formats.maven.removal import evict, remove
from pkgrepo.formats.maven.search.query import scope_of
from pkgrepo.formats.maven.search.requests import search
from pkgrepo.formats.maven.upload.requests import read_place, upload, upload_sent
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import member_context, publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.model import Action, Extent, RepositoryType
from pkgrepo.proxy.virtual import check_publishes, publish_target, publish_targets
from pkgrepo.storage.catalog.packages import packages

from .names import SNAPSHOT, is_snapshot
from .paths import SEARCH, ArtifactFile, Checksum, Directory, FilePath, Metadata, Path, PlainFile, parse_path
from .refusals import ERRORS

DEPLOY: Final = "deploy to {}/"
READS: Final = (b"GET", b"HEAD")
ALLOW: Final = ((b"Allow", b"GET, HEAD, PUT, DELETE"),)


async def _read(_context: Context[MavenCaches], _request: Request, rest: bytes) -> bytes:
    """The path itself: it may be the address of a deployment, which only its response tells."""
    return rest


async def _answer(context: Context[MavenCaches], request: Request, rest: bytes) -> Response:
    if request.method not in READS and context.repository.view is not None:
        await context.admit(request, Action.READ)
        check_publishes(context.repository)
    address = find_address(rest)
    if address is not None and (response := await _deploy(context, request, address)) is not None:
        return response
    try:
        path = parse_path(rest, directory_ok=request.method != b"PUT")
    except Invalid as error:
        raise _misplaced(context, request, Refusal(400, str(error), "invalid")) from None
    if request.method in READS:
        return await _get(context, request, path)
    if request.method == b"POST":
        refusal = Refusal(405, "files are uploaded by PUT", "method_not_allowed", headers=ALLOW)
        raise _misplaced(context, request, refusal)
    if request.method == b"DELETE":
        return await _delete(context, request, path)
    target = (await _targets(context, request, path))[0]
    if isinstance(path, Directory):
        raise NotFound("path", path.path)
    return await upload(target, request, path)


async def _deploy(context: Context[MavenCaches], request: Request, address: Address) -> Response | None:
    """The response at the address of a deployment; None if an ordinary path looks like one."""
    try:
        target = await publish_context(context, request)
    except ReadOnly:
        if request.method in READS:
            return None
        raise
    return await answer_deployment(target, request, address)


async def take_file(context: Context[MavenCaches], request: Request, sent: SentFile) -> Uploaded:
    """
    Publish a file of a form, in the repository that takes the version: with its POM if the form says what it is.

    Otherwise the file alone is published, at the path in the form, or where it says itself that it belongs.
    """
    path = sent.text("path")
    if path:
        place = read_place(f"{path.strip('/')}/{sent.name}" if path.endswith("/") else path.strip("/"))
        return await upload_sent((await _targets(context, request, place))[0], request, sent, place)
    if not sent.fields.get("pom") and not any(map(sent.text, ("group", "artifact", "version"))):
        repository = context.repository
        if repository.type is not RepositoryType.HOSTED:
            await context.admit(request, Action.READ, Extent.SOME)
            repository = publish_target(context.services.registry, repository, snapshot=SNAPSHOT in sent.name.upper())
        return await upload_sent(member_context(context, request, repository), request, sent, None)
    deployed = await read_sent(context.services, sent)
    target = (await _targets(context, request, deployed.files[0]))[0]
    return await publish_sent(target, request, deployed)


async def _get(context: Context[MavenCaches], request: Request, target: Path) -> Response:
    file = target.of if isinstance(target, Checksum) else target
    if isinstance(file, Directory):
        return await list_directory(context, request, file)
    if isinstance(file, Metadata):
        algorithm = target.algorithm if isinstance(target, Checksum) else None
        identity, key = await admit(context, request, file)
        return await get_metadata(context, request, identity, key, file, algorithm)
    if isinstance(target, Checksum):
        return await get_checksum(context, request, target)
    if file.path == SEARCH:
        scope = await scope_of(context.services, request, context.repository)
        return await search(context.services, request, scope)
    try:
        return await get_file(context, request, file)
    except NotFound:
        moved = await find_moved(context, request, file.path)
        if moved is None:
            raise
        return moved


async def _delete(context: Context[MavenCaches], request: Request, path: Path) -> Response:
    """Remove what is at a path, wherever it is. :raises NotFound: it is nowhere"""
    if context.repository.type is RepositoryType.PROXY:
        return await evict(context, request, path)
    response: Response | None = None
    targets = await _targets(context, request, path)
    for each in targets:
        try:
            response = await remove(each, request, path)
        except NotFound:
            if response is None and each is targets[-1]:
                raise
    assert response is not None
    return response


async def _targets(context: Context[MavenCaches], request: Request, path: Path) -> list[Context[MavenCaches]]:
    """
    The contexts of the hosted repositories that take changes at a path.

    A path of a version belongs to one. Metadata of an artifact go to the first one that has the artifact: they are
    made of what is stored. Anything else may be in each.

    :raises ReadOnly: no member takes publishes; only callers who may read this repository are told so
    """
    services, repository = context.services, context.repository
    if repository.type is RepositoryType.HOSTED:
        return [member_context(context, request, repository)]
    await context.admit(request, Action.READ, Extent.SOME)
    target = path.of if isinstance(path, Checksum) else path
    snapshot = _is_snapshot(target)
    if snapshot is not None:
        return [member_context(context, request, publish_target(services.registry, repository, snapshot=snapshot))]
    found = publish_targets(services.registry, repository)
    if isinstance(target, Metadata) and target.package_key is not None:
        look, key = services.catalog.look, target.package_key
        has = [await look(packages.package_serial, each.id, key) is not None for each in found]
        found = [found[has.index(True) if any(has) else 0]]
    return [member_context(context, request, each) for each in found]


def _is_snapshot(target: FilePath | Directory) -> bool | None:
    """Whether a path is one of a snapshot; None if it is not that of a version."""
    match target:
        case ArtifactFile():
            return is_snapshot(target.coordinates.version)
        case Metadata():
            return True if target.version is not None else None
        case Directory():
            return is_snapshot(target.path.rpartition("/")[2]) or None
        case PlainFile():
            return None


def _misplaced(context: Context[MavenCaches], request: Request, refusal: Refusal) -> Refusal:
    return misplaced_upload(context.services.base_url(request), request, refusal, DEPLOY)


ROUTES: Routes[MavenCaches, bytes] = Routes(read=_read, answer=_answer, errors=ERRORS)
