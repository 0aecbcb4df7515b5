"""
Answers the requests of sessions: a deployment of one version, whose files are sent one by one.

While a session is open nobody else pushes files to its artifact; see ``push_rules``.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from urllib.parse import quote

from pkgrepo.errors import AlreadyExists, Conflict, Invalid, NotFound
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.contents.survey import Contents, signature_problem
from pkgrepo.formats.maven.deploy.contents.validation import check_contents, pom_mismatch
from pkgrepo.formats.maven.metadata.descriptor import find_plugin
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile, parse_path
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.gateway.bodies import read_json
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import receive_body
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import StagedFiles, stage_files
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments

from .access import DeployAccess
from .addresses import Address
from .limits import SIGNATURE_SIZE
from .problems import Problems
from .publishing import Refused, refusal_of
from .sessions import Session, read_session
from .work.admission import add_session, check_room, most_open
from .work.publication import Publication
from .work.pushers import Pusher

HEADER = b"x-service-deploy"
DOCUMENT_SIZE = 256 * 1024  # bytes of the body that begins a session


class SessionRequests:
    """Sessions of one hosted repository."""

    def __init__(
        self, services: Services, repository: Repository, access: DeployAccess, publication: Publication
    ) -> None:
        self._services = services
        self._repository = repository
        self._access = access
        self._publication = publication

    def header(self, request: Request) -> bytes | None:
        """The header field by which clients say that they speak the session protocol, or None."""
        return request.header(HEADER)

    async def begin(self, request: Request) -> Answer:
        """
        Begin a session for the version and files in the body.

        :raises Invalid: the body is malformed; :raises Conflict: a session for the artifact is open
        :raises Refusal: a push rule forbids the version, or the user has too many open deployments
        """
        pusher = await self._access.admit(request)
        session = read_session(await read_json(request, DOCUMENT_SIZE))
        targets = [session.file(path.rpartition("/")[2]) for path in session.expected]
        await self._publication.check_rules(pusher, [each for each in targets if each is not None])
        deployment: Deployment = await self._services.catalog.write(
            add_session,
            self._repository,
            pusher,
            session,
            most=most_open(self._services),
            now_ms=self._services.clock.now_ms(),
        )
        return json_answer({"deploy_id": deployment.uid}, headers=NO_STORE)

    async def put(self, request: Request, address: Address) -> Answer:
        """
        Take one file of a session.

        :raises DigestMismatch: it is not the announced one; :raises AlreadyExists: it has arrived already
        :raises NotFound: it was not announced; :raises Invalid: it is malformed
        """
        pusher, deployment = await self._access.open(request, address.uid)
        _check_open(deployment)
        session = Session.of(deployment.package_key, deployment.meta)
        name = parse_path(address.path, directory_ok=False).path
        file = session.file(name)
        if file is None:
            raise NotFound("file", name)
        await self._publication.check_rules(pusher, [file])
        if await self._services.catalog.look(deployments.find_staged_file, deployment.id, file.path) is not None:
            raise AlreadyExists("file", name)
        async with self._services.publisher.stage(self._repository) as staged:
            blob = await receive_body(
                request,
                staged,
                limit=self._services.max_upload,
                algorithms=ALGORITHMS,
                expected=session.expected[file.path],
            )
            found = StagedFile(file.path, blob, await self._attrs(staged, file, blob))
            await self._services.publisher.change_with_blobs(
                partial(_stage, pusher=pusher, most=most_open(self._services)),
                self._repository,
                staged,
                [blob],
                deployment,
                found,
            )
        return Answer(201)

    async def publish(self, request: Request, pusher: Pusher, deployment: Deployment) -> Answer:
        """
        Publish the files of a session, and end it.

        :raises Refusal: files are missing, or may not be published; the session stays open
        """
        _check_open(deployment)
        session = Session.of(deployment.package_key, deployment.meta)
        staged: list[StagedFile] = await self._services.catalog.scan(deployments.staged_files, deployment.id)
        _check_whole(session, staged, DeployRequirements.of(self._repository))
        await self._publication.publish_session(pusher, deployment)
        url = self._services.repository_url(request, self._repository)
        files = [
            {"name": each.path.rpartition("/")[2], "path": each.path, "url": f"{url}/{quote(each.path)}"}
            for each in staged
        ]
        return json_answer({"files": files}, headers=NO_STORE)

    async def _attrs(self, staged: Staged, file: ArtifactFile, blob: BlobInfo) -> dict[str, Any]:
        """What the release will say of a file. :raises Invalid: it is a malformed POM or signature"""
        if file.role is not None:
            if blob.size > SIGNATURE_SIZE:
                raise Invalid(f"the signature is larger than {SIGNATURE_SIZE} bytes")
            problem = await staged.inspect(self._services.pools.cpu, blob, partial(_look_at_signature, role=file.role))
            if problem is not None:
                raise Invalid(problem)
            return {}
        if file.extension == "jar" and not file.classifier:
            look = partial(find_plugin, artifact=file.coordinates.artifact)
            found = await staged.inspect(self._services.pools.cpu, blob, look)
            return {} if found is None else {"plugin": found}
        if file.extension != "pom" or file.classifier:
            return {}
        if blob.size > POM_SIZE:
            raise Invalid(f"the POM is larger than {POM_SIZE} bytes")
        pom: Pom | None = await staged.inspect(self._services.pools.cpu, blob, _look_at_pom)
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
