"""
The paths of a Python repository.

``pypi`` and ``pkgindex`` are synonyms, and so are ``pypi-data`` and ``pkgindex-data``. Fixed words win over project
names: a project called ``simple`` is found at ``/simple/simple/``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import HTTPException

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.python.index.requests import IndexCaches, IndexRequests
from pkgrepo.formats.python.proxied.document_requests import ProjectDocuments
from pkgrepo.formats.python.upload.form import TEXT_BUDGET, Distribution, receive_form
from pkgrepo.formats.python.upload.release import Uploads
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.new_names import publishing_through
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import UPLOADS, check_declared_length, misplaced_upload, receive_body
from pkgrepo.http.answering.dispatch import answering, refusal_of
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target

from .change_requests import ChangeRequests
from .names import FileName, normalise, parse_upload, parse_version
from .refusals import ERRORS

T = TypeVar("T", bound=Callable[..., Any])

GET = ["GET", "HEAD"]
FORM_OVERHEAD = TEXT_BUDGET + 2 * 1024 * 1024  # bytes that a form may have besides its file

SEARCH_FAULT = (
    "<?xml version='1.0'?><methodResponse><fault><value><struct>"
    "<member><name>faultCode</name><value><int>-32500</int></value></member>"
    "<member><name>faultString</name><value><string>search is not supported here; open {url} in a browser or use "
    "the management API</string></value></member></struct></value></fault></methodResponse>"
)


app = new_app()


def index_route(path: str, methods: list[str]) -> Callable[[T], T]:
    """A route below both ``/pypi`` and ``/pkgindex``."""

    def decorate(handler: T) -> T:
        for word in ("pypi", "pkgindex"):
            app.route(f"/{word}{path}", methods=methods)(handler)
        return handler

    return decorate


def _by_target(handler: T) -> T:
    """A handler of a change: it is called on the site of the repository that takes changes."""

    @wraps(handler)
    async def run(site: PythonSite, request: Request, **arguments: str) -> Answer:
        answer: Answer = await handler(await site.target(request), request, **arguments)
        return answer

    return cast("T", run)


class PythonSite:
    """
    One Python repository as a Klein application.

    Changes go to the site of the repository that takes them, which checks the permissions of the caller.
    """

    app = app

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches
        self._index = IndexRequests(services, repository, caches)
        self._documents = ProjectDocuments(services, repository)
        self._uploads = Uploads(services, repository)
        self._changes = ChangeRequests(services, repository)

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    # Reading

    @app.route("/", methods=GET)
    @answering(ERRORS)
    async def info(self, request: Request) -> Answer:
        """Repository info."""
        await self._admit(request, Action.READ)
        return await self._index.info(request)

    @app.route("/simple/", methods=GET)
    @app.route("/+simple/", methods=GET)
    @app.route("/legacy/+simple/", methods=GET)
    @answering(ERRORS)
    async def project_list(self, request: Request) -> Answer:
        """The simple index's root (PEP 503, PEP 691)."""
        await self._admit(request, Action.READ)
        if not request.raw_path.endswith(b"/"):
            return _moved(request, request.raw_path.rsplit(b"/", 1)[-1] + b"/")
        return await self._index.project_list(request)

    @app.route("/simple/<project>/", methods=GET)
    @app.route("/+simple/<project>/", methods=GET)
    @app.route("/legacy/+simple/<project>/", methods=GET)
    @answering(ERRORS)
    async def project_page(self, request: Request, project: str) -> Answer:
        """A project's page; other spellings of its name, or a missing slash, get one redirect."""
        key = _project_key(project)
        await self._admit(request, Action.READ, key)
        slash = request.raw_path.endswith(b"/")
        if project != key or not slash:
            return _moved(request, (b"../" if slash else b"") + key.encode("ascii") + b"/")
        return await self._index.page(request, key)

    @app.route("/packages/<project>/<version>/<filename>", methods=GET)
    @app.route("/<project>/<version>/<filename>", methods=GET)
    @answering(ERRORS)
    async def file(self, request: Request, project: str, version: str, filename: str) -> Answer:
        """A distribution, its metadata (PEP 658), signature or provenance (PEP 740)."""
        key = _project_key(project)
        identity = await self._admit(request, Action.READ, key)
        return await self._index.file(request, identity, key, version, filename)

    @app.route("/packages/<filename>", methods=GET)
    @answering(ERRORS)
    async def file_by_name(self, request: Request, filename: str) -> Answer:
        """A file by its name alone."""
        identity = await self._admit(request, Action.READ, self._index.project_of(filename))
        return await self._index.file_at(request, identity, await self._index.find_path(filename))

    @app.route("/simple/<project>/<filename>", methods=GET)
    @answering(ERRORS)
    async def file_beside_page(self, request: Request, project: str, filename: str) -> Answer:
        """A file below its project's page."""
        key = _project_key(project)
        identity = await self._admit(request, Action.READ, key)
        return await self._index.file_at(request, identity, await self._index.find_path(filename, key))

    @app.route("/integrity/<project>/<version>/<filename>/provenance", methods=GET)
    @answering(ERRORS)
    async def provenance(self, request: Request, project: str, version: str, filename: str) -> Answer:
        """The provenance of a distribution (PEP 740)."""
        key = _project_key(project)
        identity = await self._admit(request, Action.READ, key)
        return await self._index.file(request, identity, key, version, f"{filename}.provenance")

    @index_route("/<project>/json", GET)
    @answering(ERRORS)
    async def project_json(self, request: Request, project: str) -> Answer:
        """JSON metadata of a project."""
        return await self._project_json(request, project, None, simple=False)

    @index_route("/<project>/<version>/json", GET)
    @answering(ERRORS)
    async def version_json(self, request: Request, project: str, version: str) -> Answer:
        """JSON metadata of one version."""
        return await self._project_json(request, project, version, simple=False)

    @app.route("/pypi-data/<project>/json", methods=GET)
    @app.route("/pkgindex-data/<project>/json", methods=GET)
    @answering(ERRORS)
    async def project_data(self, request: Request, project: str) -> Answer:
        """JSON metadata of a project with the files of its simple page."""
        return await self._project_json(request, project, None, simple=True)

    @index_route("/<project>/<version>/", GET)
    @answering(ERRORS)
    async def file_of_version(self, request: Request, project: str, version: str) -> Answer:
        """The preferred file of a version; ``filename`` and ``packagetype`` narrow the choice."""
        key = _project_key(project)
        identity = await self._admit(request, Action.READ, key)
        return await self._index.file_of_version(
            request,
            identity,
            key,
            version,
            filename=_filename_parameter(request),
            packagetype=request.parameter(b"packagetype"),
        )

    async def _project_json(self, request: Request, project: str, version: str | None, *, simple: bool) -> Answer:
        key = _project_key(project)
        await self._admit(request, Action.READ, key)
        try:
            if self._repository.type is RepositoryType.HOSTED:
                return await self._index.project_document(request, key, version, simple=simple)
            address = self._services.repository_url(request, self._repository)
            document = await self._documents.get(key, version, address, simple=simple)
            return self._index.metadata_answer(request, document)
        except NotFound:
            return json_answer({"message": "Not Found"}, 404, headers=NO_STORE)

    # Uploading

    @app.route("/", methods=["POST"])
    @app.route("/legacy/", methods=["POST"])
    @answering(ERRORS)
    @_by_target
    async def upload(self, request: Request) -> Answer:
        """The legacy upload form."""
        return await self._upload_form(request, None)

    @index_route("/<project>/upload/", ["POST"])
    @answering(ERRORS)
    @_by_target
    async def upload_to(self, request: Request, project: str) -> Answer:
        """The legacy upload form, at a project's address."""
        return await self._upload_form(request, _project_key(project))

    @app.route("/<project>/<version>/<filename>", methods=["PUT", "POST"])
    @app.route("/packages/<project>/<version>/<filename>", methods=["PUT", "POST"])
    @answering(ERRORS)
    @_by_target
    async def upload_raw(self, request: Request, project: str, version: str, filename: str) -> Answer:
        """A distribution as the whole body."""
        key = _project_key(project)
        identity = await self._admit(request, Action.WRITE, key)
        try:
            name = parse_upload(filename, project=project, strict=self._uploads.strict)
        except Invalid as error:
            if _media_type(request) != "multipart/form-data":
                raise
            # A form at an address such as ``api/v1/upload``.
            raise self._misplaced(request, Refusal(400, str(error), "invalid")) from None
        _check_address(name, key, version)
        check_declared_length(request, self._services.max_upload)
        async with self._services.publisher.stage(self._repository) as staged:
            blob = await receive_body(request, staged, limit=self._services.max_upload)
            identity = await self._admit(request, Action.WRITE, key)  # again: the body may have taken hours
            published = await self._uploads.accept(
                staged,
                Distribution(filename=name, blob=blob),
                actor_of(request, identity),
                may_overwrite=await self._may(identity, Action.OVERWRITE, key),
            )
        return text_answer("stored\n" if published.changed else "unchanged\n", 201 if published.changed else 200)

    async def _upload_form(self, request: Request, project: str | None) -> Answer:
        identity = await self._admit(request, Action.WRITE, project)
        check_declared_length(request, self._services.max_upload + FORM_OVERHEAD)

        async def admit(key: str) -> None:
            if project is not None and key != project:
                raise Invalid(f"this is not a file of project {project}", "name")
            await self._services.access.require(identity, Action.WRITE, self._repository, key)

        async with self._services.publisher.stage(self._repository) as staged:
            upload = await receive_form(
                self._services, staged, request, project=project, strict=self._uploads.strict, admit=admit
            )
            key = upload.filename.project_key
            identity = await self._admit(request, Action.WRITE, key)  # again: the body may have taken hours
            await self._uploads.accept(
                staged,
                upload,
                actor_of(request, identity),
                may_overwrite=await self._may(identity, Action.OVERWRITE, key),
            )
        return text_answer("", 200)

    @app.route("/simple/", methods=["POST", "PUT"])
    @app.route("/simple/<project>/", methods=["POST", "PUT"])
    @app.route("/+simple/", methods=["POST", "PUT"])
    @app.route("/+simple/<project>/", methods=["POST", "PUT"])
    @app.route("/legacy/+simple/", methods=["POST", "PUT"])
    @answering(ERRORS)
    @_by_target
    async def upload_to_index(self, request: Request, **_: str) -> Answer:
        """A common mistake: uploading to the index address that installers use."""
        await self._admit(request, Action.WRITE)
        headers = ((b"Allow", b"GET, HEAD"),)
        refusal = Refusal(405, "installers read this address", "method_not_allowed", headers=headers)
        raise self._misplaced(request, refusal)

    # Changing what was published

    @index_route("/<project>/<version>/yank", ["POST"])
    @answering(ERRORS)
    @_by_target
    async def yank(self, request: Request, project: str, version: str) -> Answer:
        """Yank a version (PEP 592); ``reason`` comes as form or query parameter, or as JSON."""
        identity, key = await self._admit_change(request, project)
        reason = await self._changes.read_reason(request)
        return await self._changes.yank(key, _version_key(version), reason, actor_of(request, identity))

    @index_route("/<project>/<version>/unyank", ["POST"])
    @answering(ERRORS)
    @_by_target
    async def unyank(self, request: Request, project: str, version: str) -> Answer:
        """Restore a yanked version."""
        identity, key = await self._admit_change(request, project)
        return await self._changes.unyank(key, _version_key(version), actor_of(request, identity))

    @app.route("/packages/<project>/<version>/<filename>", methods=["DELETE"])
    @answering(ERRORS)
    @_by_target
    async def delete_file(self, request: Request, project: str, version: str, filename: str) -> Answer:
        """Remove one distribution with its companions."""
        identity, key = await self._admit_change(request, project)
        path = await self._index.find_path(filename, key)
        return await self._changes.delete(key, _version_key(version), path, actor_of(request, identity))

    @index_route("/<project>/<version>/", ["DELETE"])
    @answering(ERRORS)
    @_by_target
    async def delete_version(self, request: Request, project: str, version: str) -> Answer:
        """Remove a version with all its files."""
        identity, key = await self._admit_change(request, project)
        return await self._changes.delete(key, _version_key(version), None, actor_of(request, identity))

    @index_route("/<project>/status", ["PUT"])
    @answering(ERRORS)
    @_by_target
    async def status(self, request: Request, project: str) -> Answer:
        """Set a project's status (PEP 792)."""
        key = _project_key(project)
        identity = await self._admit(request, Action.EDIT, key)
        return await self._changes.set_status(request, key, actor_of(request, identity))

    @index_route("/", ["POST"])
    @answering(ERRORS)
    async def search_or_upload(self, request: Request) -> Answer:
        """
        The XML-RPC search of old pip: answered with a fault, whose text pip prints.

        Anything else is the legacy upload form: other registries take it here, and twine takes any 200 for success.
        """
        if _media_type(request) not in ("text/xml", "application/xml"):
            site = await self.target(request)
            return await site._upload_form(request, None)  # noqa: SLF001 - of another instance
        await self._admit(request, Action.READ)
        url = f"{self._services.repository_url(request, self._repository)}/simple/"
        return text_answer(SEARCH_FAULT.format(url=url), content_type=b"text/xml; charset=utf-8")

    # Shared

    @answering(ERRORS)
    async def unrouted(self, request: Request, failure: Failure) -> Answer:
        """What no route takes. :raises ReadOnly: it is an upload, and there is no repository to take it"""
        if request.method in UPLOADS:
            await self.target(request)
        raise self._misplaced(request, refusal_of(cast("HTTPException", failure.value), request))

    def _misplaced(self, request: Request, refusal: Refusal) -> Refusal:
        return misplaced_upload(self._services.base_url(request), request, refusal, "upload to {}/legacy/")

    async def target(self, request: Request) -> PythonSite:
        """
        The site of the hosted repository that takes changes.

        :raises ReadOnly: no member takes publishes; only callers who may read this repository are told so
        """
        if self._repository.type is RepositoryType.HOSTED:
            return self
        await self._admit(request, Action.READ)
        target = publish_target(self._services.registry, self._repository)
        return PythonSite(publishing_through(self._services, request, self._repository), target, self._caches)

    async def _admit(self, request: Request, action: Action, package: str | None = None) -> Identity:
        return await self._services.access.admit(request, action, self._repository, package)

    async def _admit_change(self, request: Request, project: str) -> tuple[Identity, str]:
        key = _project_key(project)
        return await self._admit(request, Action.DELETE, key), key

    async def _may(self, identity: Identity, action: Action, package: str) -> bool:
        return await self._services.access.may(identity, action, self._repository, package)


_handle: Any = PythonSite.app.handle_errors(HTTPException)
_handle(PythonSite.unrouted)


def _media_type(request: Request) -> str:
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower().decode("latin-1")


def _project_key(project: str) -> str:
    try:
        return normalise(project)
    except Invalid:
        raise NotFound("project", project) from None


def _version_key(version: str) -> str:
    return parse_version(version)[0]


def _check_address(name: FileName, project_key: str, version: str) -> None:
    if name.project_key != project_key:
        raise Invalid(f"{name.filename} does not belong to project {project_key}", "name")
    if name.version_key != _version_key(version):
        raise Invalid(f"{name.filename} does not belong to version {version}", "version")


def _moved(request: Request, location: bytes) -> Answer:
    """A redirect; relative, so that it is right behind a reverse proxy that strips a prefix."""
    if request.raw_query:
        location += b"?" + request.raw_query
    return Answer(301, headers=((b"Location", location), (b"Cache-Control", b"no-cache")))


def _filename_parameter(request: Request) -> str | None:
    """The ``filename``. An unescaped ``+`` of a local version decodes to a blank, which no file name has."""
    filename = request.parameter(b"filename")
    return None if filename is None else filename.replace(" ", "+")
