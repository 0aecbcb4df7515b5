"""
Answers requests for deployments: bundles in, their state out, publish and drop.

The addresses below ``deploy`` are our own; those of the public portal's publisher API work alike, so that its tools
work here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from pkgrepo.errors import Conflict, Invalid, NotFound, existing
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.deploy.access import Wish, admit, find_deployment, open_deployment
from pkgrepo.formats.maven.deploy.addresses import Address
from pkgrepo.formats.maven.deploy.problems import LONGEST_NAME, first_sentence
from pkgrepo.formats.maven.deploy.publishing import Refused, refusal_of
from pkgrepo.formats.maven.deploy.session_requests import HEADER, begin_session, publish_files, put_file
from pkgrepo.formats.maven.deploy.work import STOPPED, drop, ignore_result, publish_bundle, start_bundle
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, parse_path
from pkgrepo.formats.maven.paths import media_type as media_type_of
from pkgrepo.formats.maven.refusals import reason_of
from pkgrepo.gateway.bodies import check_declared_length, receive_body
from pkgrepo.gateway.responses.content import SAFE
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response
from pkgrepo.model import BlobInfo
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.untrusted.text import quoted

TRUE = (b"true", b"1", b"yes", b"")
TYPES = {"AUTOMATIC": True, "USER_MANAGED": False}
STOPS = b"The server stops; it goes on with this deployment when it runs again"


async def answer_deployment(  # noqa: PLR0911 - one return for each address
    context: MavenContext, request: Request, address: Address
) -> Response | None:
    """
    The answer to a request, or None if it is one for an ordinary path that looks like that of a deployment.

    :raises Refusal: it is refused
    """
    if address.uid and not address.what.startswith("portal"):
        return await _answer_known(context, request, address)
    match address.what, request.method:
        case "begin", b"POST" if media_type(request) == b"application/json":
            return await begin_session(context, request)
        case "begin" | "portal upload", b"POST":
            return await _upload(context, request)
        case "portal status", b"POST":
            return await _status(context, request, _parameter(request, b"id"), portal_record)
        case "portal deployment", b"POST":
            await _publish(context, request, address.uid)
            return Response(204)
        case "portal deployment", b"DELETE":
            return await _drop(context, request, address.uid)
    return None


async def _answer_known(  # noqa: PLR0911 - one return for each address
    context: MavenContext, request: Request, address: Address
) -> Response | None:
    """The response at an address with the id of a deployment, or None if the address has no id."""
    known = await find_deployment(context, address.uid) is not None
    if not known and request.method != b"POST" and request.header(HEADER) is None:
        return None
    match address.what, request.method:
        case "status", b"GET" | b"HEAD":
            return await _status(context, request, address.uid, status_record)
        case "staged", b"GET" | b"HEAD":
            return await _staged(context, request, address)
        case "publish" | "status", b"POST":
            return await _publish(context, request, address.uid)
        case "status", b"DELETE":
            return await _drop(context, request, address.uid)
        case "file", b"PUT":
            return await put_file(context, request, address)
    return None


async def _status(
    context: MavenContext, request: Request, uid: str, record: Callable[[Deployment], dict[str, Any]]
) -> Response:
    _, found = await open_deployment(context, request, uid)
    return json_response(record(found), headers=NO_STORE)


async def _upload(context: MavenContext, request: Request) -> Response:
    pusher = await admit(context, request)
    wish = _wish(request)
    waits = b"wait" in request.args and request.args[b"wait"][-1].lower() in TRUE
    check_bundle_head(request, context.services)
    started = await start_bundle(
        context, pusher, wish, lambda staged: receive_bundle(request, context.services, staged)
    )
    uid = started.deployment.uid
    await started.arrived
    if not waits:
        ignore_result(started.ended)
        return _begun(request, started.deployment)
    status = await started.ended
    return _result(request, existing(await find_deployment(context, uid), "deployment", uid), status)


def _begun(request: Request, deployment: Deployment) -> Response:
    if names_media_type(request.header(b"accept"), b"application/json"):
        record = {"deployment_id": deployment.uid, "state": deployment.state.value}
        return json_response(record, 201, headers=NO_STORE)
    return text_response(deployment.uid, 201, headers=NO_STORE)


def _result(request: Request, deployment: Deployment, status: int) -> Response:
    """The answer to a client that has waited for the end of a deployment."""
    failed = deployment.state is DeploymentState.FAILED
    if deployment.state is DeploymentState.PUBLISHED and status >= 400:  # it was published after all
        status = 200
    reason = reason_of(failure_sentence(deployment)) if failed else STOPS if status == STOPPED else None
    if names_media_type(request.header(b"accept"), b"application/json"):
        return json_response(status_record(deployment), status, headers=NO_STORE, reason=reason)
    text = failure_text(deployment) if failed else deployment.uid
    return text_response(text, status, headers=NO_STORE, reason=reason)


async def _publish(context: MavenContext, request: Request, uid: str) -> Response:
    pusher, found = await open_deployment(context, request, uid)
    if found.package_key:
        return await publish_files(context, request, pusher, found)
    try:
        status = await publish_bundle(context, pusher, found)
    except Refused as error:
        raise refusal_of(error) from None
    return _result(request, existing(await find_deployment(context, uid), "deployment", uid), status)


async def _drop(context: MavenContext, request: Request, uid: str) -> Response:
    pusher, found = await open_deployment(context, request, uid)
    if not await drop(context, pusher, found):
        raise Conflict(f"the deployment is {found.state.value}, and cannot be dropped now")
    return Response(204)


async def _staged(context: MavenContext, request: Request, address: Address) -> Response:
    """A file that is not published yet, or its checksum."""
    _, found = await open_deployment(context, request, address.uid)
    target = parse_path(address.path, directory_ok=False)
    file = target.of if isinstance(target, Checksum) else target
    if not isinstance(file, ArtifactFile):
        raise NotFound("file", address.path.decode("latin-1")[:200])
    staged: StagedFile | None = await context.services.catalog.look(deployments.find_staged_file, found.id, file.path)
    if staged is None:
        raise NotFound("file", file.filename)
    if isinstance(target, Checksum):
        return text_response(staged.blob.digests[target.algorithm], headers=(*NO_STORE, *SAFE))
    return Response(
        body=await context.services.files.body(context.repository.storage_id, staged.blob.locator, staged.blob.size),
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


FORM: Final = b"multipart/form-data"
FIELD: Final = "bundle"
FORM_LIMITS: Final = MultipartLimits(parts=20, text_bytes=64 * 1024)
FORM_OVERHEAD: Final = 2 * 1024 * 1024  # bytes that a form may have besides its bundle

# The types under which archives are sent. What a body is, its first bytes tell.
ARCHIVES: Final = frozenset(
    {
        b"application/zip",
        b"application/x-zip-compressed",
        b"application/gzip",
        b"application/x-gzip",
        b"application/x-gtar",
        b"application/x-tar",
        b"application/x-compressed-tar",
        b"application/tar+gzip",
        b"application/octet-stream",
        b"",
    }
)


def media_type(request: Request) -> bytes:
    """The media type of a request's body, without parameters; empty if it has none."""
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()


def check_bundle_head(request: Request, services: Services) -> None:
    """
    Check that a body may be a bundle, before a byte of it is read.

    :raises Refusal: its type is another; :raises TooLarge: it announces too many bytes
    """
    kind = media_type(request)
    if kind not in ARCHIVES and kind != FORM:
        sentence = "a bundle is application/zip, application/gzip, application/x-tar, or the field bundle of a form"
        raise Refusal(415, sentence, "not_a_bundle")
    if (request.header(b"content-encoding") or b"identity").strip().lower() not in (b"", b"identity"):
        raise Refusal(415, "a bundle is sent as it is, without Content-Encoding", "content_coding")
    overhead = FORM_OVERHEAD if kind == FORM else 0
    check_declared_length(request, services.max_upload + overhead)


async def receive_bundle(request: Request, services: Services, staged: Staged) -> BlobInfo:
    """
    The bundle in a body, staged.

    :raises TooLarge: it is too large; :raises Refusal: it is a malformed form, or does not arrive whole
    :raises Invalid: the form has no field ``bundle``, or several
    """
    if media_type(request) != FORM:
        return await receive_body(request, staged, limit=services.max_upload)
    found: BlobInfo | None = None
    async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
        if part.name != FIELD:
            continue
        if found is not None:
            raise Invalid("the form has two fields 'bundle'", FIELD)
        found = await staged.receive(part, limit=services.max_upload)
    if found is None:
        raise Invalid("the form has no field 'bundle'", FIELD)
    return found


def status_record(deployment: Deployment) -> dict[str, Any]:
    """
    The status of a deployment; what was published is known once it is.

    The ``status`` of one that has failed is the HTTP status that a client got who waited for it.
    """
    record: dict[str, Any] = {
        "deployment_id": deployment.uid,
        "name": deployment.name,
        "state": deployment.state.value,
        "publishing_type": publishing_type(deployment),
        "user": deployment.actor,
        "size": deployment.size,
        "created_at": _time(deployment.created_ms),
        "updated_at": _time(deployment.touched_ms),
        "errors": dict(deployment.errors),
    }
    if deployment.state is DeploymentState.FAILED:
        record["status"] = deployment.meta.get("status", 409)
    if deployment.state is DeploymentState.PUBLISHED:
        record |= {
            "components": deployment.meta.get("components", []),
            "component_count": deployment.meta.get("component_count", 0),
            "file_count": deployment.meta.get("file_count", 0),
        }
    return record


def portal_record(deployment: Deployment) -> dict[str, Any]:
    """The same in the form of the public portal's publisher API."""
    return {
        "deploymentId": deployment.uid,
        "deploymentName": deployment.name,
        "deploymentState": deployment.state.value,
        "purls": [
            f"pkg:maven/{each['group_id']}/{each['artifact_id']}@{each['version']}"
            for each in deployment.meta.get("components", ())
        ],
        "errors": dict(deployment.errors),
    }


def publishing_type(deployment: Deployment) -> str:
    """How it is published."""
    return "AUTOMATIC" if deployment.automatic else "USER_MANAGED"


def failure_text(deployment: Deployment) -> str:
    """All errors of a deployment, a line each."""
    lines = [f"{path}: {text}" if path else text for path, texts in deployment.errors.items() for text in texts]
    return "\n".join(lines) + "\n"


def failure_sentence(deployment: Deployment) -> str:
    """The first error of a deployment."""
    return first_sentence(deployment.errors) or "the deployment failed"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
