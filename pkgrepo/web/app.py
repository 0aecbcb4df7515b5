"""Assembles the console: every page, under one Klein application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote, unquote

from twisted.web.resource import IResource

from pkgrepo.auth.login.sessions import is_csrf
from pkgrepo.errors import AuthenticationRequired
from pkgrepo.gateway.callers.access import Access
from pkgrepo.gateway.callers.session_cookies import session_secret
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.http.answering.dispatch import answer_with, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.management.api.dispatch import Dispatcher, SegmentResource
from pkgrepo.model import ANONYMOUS
from pkgrepo.storage.pools import Pools

from .account.pages import AccountPages
from .account.tokens import TokenPages
from .administration.grants import GrantPages
from .administration.repositories import RepositoryForms
from .administration.server import ServerPages
from .administration.usage import UsagePages
from .administration.users import UserPages
from .docs.pages import BookPages
from .forms import read_form
from .home.pages import Home
from .jobs.pages import JobPages
from .login.pages import Logins
from .packages.pages import PackagePages
from .projects.pages import ProjectPages
from .refusals import error_table
from .rendering.assets import Assets
from .rendering.pages import PageRenderer
from .rendering.readme import Readmes
from .repositories.contents import ContentsPages
from .repositories.pages import RepositoryPages
from .tables import PageRoute, Pages
from .visits import Visit

OLD_FORM = "this form belongs to a login that has ended: load its page again, and log in if it says so"


class WebApp:
    """The pages below ``/ui``. ``api`` are the operations of the management API, ``pools`` threads for readmes."""

    def __init__(self, api: Dispatcher, access: Access, pools: Pools) -> None:
        self._api = api
        self._access = access
        self._assets = Assets()
        self._renderer = PageRenderer(self._assets)
        self._app = new_app()
        refuse_unrouted(self._app, error_table(self._visit))
        self._serve_assets()
        for pages in self._rooms(pools):
            for route in pages.pages.routes:
                self._serve(route, partial(route.handler, pages))

    def _rooms(self, pools: Pools) -> tuple[Pages, ...]:
        readmes = Readmes(pools)
        return (
            Home(),
            Logins(),
            RepositoryPages(readmes),
            ContentsPages(),
            PackagePages(readmes),
            AccountPages(),
            TokenPages(),
            ServerPages(),
            UsagePages(),
            UserPages(),
            GrantPages(),
            RepositoryForms(),
            JobPages(),
            ProjectPages(),
            BookPages(readmes),
        )

    def resource(self) -> IResource:
        """The application's resource."""
        return SegmentResource(self._app)

    def _serve(self, route: PageRoute, handler: Callable[..., Awaitable[Answer]]) -> None:
        async def handle(request: Request, **raw: str) -> None:
            parameters = {name: unquote(value) for name, value in raw.items()}
            visit = self._visit(request)
            answer = self._page if route.method == "GET" else partial(self._form, open=route.open)
            await answer_with(request, error_table(lambda _: visit), lambda: answer(visit, handler, parameters))

        endpoint = f"{route.method} {route.path}"
        self._app.route(route.path, methods=[route.method], endpoint=endpoint)(handle)

    def _serve_assets(self) -> None:
        async def handle(request: Request, name: str) -> None:
            async def answer() -> Answer:
                return self._assets.answer(request, name)

            await answer_with(request, error_table(self._visit), answer)

        self._app.route("/static/<name>", methods=["GET"], endpoint="static")(handle)

    def _visit(self, request: Request) -> Visit:
        return Visit(request, ANONYMOUS, self._api, self._renderer)

    async def _page(
        self, visit: Visit, handler: Callable[..., Awaitable[Answer]], parameters: dict[str, str]
    ) -> Answer:
        visit.identity = await self._access.identify(visit.request)
        try:
            return await handler(visit, **parameters)
        except AuthenticationRequired:
            if not visit.identity.anonymous:
                raise
            return visit.redirect(f"/login?next={quote(visit.here, safe='')}")

    async def _form(
        self, visit: Visit, handler: Callable[..., Awaitable[Answer]], parameters: dict[str, str], *, open: bool
    ) -> Answer:
        request = visit.request
        self._access.check_origin(request)
        form = await read_form(request)
        secret = session_secret(request)
        if secret is not None and is_csrf(secret, form.secret("csrf")):
            visit.identity = await self._access.session_identity(request, secret)
        if visit.identity.anonymous and not open:
            raise Refusal(403, OLD_FORM, "forbidden")
        return await handler(visit, form, **parameters)
