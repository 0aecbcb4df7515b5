"""
The path table of an npm repository: which method of which inner room answers a request.

Scoped names arrive with their slash encoded, and a router would decode it. One catch-all route therefore reads the raw
path (see ``paths``). The tables below map what that names to methods; each method authorizes its own caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve
from twisted.web.resource import IResource

from pkgrepo.errors import existing
from pkgrepo.formats.npm.audit.export import AdvisoryCache
from pkgrepo.formats.npm.audit.requests import AuditRequests
from pkgrepo.formats.npm.change.requests import AccessRequests, ChangeRequests, OwnerRequests
from pkgrepo.formats.npm.change.target import ChangeTarget
from pkgrepo.formats.npm.login.accounts import AccountRequests
from pkgrepo.formats.npm.login.tokens import TokenRequests
from pkgrepo.formats.npm.login.web_login import WebLoginRequests
from pkgrepo.formats.npm.packument.requests import PackageRequests
from pkgrepo.formats.npm.proxied.signature_requests import SignatureRequests
from pkgrepo.formats.npm.search.merged_requests import MergedSearchRequests
from pkgrepo.formats.npm.search.requests import SearchRequests
from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.new_names import publishing_through
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import misplaced_upload
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType

from .document_requests import DocumentRequests
from .paths import ApiPath, PackagePath, Path, RootPath, TarballPath, VersionPath, read_path, split_name
from .refusals import ERRORS, REGISTRY

METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"]
READS = frozenset({b"GET", b"HEAD"})
NO_TEAMS = "this registry has no organisations and teams: permissions are given for its repositories"
USER = "user:"  # behind the name of a database: ``org.couchdb.user:alice``

Handler = Callable[[Request, Any], Awaitable[Answer]]

app = new_app()


class NpmSite:
    """One npm repository as a Klein application."""

    app = app

    def __init__(
        self, services: Services, repository: Repository, packuments: SplicedDocuments, advisories: AdvisoryCache
    ) -> None:
        self._services = services
        self._repository = repository
        self._packuments = packuments
        self._advisories = advisories
        self._target = ChangeTarget(services, repository)
        self._packages = PackageRequests(services, repository, packuments)
        self._changes = ChangeRequests(services, repository)
        self._access = AccessRequests(services, repository, self._packages)
        self._owners = OwnerRequests(services, repository, self._packages)
        hosted = repository.type is RepositoryType.HOSTED
        self._search = (SearchRequests if hosted else MergedSearchRequests)(services, repository)
        self._signatures = SignatureRequests(services, repository)
        self._audit = AuditRequests(services, repository, advisories)
        self._account = AccountRequests(services, repository)
        self._tokens = TokenRequests(services, repository, self._account)
        self._web_login = WebLoginRequests(services, repository, self._account)
        documents = DocumentRequests(services, repository, self._packages, self._changes)
        self._handlers: dict[tuple[str, type], Handler] = {
            ("GET", RootPath): self._packages.info,
            ("GET", PackagePath): self._packages.packument,
            ("GET", VersionPath): self._packages.version,
            ("GET", TarballPath): self._packages.tarball,
            ("PUT", RootPath): documents.put,
            ("PUT", PackagePath): documents.put,
            ("PUT", VersionPath): documents.put,
            ("DELETE", PackagePath): self._remove_package,
            ("DELETE", TarballPath): self._changes.remove_version,
        }

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<path:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - it is decoded; the raw path is read
        """Answer any request to the repository."""
        request.repository = self._repository.path
        found = read_path(self._raw_path(request))
        if not found:
            status = 404 if request.method in READS else 400
            refusal = Refusal(status, "no package, version or file can be called so", "invalid_path")
            raise misplaced_upload(self._services.base_url(request), request, refusal, REGISTRY)
        verb = "GET" if request.method in READS else request.method.decode("ascii")
        path = await self._choose(request, found)
        if verb == "GET" or not _names_package(path):
            return await self._answer(request, verb, path)
        target = await self._target.find(request)
        site = self if target is self._repository else self._site_of(request, target)
        answer = await site._answer(request, verb, path)  # noqa: SLF001 - of another instance
        notices = tuple((b"npm-notice", each.encode("ascii", "replace")) for each in request.notes)
        return evolve(answer, headers=(*answer.headers, *notices)) if notices else answer

    def _raw_path(self, request: Request) -> bytes:
        """The raw path below this repository."""
        path = below(request.raw_path)
        if request.method != b"DELETE":
            return path
        # To unpublish a version, npm 6 and 7 put the whole path of the tarball's address behind the repository's own.
        own = urlsplit(self._packages.address(request)).path.strip("/")
        return path.removeprefix(f"{own}/".encode())

    async def _answer(self, request: Request, verb: str, path: Path) -> Answer:
        if isinstance(path, ApiPath):
            return await self._api(request, verb, path.parts)
        handler = self._handlers.get((verb, type(path)))
        if handler is None:
            raise misplaced_upload(self._services.base_url(request), request, self._not_allowed(path), REGISTRY)
        return await handler(request, path)

    def _nothing(self, request: Request) -> Refusal:
        refusal = Refusal(404, "this registry has nothing at this address", "no_such_address")
        return misplaced_upload(self._services.base_url(request), request, refusal, REGISTRY)

    def _site_of(self, request: Request, target: Repository) -> NpmSite:
        services = publishing_through(self._services, request, self._repository)
        return NpmSite(services, target, self._packuments, self._advisories)

    async def _choose(self, request: Request, found: Sequence[Path]) -> Path:
        """The first meaning of an ambiguous path that exists; the first of all when none exists."""
        if len(found) > 1:
            for path in found:
                if isinstance(path, (ApiPath, RootPath)) or await self._packages.exists(request, path):
                    return path
        return found[0]

    def _not_allowed(self, path: Path, why: str = "this address does not take this method") -> Refusal:
        """A 405 that lists the allowed methods (RFC 9110 section 15.5.6)."""
        verbs = [verb for verb, kind in self._handlers if isinstance(path, kind)]
        allowed = ", ".join(["GET", "HEAD", *verbs[1:]]).encode("ascii")
        return Refusal(405, why, "method_not_allowed", headers=((b"Allow", allowed),))

    async def _remove_package(self, request: Request, path: PackagePath) -> Answer:
        if not path.revision:
            raise self._not_allowed(path, "a package is removed at a revision of it: DELETE .../-rev/<rev>")
        return await self._changes.remove_package(request, path)

    # Below ``/-/``, by decoded parts of the path

    async def _api(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: C901, PLR0911 - a table
        match [verb, *parts]:
            case ["GET", "ping"]:
                return json_answer({}, headers=NO_STORE)
            case ["GET", "whoami"]:
                return await self._account.whoami(request)
            case [_, "package", *rest]:
                return await self._package(request, verb, rest)
            case [_, "user", *rest]:
                return await self._user(request, verb, rest)
            case [_, "npm", "v1", *rest]:
                return await self._npm(request, verb, rest)
            case [_, "v1", "login" | "done" as step]:
                return await self._login(request, verb, step)
            case ["GET", "v1", "search"]:
                return await self._search.search(request, self._packages.address(request))
            case ["GET", "all"] | ["GET", "all", "since"]:
                return await self._search.listing(request)
            case ["GET", "_view", "starredByUser"]:
                return await self._search.starred(request)
            case ["GET", "-", "package"]:  # pnpm 12 asks so for the packages of its own user
                return await self._search.of_caller(request)
            case ["GET", "org", scope, "package"]:
                return await self._search.of_scope(request, scope)
            case [_, "org" | "team", *_]:
                raise Refusal(400, NO_TEAMS, "no_teams")  # npm puts guesses of its own beside a 403 or 404
        raise self._nothing(request)

    async def _package(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        found = existing(split_name(parts), "package", "/".join(parts))
        name, rest = found
        match [verb, *rest]:
            case ["GET", "dist-tags"]:
                return await self._packages.dist_tags(request, name)
            case ["PUT" | "POST", "dist-tags", tag]:
                return await self._changes.set_tag(request, name, tag)
            case ["DELETE", "dist-tags", tag]:
                return await self._changes.unset_tag(request, name, tag)
            case ["GET", "visibility" | "access" | "collaborators" as what]:
                return await self._access.show(request, name, what)
            case ["PUT", "owners"]:
                return await self._owners.add_owner(request, name)
            case ["DELETE", "owners", username]:
                return await self._owners.remove_owner(request, name, username)
            case ["POST", "access"]:
                return await self._access.set_access(request, name)
        raise self._nothing(request)

    async def _user(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        match [verb, *parts]:
            case ["DELETE", "token", text]:
                return await self._tokens.logout(request, text)
            case ["PUT" | "DELETE", "v1", "star"]:
                return await self._owners.star(request, given=verb == "PUT")
            case ["GET", "v1", "star"]:
                return await self._search.stars_of_caller(request)
            case ["GET", username, "stars"]:
                return await self._search.stars(request, username)
            case ["GET", username, "package"]:
                return await self._search.of_user(request, username)
            case ["GET" | "PUT", document, *revision] if USER in document and revision[:1] in ([], ["-rev"]):
                username = document.partition(USER)[2]
                if verb == "GET":
                    return await self._account.document(request, username)
                return await self._account.login(request, username)
        raise self._nothing(request)

    async def _npm(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        match [verb, *parts]:
            case ["GET", "keys"]:
                return await self._signatures.keys(request)
            case ["GET", "attestations", *rest]:
                name, _, version = "/".join(rest).rpartition("@")  # the last one: a scope has an "@" of its own
                return await self._signatures.attestations(request, name, version)
            case ["GET", "user"]:
                return await self._account.profile(request)
            case ["POST", "user"]:
                return await self._account.change_profile(request)
            case ["GET", "tokens"]:
                return await self._tokens.page(request, f"{self._packages.address(request)}/-/npm/v1/tokens")
            case ["POST", "tokens"]:
                return await self._tokens.create(request)
            case ["DELETE", "tokens", "token", key]:
                return await self._tokens.revoke(request, key)
            case ["POST", "security", "advisories", "bulk"]:
                return await self._audit.bulk(request)
            case ["POST", "security", "audits"] | ["POST", "security", "audits", "quick"]:
                return await self._audit.quick(request)
        raise self._nothing(request)

    async def _login(self, request: Request, verb: str, step: str) -> Answer:
        """The web login. A session in the query tells the user's page from the client's first request."""
        match verb, step, b"session" in request.args:
            case "POST", "login", False:
                return await self._web_login.begin(self._packages.address(request))
            case "POST", "login", True:
                return await self._web_login.approve(request)
            case "GET", "login", True:
                return await self._web_login.form(request)
            case "GET", "done", True:
                return await self._web_login.poll(request)
        raise self._nothing(request)


refuse_unrouted(NpmSite.app, ERRORS)


def _names_package(path: Path) -> bool:
    """Whether a path is about packages, and not about users, their tokens or audits."""
    return not isinstance(path, ApiPath) or path.parts[:1] == ("package",) or path.parts[:3] == ("user", "v1", "star")
