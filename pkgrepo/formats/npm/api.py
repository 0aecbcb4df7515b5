"""What is below ``/-/``: everything that is not a package or a file."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.errors import NotFound
from pkgrepo.formats.npm.audit.requests import AdvisoryShelf, Auditing
from pkgrepo.formats.npm.change.access import Sharing
from pkgrepo.formats.npm.change.owners import People
from pkgrepo.formats.npm.change.requests import Changing
from pkgrepo.formats.npm.login.accounts import OwnAccount
from pkgrepo.formats.npm.login.tokens import OwnTokens
from pkgrepo.formats.npm.login.web_login import WebLogin
from pkgrepo.formats.npm.packument.reading import Reading
from pkgrepo.formats.npm.search.requests import Searching
from pkgrepo.formats.npm.signing.keys import find_public_key
from pkgrepo.formats.npm.signing.signatures import keys_document
from pkgrepo.gateway.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository

from .admission import admit_auditor, admit_change, admit_reader
from .paths import split_name

NO_STORE = (b"Cache-Control", b"no-store")
NO_TEAMS = "this registry has no organisations and teams: permissions are given for its repositories"
USER = "user:"  # behind the name of a database: ``org.couchdb.user:alice``


class Api:
    """The requests below ``/-/`` of one repository."""

    def __init__(
        self,
        services: Services,
        repository: Repository,
        reading: Reading,
        changing: Changing,
        shelf: AdvisoryShelf,
    ) -> None:
        self._services = services
        self._repository = repository
        self._reading = reading
        self._changing = changing
        self._account = OwnAccount(services, repository)
        self._web = WebLogin(services, repository, self._account)
        self._searching = Searching(services, repository)
        self._sharing = Sharing(services, repository, reading)
        self._people = People(services, repository, reading)
        self._auditing = Auditing(services, shelf)

    async def answer(self, request: Request, parts: Sequence[str]) -> Answer:  # noqa: C901, PLR0911 - a table
        """The answer to a request for these decoded parts of a path."""
        verb = "GET" if request.method == b"HEAD" else request.method.decode("ascii")
        match [verb, *parts]:
            case ["GET", "ping"]:
                return json_answer({}, headers=(NO_STORE,))
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
                return await self._searching.search(request, self._reading.address(request))
            case ["GET", "all"] | ["GET", "all", "since"]:
                return await self._searching.listing(request)
            case ["GET", "_view", "starredByUser"]:
                return await self._searching.starred(request)
            case ["GET", "-", "package"]:  # pnpm 12 asks so for its own
                return await self._searching.of_caller(request)
            case ["GET", "org", scope, "package"]:
                return await self._searching.of_scope(request, scope)
            case [_, "org" | "team", *_]:
                raise Refusal(400, NO_TEAMS, "no_teams")  # npm puts guesses of its own beside a 403 or 404
        raise _nothing()

    async def _package(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        found = split_name(parts)
        if found is None:
            raise NotFound("package", "/".join(parts))
        name, rest = found
        match [verb, *rest]:
            case ["GET", "dist-tags"]:
                await admit_reader(self._services, request, self._repository, name)
                return self._reading.dist_tags(name)
            case ["PUT" | "POST", "dist-tags", tag]:
                identity = await self._admit(request, name, "change the tags of")
                return await self._changing.set_tag(request, name, tag, actor_of(request, identity))
            case ["DELETE", "dist-tags", tag]:
                identity = await self._admit(request, name, "change the tags of")
                return await self._changing.unset_tag(name, tag, actor_of(request, identity))
            case ["GET", "visibility" | "access" | "collaborators" as what]:
                await admit_reader(self._services, request, self._repository, name)
                return await self._sharing.tell(request, name, what)
            case ["PUT", "owners"]:
                return await self._people.add_owner(request, name)
            case ["DELETE", "owners", username]:
                return await self._people.remove_owner(request, name, username)
            case ["POST", "access"]:
                await self._admit(request, name, "change the access of")
                return await self._sharing.set_access(request, name)
        raise _nothing()

    async def _admit(self, request: Request, name: str, verb: str) -> Identity:
        return await admit_change(self._services, request, self._repository, Action.WRITE, name, verb)

    async def _user(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        match [verb, *parts]:
            case ["DELETE", "token", text]:
                return await self._tokens(request).logout(request, text)
            case ["PUT" | "DELETE", "v1", "star"]:
                return await self._people.star(request, given=verb == "PUT")
            case ["GET", "v1", "star"]:
                return await self._searching.stars_of_caller(request)
            case ["GET", username, "stars"]:
                return await self._searching.stars(request, username)
            case ["GET", username, "package"]:
                return await self._searching.of_user(request, username)
            case ["GET" | "PUT", document, *revision] if USER in document and revision[:1] in ([], ["-rev"]):
                username = document.partition(USER)[2]
                if verb == "GET":
                    return await self._account.document(request, username)
                return await self._account.login(request, username)
        raise _nothing()

    async def _npm(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:  # noqa: PLR0911 - a table
        match [verb, *parts]:
            case ["GET", "keys"]:
                return self._keys()
            case ["GET", "attestations", *rest]:
                return await self._attestations(request, "/".join(rest))
            case ["GET", "user"]:
                return await self._account.profile(request)
            case ["POST", "user"]:
                return await self._account.change_profile(request)
            case ["GET", "tokens"]:
                return await self._tokens(request).page(request)
            case ["POST", "tokens"]:
                return await self._tokens(request).create(request)
            case ["DELETE", "tokens", "token", key]:
                return await self._tokens(request).revoke(request, key)
            case ["POST", "security", "advisories", "bulk"]:
                await admit_auditor(self._services, request, self._repository)
                return await self._auditing.bulk(request)
            case ["POST", "security", "audits"] | ["POST", "security", "audits", "quick"]:
                await admit_auditor(self._services, request, self._repository)
                return await self._auditing.quick(request)
        raise _nothing()

    async def _login(self, request: Request, verb: str, step: str) -> Answer:
        """The web login; a session in the query tells the person's page from the client's first request."""
        match verb, step, b"session" in request.args:
            case "POST", "login", False:
                return await self._web.begin(self._reading.address(request))
            case "POST", "login", True:
                return await self._web.approve(request)
            case "GET", "login", True:
                return await self._web.form(request)
            case "GET", "done", True:
                return await self._web.poll(request)
        raise _nothing()

    async def _attestations(self, request: Request, spec: str) -> Answer:
        """``<name>@<version>``; a scope has an ``@`` of its own."""
        name, _, version = spec.rpartition("@")
        await admit_reader(self._services, request, self._repository, name)
        return await self._reading.attestations(name, version)

    def _keys(self) -> Answer:
        key = self._services.catalog.look_inline(find_public_key)
        if key is None:
            raise Refusal(404, "nothing was signed here yet", "no_keys")
        return json_answer(keys_document([key]), headers=((b"Cache-Control", b"no-cache"),))

    def _tokens(self, request: Request) -> OwnTokens:
        return OwnTokens(self._services, self._account, f"{self._reading.address(request)}/-/npm/v1/tokens")


def _nothing() -> Refusal:
    return Refusal(404, "this registry has nothing at this address", "no_such_address")
