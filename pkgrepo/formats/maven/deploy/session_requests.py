"""
Answers the requests of sessions: a deployment of one version, whose files are sent one by one.

While a session is open no other files are pushed to its artifact; see ``push_rules``.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.errors import AlreadyExists, Conflict, Invalid, NotFound
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.access import Pusher, Wish, admit, begin, check_room, most_open, open_deployment
from pkgrepo.formats.maven.deploy.addresses import Address
from pkgrepo.formats.maven.deploy.contents import Contents, check_contents, pom_mismatch, signature_problem
from pkgrepo.formats.maven.deploy.problems import SIGNATURE_SIZE, Problems
from pkgrepo.formats.maven.deploy.publishing import Refused, refusal_of, require_rules
from pkgrepo.formats.maven.deploy.work import publish_session
from pkgrepo.formats.maven.metadata.plugins import find_plugin
from pkgrepo.formats.maven.names import Coordinates, parse_package_key, parse_version
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile, parse_path, parse_text
from pkgrepo.formats.maven.upload.jar import FACTS, read_jar
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.gateway.bodies import read_json, receive_body
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import StagedFiles, stage_files
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.untrusted.patterns import pattern
from pkgrepo.untrusted.text import quoted

MOST_FILES: Final = 500  # of one session

Text = Annotated[str, msgspec.Meta(max_length=255)]
Sum = Annotated[str, msgspec.Meta(pattern=pattern("^[0-9A-Fa-f]{0,128}$", "hexadecimal digits"))]

_LENGTHS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class AnnouncedFile(msgspec.Struct, frozen=True):
    """A file that will be sent; the digests are optional, and compared when it arrives."""

    file_name: Text
    maven_file_type: str | None = None
    md5: Sum | None = None
    sha1: Sum | None = None
    sha256: Sum | None = None
    sha512: Sum | None = None

    def digests(self) -> dict[str, str]:
        """The announced digests in lower case. :raises Invalid: one has a wrong length"""
        found = {each: value.lower() for each in _LENGTHS if (value := getattr(self, each))}
        for algorithm, value in found.items():
            if len(value) != _LENGTHS[algorithm]:
                raise Invalid(f"{quoted(self.file_name)} has a {algorithm} of a wrong length", "files")
        return found


class SessionDocument(msgspec.Struct, frozen=True):
    """The body of the request that begins a session; further members are ignored."""

    group_id: Text
    artifact_id: Text
    version: Text
    files: Annotated[list[AnnouncedFile], msgspec.Meta(min_length=1, max_length=MOST_FILES)]
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


@frozen
class Session:
    """What a session is for: a version, and the announced digests of its files by path."""

    coordinates: Coordinates
    expected: dict[str, dict[str, str]]
    name: str

    @property
    def meta(self) -> dict[str, Any]:
        """What is kept of it while it is open."""
        return {"version": self.coordinates.version, "expected": self.expected}

    @classmethod
    def of(cls, package_key: str, meta: Any) -> Session:
        """The session that was kept."""
        group, _, artifact = package_key.partition(":")
        return cls(Coordinates(group, artifact, meta["version"]), meta["expected"], "")

    def file(self, name: str) -> ArtifactFile | None:
        """The announced file of this name, or None."""
        path = f"{self.coordinates.directory}/{name}"
        if path not in self.expected:
            return None
        found = parse_text(path)
        assert isinstance(found, ArtifactFile), "it was checked when the session began"
        return found


def read_session(value: object) -> Session:
    """
    The session that a client begins with this JSON value.

    :raises Invalid: it is malformed, or a file of it is not one of that version
    """
    try:
        document = msgspec.convert(value, SessionDocument)
    except msgspec.ValidationError as error:
        raise Invalid(f"this is no deployment: {error}") from None
    key = parse_package_key(f"{document.group_id}:{document.artifact_id}")
    group, _, artifact = key.partition(":")
    coordinates = Coordinates(group, artifact, parse_version(document.version))
    expected: dict[str, dict[str, str]] = {}
    for each in document.files:
        path = f"{coordinates.directory}/{each.file_name}"
        file = parse_text(path)
        if not isinstance(file, ArtifactFile) or file.coordinates != coordinates:
            raise Invalid(f"{quoted(each.file_name)} is no name of a file of this version", "files")
        if path in expected:
            raise Invalid(f"{quoted(each.file_name)} is announced twice", "files")
        expected[path] = each.digests()
    return Session(coordinates, expected, document.name)


HEADER = b"x-service-deploy"
DOCUMENT_SIZE = 256 * 1024  # bytes of the body that begins a session


async def begin_session(context: MavenContext, request: Request) -> Response:
    """
    Begin a session for the version and files in the body.

    :raises Invalid: the body is malformed; :raises Conflict: a session for the artifact is open
    :raises Refusal: a push rule forbids the version, or the user has too many open deployments
    """
    pusher = await admit(context, request)
    deployment = await begin_files(context, pusher, read_session(await read_json(request, DOCUMENT_SIZE)))
    return json_response({"deploy_id": deployment.uid}, headers=NO_STORE)


async def put_file(context: MavenContext, request: Request, address: Address) -> Response:
    """
    Take one file of a session.

    :raises DigestMismatch: it is not the announced one; :raises AlreadyExists: it has arrived already
    :raises NotFound: it was not announced; :raises Invalid: it is malformed
    """
    services = context.services
    pusher, deployment = await open_deployment(context, request, address.uid)
    _check_open(deployment)
    session = Session.of(deployment.package_key, deployment.meta)
    name = parse_path(address.path, directory_ok=False).path
    file = session.file(name)
    if file is None:
        raise NotFound("file", name)
    await require_rules(context, pusher.identity, [file])
    if await services.catalog.look(deployments.find_staged_file, deployment.id, file.path) is not None:
        raise AlreadyExists("file", name)
    expected = session.expected[file.path]
    await stage_file(
        context,
        pusher,
        deployment,
        file,
        lambda staged: receive_body(
            request, staged, limit=services.max_upload, algorithms=ALGORITHMS, expected=expected
        ),
    )
    return Response(201)


async def begin_files(context: MavenContext, pusher: Pusher, session: Session) -> Deployment:
    """Begin a session. :raises Conflict, Refusal: as ``begin_session``"""
    targets = [session.file(path.rpartition("/")[2]) for path in session.expected]
    await require_rules(context, pusher.identity, [each for each in targets if each is not None])
    deployment: Deployment = await context.services.catalog.write(
        begin,
        context.repository,
        pusher,
        Wish(session.name, package_key=session.coordinates.package_key),
        session.meta,
        most=most_open(context.services),
        now_ms=context.services.clock.now_ms(),
    )
    return deployment


async def stage_file(
    context: MavenContext,
    pusher: Pusher,
    deployment: Deployment,
    file: ArtifactFile,
    receive: Callable[[Staged], Awaitable[BlobInfo]],
) -> BlobInfo:
    """Take what ``receive`` stages as a file of a session. :raises Invalid, AlreadyExists: as ``put_file``"""
    services = context.services
    async with services.content.stage(context.repository) as staged:
        blob = await receive(staged)
        found = StagedFile(file.path, blob, await _attrs(context, staged, file, blob))
        await services.content.change_with_blobs(
            partial(_stage, pusher=pusher, most=most_open(services)),
            context.repository,
            staged,
            [blob],
            deployment,
            found,
        )
    return blob


async def publish_files(context: MavenContext, request: Request, pusher: Pusher, deployment: Deployment) -> Response:
    """
    Publish the files of a session, and end it.

    :raises Refusal: files are missing, or may not be published; the session stays open
    """
    _check_open(deployment)
    session = Session.of(deployment.package_key, deployment.meta)
    staged: list[StagedFile] = await context.services.catalog.scan(deployments.staged_files, deployment.id)
    _check_whole(session, staged, DeployRequirements.of(context.repository))
    await publish_session(context, pusher, deployment)
    url = context.services.repository_url(request, context.repository)
    files = [
        {"name": each.path.rpartition("/")[2], "path": each.path, "url": f"{url}/{quote(each.path)}"} for each in staged
    ]
    return json_response({"files": files}, headers=NO_STORE)


async def _attrs(context: MavenContext, staged: Staged, file: ArtifactFile, blob: BlobInfo) -> dict[str, Any]:
    """What the release will say of a file. :raises Invalid: it is a malformed POM or signature"""
    services = context.services
    if file.role is not None:
        if blob.size > SIGNATURE_SIZE:
            raise Invalid(f"the signature is larger than {SIGNATURE_SIZE} bytes")
        problem = await staged.inspect(services.pools.cpu, blob, partial(_look_at_signature, role=file.role))
        if problem is not None:
            raise Invalid(problem)
        return {}
    if file.extension == "jar" and not file.classifier:
        facts = await staged.inspect(services.pools.cpu, blob, read_jar, commit=False)
        look = partial(find_plugin, artifact=file.coordinates.artifact)
        plugin = await staged.inspect(services.pools.cpu, blob, look)
        found = {FACTS: facts, "plugin": plugin}
        return {name: each for name, each in found.items() if each}
    if file.extension != "pom" or file.classifier:
        return {}
    if blob.size > POM_SIZE:
        raise Invalid(f"the POM is larger than {POM_SIZE} bytes")
    pom: Pom | None = await staged.inspect(services.pools.cpu, blob, _look_at_pom)
    if pom is None:
        raise Invalid("the POM cannot be read: it has a DOCTYPE, or an unknown encoding")
    mismatch = pom_mismatch(pom, file.coordinates, file.file_version)
    if mismatch is not None:
        raise Invalid(mismatch)
    return {"meta": pom.meta()}


def _check_open(deployment: Deployment) -> None:
    if not deployment.package_key:
        raise Invalid("this deployment is a bundle, which gets no files one by one")
    if deployment.state is not DeploymentState.PENDING:
        raise Conflict(f"the session is {deployment.state.value}")


def _check_whole(session: Session, staged: list[StagedFile], requirements: DeployRequirements) -> None:
    """Check that all announced files are here and make a version. :raises Refusal: they do not"""
    contents, problems = Contents(), Problems()
    for each in staged:
        file = session.file(each.path.rpartition("/")[2])
        if file is not None:
            contents.files[each.path] = file
    for path in session.expected:
        if path not in contents.files:
            problems.add(path, "this file was announced, and has not arrived")
    check_contents(contents, requirements, problems)
    if problems:
        raise refusal_of(Refused(problems))


def _stage(
    tx: Transaction,
    repository: Repository,
    deployment: Deployment,
    file: StagedFile,
    now_ms: int,
    *,
    pusher: Pusher,
    most: int,
) -> StagedFiles:
    """Add a file, for which there must be room. :raises AlreadyExists: it has arrived meanwhile"""
    check_room(tx, repository, pusher, file.blob.size, most=most, another=False)
    result = stage_files(tx, repository, deployment.id, [file], now_ms)
    if result.refused:
        raise AlreadyExists("file", file.path.rpartition("/")[2])
    deployments.add_size(tx, deployment.id, file.blob.size, now_ms)
    return result


def _look_at_pom(source: int | bytes) -> Pom | None:
    return read_pom(_content(source, POM_SIZE))


def _look_at_signature(source: int | bytes, role: str) -> str | None:
    return signature_problem(_content(source, SIGNATURE_SIZE), role)


def _content(source: int | bytes, limit: int) -> bytes:
    return source if isinstance(source, bytes) else os.pread(source, limit, 0)
