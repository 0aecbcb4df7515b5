"""One request for a page, and what its function needs: the caller, the API, and the template engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.gateway.answers.statuses import refusal_headers
from pkgrepo.gateway.callers.browsers import CONSOLE
from pkgrepo.gateway.callers.session_cookies import session_secret
from pkgrepo.http.answers import NO_STORE, Answer, Fields, Refusal
from pkgrepo.http.request import Request
from pkgrepo.management.api.dispatch import Dispatcher
from pkgrepo.model import Identity

from .rendering.filters import sentence
from .rendering.pages import PageRenderer

PREFIX = CONSOLE


class Visit:
    """A request for a page by ``identity``."""

    def __init__(self, request: Request, identity: Identity, api: Dispatcher, renderer: PageRenderer) -> None:
        self.request = request
        self.identity = identity
        self._api = api
        self._renderer = renderer

    async def api(
        self,
        method: str,
        operation: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str | int | bool] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Any:
        """
        Call an operation of the management API as this caller; see L{Dispatcher.call}.

        :raises PkgrepoError, Refusal: as the API does
        """
        return await self._api.call(
            self.request, self.identity, (method, operation), parameters or {}, query=query, fields=fields
        )

    def query(self, name: str) -> str:
        """The first value of a query parameter; empty when it is absent."""
        return self.request.parameter(name.encode("ascii")) or ""

    def number(self, name: str, default: int) -> int:
        """A query parameter that is a number of at most five digits and not 0; ``default`` unless it is one."""
        text = self.query(name)
        return (int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0) or default

    @property
    def csrf(self) -> str:
        """The value that forms repeat; empty without a session."""
        secret = session_secret(self.request)
        return "" if secret is None or self.identity.anonymous else csrf_of(secret)

    def token(self) -> Markup:
        """The hidden field that every form of a logged-in user has."""
        return Markup('<input type="hidden" name="csrf" value="{}">').format(self.csrf)

    @property
    def base_url(self) -> str:
        """The address of the server as the browser sees it, without a slash at the end."""
        return self.request.base_url

    @property
    def path(self) -> str:
        """The path of this page, undecoded."""
        return self.request.raw_path.decode("ascii", "replace")

    @property
    def here(self) -> str:
        """The path and the query of this page."""
        target: bytes = self.request.uri
        return target.decode("ascii", "replace")

    def with_query(self, **changes: str) -> str:
        """The address of this page with other query parameters; one that is empty is left out."""
        pairs = {
            name.decode("ascii", "replace"): values[0].decode("utf-8", "replace")
            for name, values in self.request.args.items()
        }
        kept = {name: value for name, value in (pairs | changes).items() if value}
        return "?" + urlencode(kept)

    def refusal(self, refusal: Refusal, title: str) -> Answer:
        """The page of a request that is refused."""
        values = {"title": title, "sentence": sentence(refusal.sentence)}
        headers = refusal_headers(refusal, None)
        return self.page("refusal.html", status=refusal.status, headers=headers, **values)

    def page(self, template: str, /, *, status: int = 200, headers: Fields = (), **values: Any) -> Answer:
        """
        A page made from a template and values for it.

        This visit, and ``token``, the hidden field of forms, are variables of every template, too.
        """
        values |= {"visit": self, "token": self.token}
        return self._renderer.answer(self.request, template, values, status=status, headers=headers)

    def redirect_to(self, *segments: str) -> Answer:
        """Send the browser to the page with these segments below ``/ui``, none of which is encoded."""
        return self.redirect("".join(f"/{quote(each, safe='')}" for each in segments))

    def redirect(self, path: str, headers: Fields = ()) -> Answer:
        """Send the browser to another page, a path below ``/ui`` (303: RFC 9110 section 15.4.4)."""
        location = (self.base_url + PREFIX + path).encode("ascii")
        return Answer(303, headers=((b"Location", location), *NO_STORE, *headers))
