"""
The path table of an npm repository: which handler of which inner room answers a request.

Scoped names arrive with their slash encoded, so ``paths`` reads the raw path. The tables below map what that names to
handlers; each handler authorizes its own caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

from attrs import evolve

from pkgrepo.errors import existing
from pkgrepo.formats.npm import staging, trust
from pkgrepo.formats.npm.audit.requests import bulk, quick
from pkgrepo.formats.npm.change.requests import (
    add_owner,
    remove_owner,
    remove_package,
    remove_version,
    set_access,
    set_tag,
    show_access,
    star,
    unset_tag,
)
from pkgrepo.formats.npm.login.accounts import change_profile, login, profile, user_document, whoami
from pkgrepo.formats.npm.login.tokens import create_token, list_tokens, logout, revoke_token
from pkgrepo.formats.npm.login.web_login import approve_login, begin_login, login_form, poll_login
from pkgrepo.formats.npm.packument.requests import Caches, dist_tags, exists, info, packument, tarball, version
from pkgrepo.formats.npm.proxied.signature_requests import attestations, keys
from pkgrepo.formats.npm.search.merged_requests import search
from pkgrepo.formats.npm.search.requests import (
    listing,
    of_caller,
    of_scope,
    of_user,
    starred,
    stars,
    stars_of_caller,
)
from pkgrepo.formats.npm.token_exchange import answer_exchange
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import Extent, RepositoryType

from .authorization import authorize_read
from .document_requests import put_document
from .paths import ApiPath, PackagePath, Path, RootPath, TarballPath, VersionPath, read_path, split_name
from .refusals import ERRORS, REGISTRY

READS = frozenset({b"GET", b"HEAD"})
NO_TEAMS = "this registry has no organisations and teams: permissions are given for its repositories"
USER = "user:"  # behind the name of a database: ``org.couchdb.user:alice``

Handler = Callable[..., Awaitable[Response]]  # of the context, the request and what its path means


async def remove(context: Context[Caches], request: Request, path: PackagePath) -> Response:
    """Remove a package, at the revision in its address."""
    if not path.revision:
        raise _not_allowed(path, "a package is removed at a revision of it: DELETE .../-rev/<rev>")
    return await remove_package(context, request, path)


HANDLERS: Mapping[tuple[str, type], Handler] = {
    ("GET", RootPath): info,
    ("GET", PackagePath): packument,
    ("GET", VersionPath): version,
    ("GET", TarballPath): tarball,
    ("PUT", RootPath): put_document,
    ("PUT", PackagePath): put_document,
    ("PUT", VersionPath): put_document,
    ("DELETE", PackagePath): remove,
    ("DELETE", TarballPath): remove_version,
}


async def _read(context: Context[Caches], request: Request, rest: bytes) -> Path:
    """What a path means. :raises Refusal: nothing"""
    if request.method == b"DELETE":
        # To unpublish a version, npm 6 and 7 put the whole path of the tarball's address behind the repository's own.
        own = urlsplit(context.url(request)).path.strip("/")
        rest = rest.removeprefix(f"{own}/".encode())
    found = read_path(rest)
    if not found:
        status = 404 if request.method in READS else 400
        raise _misplaced(
            context, request, Refusal(status, "no package, version or file can be called so", "invalid_path")
        )
    return await _choose(context, request, found)


async def _choose(context: Context[Caches], request: Request, found: Sequence[Path]) -> Path:
    """The first meaning of an ambiguous path that exists; the first of all when none exists."""
    if len(found) > 1:
        for path in found:
            if isinstance(path, (ApiPath, RootPath)) or await exists(context, request, path):
                return path
    return found[0]


def _changes(request: Request, path: Path) -> bool:
    """Whether a request changes packages, and not users, their tokens or audits."""
    if request.method in READS:
        return False
    return not isinstance(path, ApiPath) or path.parts[:1] == ("package",) or path.parts[:3] == ("user", "v1", "star")


async def _target(context: Context[Caches], request: Request, _path: Path) -> Context[Caches]:
    if context.repository.type is not RepositoryType.HOSTED:
        await authorize_read(context, request, Extent.SOME)
    return await publish_context(context, request)


async def _answer(context: Context[Caches], request: Request, path: Path) -> Response:
    response = await _answer_path(context, request, path)
    notices = tuple((b"npm-notice", each.encode("ascii", "replace")) for each in request.notes)
    return evolve(response, headers=(*response.headers, *notices)) if notices else response


async def _answer_path(context: Context[Caches], request: Request, path: Path) -> Response:
    verb = "GET" if request.method in READS else request.method.decode("ascii")
    if isinstance(path, ApiPath):
        return await _api(context, request, verb, path.parts)
    handler = HANDLERS.get((verb, type(path)))
    if handler is None:
        raise _misplaced(context, request, _not_allowed(path))
    return await handler(context, request, path)


def _misplaced(context: Context[Caches], request: Request, refusal: Refusal) -> Refusal:
    return misplaced_upload(context.services.base_url(request), request, refusal, REGISTRY)


def _nothing(context: Context[Caches], request: Request) -> Refusal:
    return _misplaced(context, request, Refusal(404, "this registry has nothing at this address", "no_such_address"))


def _not_allowed(path: Path, why: str = "this address does not take this method") -> Refusal:
    """A 405 that lists the allowed methods (RFC 9110 section 15.5.6)."""
    verbs = [verb for verb, kind in HANDLERS if isinstance(path, kind)]
    allowed = ", ".join(["GET", "HEAD", *verbs[1:]]).encode("ascii")
    return Refusal(405, why, "method_not_allowed", headers=((b"Allow", allowed),))


# Below ``/-/``, by decoded parts of the path


async def _api(context: Context[Caches], request: Request, verb: str, parts: Sequence[str]) -> Response:  # noqa: C901, PLR0911, PLR0912 - a table
    match [verb, *parts]:
        case ["GET", "ping"]:
            return json_response({}, headers=NO_STORE)
        case ["GET", "whoami"]:
            return await whoami(context, request)
        case [_, "package", *rest]:
            return await _package(context, request, verb, rest)
        case [_, "user", *rest]:
            return await _user(context, request, verb, rest)
        case [_, "npm", "v1", *rest]:
            return await _npm(context, request, verb, rest)
        case [_, "v1", "login" | "done" as step]:
            return await _login(context, request, verb, step)
        case ["GET", "v1", "search"]:
            return await search(context, request)
        case ["GET", "all"] | ["GET", "all", "since"]:
            return await listing(context, request, context.caches.listings)
        case ["GET", "_view", "starredByUser"]:
            return await starred(context, request)
        case [_, "stage", *rest]:
            return await _stage(context, request, verb, rest)
        case ["GET", "-", "package"]:  # pnpm 12 asks so for the packages of its own user
            return await of_caller(context, request)
        case ["GET", "org", scope, "package"]:
            return await of_scope(context, request, scope)
        case [_, "org" | "team", *_]:
            raise Refusal(400, NO_TEAMS, "no_teams")  # npm puts guesses of its own beside a 403 or 404
    raise _nothing(context, request)


async def _package(context: Context[Caches], request: Request, verb: str, parts: Sequence[str]) -> Response:  # noqa: PLR0911 - a table
    name, rest = existing(split_name(parts), "package", "/".join(parts))
    match [verb, *rest]:
        case ["GET", "dist-tags"]:
            return await dist_tags(context, request, name)
        case ["PUT" | "POST", "dist-tags", tag]:
            return await set_tag(context, request, name, tag)
        case ["DELETE", "dist-tags", tag]:
            return await unset_tag(context, request, name, tag)
        case ["GET", "visibility" | "access" | "collaborators" as what]:
            return await show_access(context, request, name, what)
        case ["PUT", "owners"]:
            return await add_owner(context, request, name)
        case ["DELETE", "owners", username]:
            return await remove_owner(context, request, name, username)
        case ["POST", "access"]:
            return await set_access(context, request, name)
        case [_, "trust", *rest]:
            return await _trust(context, request, [verb, *rest], name)
    raise _nothing(context, request)


async def _trust(context: Context[Caches], request: Request, parts: Sequence[str], name: str) -> Response:
    match parts:
        case ["GET"]:
            return await trust.list_trust(context, request, name)
        case ["POST"]:
            return await trust.add_trust(context, request, name)
        case ["DELETE", id]:
            return await trust.remove_trust(context, request, name, id)
    raise _nothing(context, request)


async def _stage(context: Context[Caches], request: Request, verb: str, parts: Sequence[str]) -> Response:
    match [verb, *parts]:
        case ["GET"]:
            return await staging.list_stages(context, request)
        case ["POST", "package", *rest]:
            name, more = existing(split_name(rest), "package", "/".join(rest))
            if not more:
                return await staging.stage(context, request, name)
        case ["GET", uid]:
            return await staging.show_stage(context, request, uid)
        case ["DELETE", uid]:
            return await staging.reject(context, request, uid)
        case ["GET", uid, "tarball"]:
            return await staging.stage_tarball(context, request, uid)
        case ["POST", uid, "approve"]:
            return await staging.approve(context, request, uid)
    raise _nothing(context, request)


async def _user(context: Context[Caches], request: Request, verb: str, parts: Sequence[str]) -> Response:
    match [verb, *parts]:
        case ["DELETE", "token", text]:
            return await logout(context, request, text)
        case ["PUT" | "DELETE", "v1", "star"]:
            return await star(context, request, given=verb == "PUT")
        case ["GET", "v1", "star"]:
            return await stars_of_caller(context, request)
        case ["GET", username, "stars"]:
            return await stars(context, request, username)
        case ["GET", username, "package"]:
            return await of_user(context, request, username)
        case ["GET" | "PUT", document, *revision] if USER in document and revision[:1] in ([], ["-rev"]):
            username = document.partition(USER)[2]
            return await (user_document if verb == "GET" else login)(context, request, username)
    raise _nothing(context, request)


async def _npm(context: Context[Caches], request: Request, verb: str, parts: Sequence[str]) -> Response:  # noqa: C901, PLR0911 - a table
    match [verb, *parts]:
        case ["GET", "keys"]:
            return await keys(context, request)
        case ["GET", "attestations", *rest]:
            name, _, version_text = "/".join(rest).rpartition("@")  # the last one: a scope has an "@" of its own
            return await attestations(context, request, name, version_text)
        case ["POST", "oidc", "token", "exchange", "package", *rest]:
            name, _ = existing(split_name(rest), "package", "/".join(rest))
            return await answer_exchange(context, request, name)
        case ["GET", "user"]:
            return await profile(context, request)
        case ["POST", "user"]:
            return await change_profile(context, request)
        case ["GET", "tokens"]:
            return await list_tokens(context, request)
        case ["POST", "tokens"]:
            return await create_token(context, request)
        case ["DELETE", "tokens", "token", key]:
            return await revoke_token(context, request, key)
        case ["POST", "security", "advisories", "bulk"]:
            return await bulk(context, request)
        case ["POST", "security", "audits"] | ["POST", "security", "audits", "quick"]:
            return await quick(context, request)
    raise _nothing(context, request)


async def _login(context: Context[Caches], request: Request, verb: str, step: str) -> Response:
    """The web login. A session in the query tells the user's page from the client's first request."""
    match verb, step, b"session" in request.args:
        case "POST", "login", False:
            return await begin_login(context, request)
        case "POST", "login", True:
            return await approve_login(context, request)
        case "GET", "login", True:
            return await login_form(context, request)
        case "GET", "done", True:
            return await poll_login(context, request)
    raise _nothing(context, request)


ROUTES: Routes[Caches, Path] = Routes(read=_read, answer=_answer, changes=_changes, target=_target, errors=ERRORS)
