"""Assembles the console: every page, under one Klein application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote, unquote

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import HTTPException

from pkgrepo.auth.login.sessions import is_csrf
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import AuthenticationRequired
from pkgrepo.gateway.callers.access import Access
from pkgrepo.gateway.callers.browsers import session_secret
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.http.answering.dispatch import (
    App,
    ErrorTable,
    SegmentResource,
    answer_with,
    refusal_of,
    refuse_unrouted,
)
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.management.api.dispatch import Dispatcher
from pkgrepo.model import ANONYMOUS
from pkgrepo.web import api, docs, jobs, webhooks
from pkgrepo.web.account import language, login, profile, second_factor
from pkgrepo.web.administration import (
    groups,
    hosts,
    imports,
    policy,
    publishers,
    quotas,
    retention,
    server,
    tokens,
    users,
)
from pkgrepo.web.administration import repositories as forms_of_repositories
from pkgrepo.web.content import feeds, home, images, packages, projects, repositories, stages, trash
from pkgrepo.web.preconditions import Preconditions
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.rendering.pages import Assets
from pkgrepo.web.rendering.refill import CSRF, OF_PAGE, UNCHANGED
from pkgrepo.web.visits import Form, Visit, read_file_form, read_form

from .refusals import error_table, field_of, sentence_of
from .rendering.pages import PageRenderer
from .rendering.readme import Readmes
from .tables import PageRoute, PageTable

ROOMS = (
    *(login, second_factor, profile, language),
    *(home, repositories, packages, images, stages, trash, projects),
    *(server, users, tokens, groups, quotas, hosts),
    *(forms_of_repositories, publishers, imports, retention, policy),
    *(jobs, webhooks, docs, api),
)
OLD_FORM = marked("this form belongs to a login that has ended: load its page again, and log in if it says so")


class WebApp:
    """The pages below ``/ui``. ``api`` are the operations of the management API, ``pools`` threads for readmes."""

    def __init__(self, api: Dispatcher, access: Access, pools: Pools, formats: Mapping[str, Format]) -> None:
        self._api = api
        self._access = access
        self._formats = formats
        self._assets = Assets(tuple((name, each.look) for name, each in formats.items()))
        self._renderer = PageRenderer(self._assets)
        self._app = App()
        handle: Any = self._app.handle_errors(HTTPException)
        handle(self._unrouted)
        self._readmes = Readmes(pools)
        answers = {"GET": self._page, "POST": self._form}
        pages = [(route, answers[route.method]) for room in ROOMS for route in room.pages.routes]
        self._serve(self._app, [(PageRoute("GET", "/static/<name>", self._asset), _run), *pages], error_table)

    def branches(self) -> dict[str, IResource]:
        """The pages, and what is for other programs than browsers, by the first segment of the path."""
        return {
            "ui": SegmentResource(self._app),
            "badge": self._documents(feeds.badges),
            "feed": self._documents(feeds.feeds),
        }

    def _documents(self, table: PageTable) -> IResource:
        """Documents whose refusals are those of the repositories: a program sends credentials when it is asked."""
        app = App()
        refuse_unrouted(app, ERRORS)
        self._serve(app, [(route, self._document) for route in table.routes], lambda _: ERRORS)
        return SegmentResource(app)

    def _serve(
        self,
        app: App,
        routes: Sequence[tuple[PageRoute, Callable[[Visit, PageRoute], Awaitable[Response]]]],
        errors: Callable[[Visit], ErrorTable],
    ) -> None:
        async def handle(
            route: PageRoute,
            answer: Callable[[Visit, PageRoute], Awaitable[Response]],
            request: Request,
            **raw: str,
        ) -> None:
            visit = self._visit(request, raw)
            await answer_with(request, errors(visit), lambda: answer(visit, route))

        app.serve({(route.method, route.path): partial(handle, route, answer) for route, answer in routes})

    async def _unrouted(self, request: Request, failure: Failure) -> None:
        """What no route takes, as a page for the person who is logged in."""
        visit = self._visit(request)

        async def refuse() -> Response:
            visit.identity = await self._access.identify(request)
            raise refusal_of(cast("HTTPException", failure.value), request)

        await answer_with(request, error_table(visit), refuse)

    async def _asset(self, visit: Visit) -> Response:
        return self._assets.answer(visit.request, visit.at["name"])

    def _visit(self, request: Request, raw: Mapping[str, str] = MappingProxyType({})) -> Visit:
        at = {name: unquote(value) for name, value in raw.items()}
        return Visit(request, at, ANONYMOUS, self._readmes, self._api, self._renderer, self._formats)

    async def _document(self, visit: Visit, route: PageRoute) -> Response:
        visit.identity = await self._access.identify(visit.request)
        return await _run(visit, route)

    async def _page(self, visit: Visit, route: PageRoute) -> Response:
        try:
            return await self._document(visit, route)
        except AuthenticationRequired:
            if not visit.identity.anonymous:
                raise
            return visit.redirect(f"/login?next={quote(visit.here, safe='')}")

    async def _form(self, visit: Visit, route: PageRoute) -> Response:
        request, form, parts = visit.request, Form({}), None
        visit.then = route.then
        self._access.check_origin(request)
        if route.file:
            request.csrf, parts = await read_file_form(request)  # the format identifies the caller again
        else:
            form = await read_form(request)
            visit.unchanged = Preconditions.brought(form.text(UNCHANGED))
        secret = session_secret(request)
        if secret is not None and is_csrf(secret, request.csrf if route.file else form.secret(CSRF)):
            visit.identity = await self._access.session_identity(request, secret)
        if visit.identity.anonymous and not route.open:
            raise Refusal(403, OLD_FORM, "forbidden")
        if form.text("ask") and not form.flag("sure"):  # without scripts a page asks
            return _ask(visit, route, form)
        try:
            answer = await route.handler(visit, form if parts is None else parts)
        except route.refused as error:
            if route.page is None:
                raise
            visit.error, visit.sent, visit.wrong = sentence_of(error), form, field_of(error, form)
            return await route.page(visit)
        return visit.redirect(route.then) if answer is None else answer


def _ask(visit: Visit, route: PageRoute, form: Form) -> Response:
    """Ask whether a form is to be sent, which says its question as ``ask``."""
    fields = [(name, value) for name, values in form.fields.items() if name not in OF_PAGE for value in values]
    back = f"/ui{visit.filled(route.then)}" if route.then and "<made" not in route.then else "/ui/"
    return visit.page("sure.html", question=form.text("ask"), fields=fields, back=back)


async def _run(visit: Visit, route: PageRoute) -> Response:
    return cast("Response", await route.handler(visit))
