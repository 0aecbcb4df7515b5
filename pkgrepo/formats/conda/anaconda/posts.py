"""
Answers the request of an upload that has no credentials but a ticket.

Its address names no repository, so it is the same for private ones; the ticket decides.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from functools import partial
from typing import Final

from attrs import asdict
from twisted.web.resource import IResource

from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.anatomy.reading import read_package
from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.layout import package_path
from pkgrepo.formats.conda.names import parse_file_name
from pkgrepo.formats.conda.refusals import POST_ERRORS
from pkgrepo.formats.conda.upload.publishing import DIGESTS, Upload, make_release
from pkgrepo.formats.conda.upload.requests import FORM_OVERHEAD
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import check_declared_length
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import NO_STORE, Answer, Refusal
from pkgrepo.http.reading.multipart import MultipartLimits, Part, read_form
from pkgrepo.http.request import Request
from pkgrepo.model import Repository
from pkgrepo.model.deployments import Deployment, StagedFile
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments

from . import uploads

BRANCH: Final = "api/conda"  # at the root of the server
PREFIX: Final = f"/{BRANCH}/uploads/"
TICKET: Final = "ticket"  # the field of the form that has it
FORM_LIMITS: Final = MultipartLimits(parts=16, text_bytes=4096)

_FIELDS: Final = frozenset({TICKET, "Content-Length", "Content-MD5"})  # anaconda-client adds the latter two

app = new_app()


class PostSite:
    """The files of uploads to all hosted channels."""

    app = app

    def __init__(self, services: Services) -> None:
        self._services = services

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/conda/uploads/<uid>", methods=["POST"])  # below the first segment of the branch
    @answering(POST_ERRORS)
    async def receive(self, request: Request, uid: str) -> Answer:
        """
        Take the file of an upload from a form, which has the ticket before it. There are no other credentials.

        :raises Forbidden: the ticket is not, or no longer, valid; :raises Refusal: the form is malformed
        :raises Invalid, DigestMismatch, TooLarge: it is another file; then the upload is over
        """
        request.body.limit = self._services.max_upload + FORM_OVERHEAD  # also without a ticket, and without a length
        check_declared_length(request, request.body.limit)
        repository = await self._repository(uid)
        request.repository = repository.path
        fields: dict[str, str] = {}
        deployment: Deployment | None = None
        async with self._services.publisher.stage(repository) as staged:
            try:
                async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
                    if part.name == "file":
                        deployment = await self._take(repository, uid, fields.get(TICKET, ""))
                        request.principal = deployment.actor
                        file = await self._receive_part(request, repository, part, staged, deployment, fields)
                    elif part.name in _FIELDS:
                        fields[part.name] = await part.read_text()
                if deployment is None:
                    raise Refusal(400, "the form has no part named 'file'", "bad_form")
                await self._keep(repository, staged, deployment, file)
            except BaseException:
                if deployment is not None:
                    await self._services.catalog.write(deployments.remove_deployment, deployment.id)
                raise
        return Answer(201, headers=NO_STORE)

    async def _repository(self, uid: str) -> Repository:
        """The repository of an upload. :raises Forbidden: there is no such upload"""
        found: int | None = await self._services.catalog.look(deployments.find_repository_id, uid)
        repository = None if found is None else self._services.registry.find_id(found)
        if repository is None:
            raise Forbidden(uploads.INVALID_TICKET)
        return repository

    async def _take(self, repository: Repository, uid: str, ticket: str) -> Deployment:
        now_ms = self._services.clock.now_ms()
        deployment: Deployment = await self._services.catalog.write(
            uploads.take_ticket, repository, uid, ticket, now_ms
        )
        return deployment

    async def _receive_part(
        self,
        request: Request,
        repository: Repository,
        part: Part,
        staged: Staged,
        deployment: Deployment,
        fields: Mapping[str, str],
    ) -> StagedFile:
        limit, declared = self._services.max_upload, request.body.declared
        sha256 = deployment.meta["sha256"]
        expected = {} if sha256 is None else {"sha256": sha256}
        if "Content-MD5" in fields:
            expected["md5"] = _md5(fields["Content-MD5"])
        blob = await staged.receive(
            part,
            limit=limit,
            expect_size=None if declared is None else min(declared, limit),
            algorithms=DIGESTS,
            expected=expected,
        )
        if fields.get("Content-Length", str(blob.size)) != str(blob.size):
            raise Invalid(f"the file has {blob.size} bytes, and another number was announced", "Content-Length")
        name, subdir = parse_file_name(deployment.name), deployment.meta["subdir"]
        look = partial(read_package, name=name)
        description: Description = await staged.inspect(self._services.pools.cpu, blob, look)
        policy = configuration.policy(repository)
        make_release(Upload(name, subdir, blob), description, policy)  # refuses a package for another folder
        return StagedFile(path_of(deployment), blob, asdict(description, recurse=False))

    async def _keep(self, repository: Repository, staged: Staged, deployment: Deployment, file: StagedFile) -> None:
        most = uploads.OPEN_UPLOADS * self._services.max_upload
        await self._services.publisher.change_with_blobs(
            uploads.keep_upload, repository, staged, [file.blob], deployment, file, most
        )


refuse_unrouted(PostSite.app, POST_ERRORS)


def path_of(deployment: Deployment) -> str:
    """The path that the file of an upload will have."""
    return package_path(deployment.meta["subdir"], parse_file_name(deployment.name))


def _md5(text: str) -> str:
    """A digest in base64, as RFC 1864 writes it, in hex. :raises Invalid: the text is no digest"""
    try:
        digest = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != 16:
        raise Invalid("Content-MD5 must be 16 bytes in base64", "Content-MD5")
    return digest.hex()
