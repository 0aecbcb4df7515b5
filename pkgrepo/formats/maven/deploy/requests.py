"""
Answers requests for deployments: bundles in, their state out, publish and drop.

The addresses below ``deploy`` are our own; those of the public portal's publisher API work alike, so that its tools
work here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pkgrepo.errors import Conflict, Invalid, NotFound, existing
from pkgrepo.formats.maven.media_types import media_type as media_type_of
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, parse_path
from pkgrepo.formats.maven.refusals import reason_of
from pkgrepo.gateway.answers.content import SAFE
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.answers import NO_STORE, Answer, json_answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.untrusted.text import quoted

from .access import DeployAccess
from .addresses import Address
from .limits import LONGEST_NAME
from .publishing import Refused, refusal_of
from .receiving import check_bundle_head, media_type, receive_bundle
from .running import Running
from .session_requests import SessionRequests
from .status import failure_sentence, failure_text, portal_record, status_record
from .work.bundles import Bundles, ignore_result
from .work.publication import Publication
from .work.pushers import Wish
from .work.transitions import STOPPED, Transitions

READING = (b"GET", b"HEAD")
TRUE = (b"true", b"1", b"yes", b"")
TYPES = {"AUTOMATIC": True, "USER_MANAGED": False}
STOPS = b"The server stops; it goes on with this deployment when it runs again"


class DeployRequests:
    """Deployments of one hosted repository."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer, running: Running) -> None:
        self._services = services
        self._storage_id = repository.storage_id
        self._access = DeployAccess(services, repository)
        self._bundles = Bundles(services, repository, indexer, running)
        self._publication = Publication(services, repository, indexer, running)
        self._transitions = Transitions(services, repository)
        self._sessions = SessionRequests(services, repository, self._access, self._publication)

    async def answer(  # noqa: PLR0911 - one return for each address
        self, request: Request, address: Address
    ) -> Answer | None:
        """
        The answer to a request, or None if it is one for an ordinary path that looks like that of a deployment.

        :raises Refusal: it is refused
        """
        if address.uid and not address.what.startswith("portal"):
            return await self._answer_known(request, address)
        match address.what, request.method:
            case "begin", b"POST" if media_type(request) == b"application/json":
                return await self._sessions.begin(request)
            case "begin" | "portal upload", b"POST":
                return await self._upload(request)
            case "portal status", b"POST":
                return await self._status(request, _parameter(request, b"id"), portal_record)
            case "portal deployment", b"POST":
                await self._publish(request, address.uid)
                return Answer(204)
            case "portal deployment", b"DELETE":
                return await self._drop(request, address.uid)
        return None

    async def _answer_known(  # noqa: PLR0911 - one return for each address
        self, request: Request, address: Address
    ) -> Answer | None:
        """The answer at an address with the id of a deployment, or None if the address has no id."""
        known = await self._access.find(address.uid) is not None
        if not known and request.method != b"POST" and self._sessions.header(request) is None:
            return None
        match address.what, request.method:
            case "status", b"GET" | b"HEAD":
                return await self._status(request, address.uid, status_record)
            case "staged", b"GET" | b"HEAD":
                return await self._staged(request, address)
            case "publish" | "status", b"POST":
                return await self._publish(request, address.uid)
            case "status", b"DELETE":
                return await self._drop(request, address.uid)
            case "file", b"PUT":
                return await self._sessions.put(request, address)
        return None

    async def _status(self, request: Request, uid: str, record: Callable[[Deployment], dict[str, Any]]) -> Answer:
        _, found = await self._access.open(request, uid)
        return json_answer(record(found), headers=NO_STORE)

    async def _upload(self, request: Request) -> Answer:
        pusher = await self._access.admit(request)
        wish = _wish(request)
        waits = b"wait" in request.args and request.args[b"wait"][-1].lower() in TRUE
        check_bundle_head(request, self._services)
        started = await self._bundles.start(
            pusher, wish, lambda staged: receive_bundle(request, self._services, staged)
        )
        uid = started.deployment.uid
        await started.arrived
        if not waits:
            ignore_result(started.ended)
            return self._begun(request, started.deployment)
        status = await started.ended
        return self._result(request, existing(await self._access.find(uid), "deployment", uid), status)

    def _begun(self, request: Request, deployment: Deployment) -> Answer:
        if names_media_type(request.header(b"accept"), b"application/json"):
            record = {"deployment_id": deployment.uid, "state": deployment.state.value}
            return json_answer(record, 201, headers=NO_STORE)
        return text_answer(deployment.uid, 201, headers=NO_STORE)

    def _result(self, request: Request, deployment: Deployment, status: int) -> Answer:
        """The answer to a client that has waited for the end of a deployment."""
        failed = deployment.state is DeploymentState.FAILED
        if deployment.state is DeploymentState.PUBLISHED and status >= 400:  # it was published after all
            status = 200
        reason = reason_of(failure_sentence(deployment)) if failed else STOPS if status == STOPPED else None
        if names_media_type(request.header(b"accept"), b"application/json"):
            return json_answer(status_record(deployment), status, headers=NO_STORE, reason=reason)
        text = failure_text(deployment) if failed else deployment.uid
        return text_answer(text, status, headers=NO_STORE, reason=reason)

    async def _publish(self, request: Request, uid: str) -> Answer:
        pusher, found = await self._access.open(request, uid)
        if found.package_key:
            return await self._sessions.publish(request, pusher, found)
        try:
            status = await self._publication.publish(pusher, found)
        except Refused as error:
            raise refusal_of(error) from None
        return self._result(request, existing(await self._access.find(uid), "deployment", uid), status)

    async def _drop(self, request: Request, uid: str) -> Answer:
        _, found = await self._access.open(request, uid)
        if not await self._transitions.drop(found):
            raise Conflict(f"the deployment is {found.state.value}, and cannot be dropped now")
        return Answer(204)

    async def _staged(self, request: Request, address: Address) -> Answer:
        """A file that is not published yet, or its checksum."""
        _, found = await self._access.open(request, address.uid)
        target = parse_path(address.path, directory_ok=False)
        file = target.of if isinstance(target, Checksum) else target
        if not isinstance(file, ArtifactFile):
            raise NotFound("file", address.path.decode("latin-1")[:200])
        staged: StagedFile | None = await self._services.catalog.look(deployments.find_staged_file, found.id, file.path)
        if staged is None:
            raise NotFound("file", file.filename)
        if isinstance(target, Checksum):
            return text_answer(staged.blob.digests[target.algorithm], headers=(*NO_STORE, *SAFE))
        return Answer(
            body=await self._services.files.body(self._storage_id, staged.blob.locator, staged.blob.size),
            content_type=media_type_of(file.path).encode("ascii"),
            etag=b'"%s"' % staged.blob.sha256.encode("ascii"),
            headers=(*NO_STORE, *SAFE),
            ranges=True,
        )


def _wish(request: Request) -> Wish:
    """:raises Invalid: a parameter is malformed"""
    name = _parameter(request, b"name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(f"the name of a deployment has at most {LONGEST_NAME} printable characters", "name")
    kind = (_parameter(request, b"publishing_type") or _parameter(request, b"publishingType") or "AUTOMATIC").upper()
    if kind not in TYPES:
        raise Invalid(f"publishing_type is AUTOMATIC or USER_MANAGED, not {quoted(kind)}", "publishing_type")
    return Wish(name=name, automatic=TYPES[kind], size=request.body.declared or 0)


def _parameter(request: Request, name: bytes) -> str:
    values = request.args.get(name)
    return "" if not values else values[-1].decode("utf-8", "replace").strip()
