"""One request for a page, and what its function needs: the caller, the API, the template engine, and the form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode

from markupsafe import Markup

from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.errors import Invalid
from pkgrepo.gateway.callers.browsers import CONSOLE, session_secret
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.publishing.uploads import LIMITS
from pkgrepo.gateway.refusals import refusal_headers
from pkgrepo.http.reading.multipart import Part
from pkgrepo.http.reading.multipart import read_form as read_parts
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Refusal, Response
from pkgrepo.management.api.dispatch import Dispatcher
from pkgrepo.model import Identity
from pkgrepo.web.rendering.filters import sentence
from pkgrepo.web.rendering.pages import PageRenderer
from pkgrepo.web.rendering.readme import Readmes

FORM_LIMIT: Final = 256 * 1024  # bytes; the largest field is a configuration
CSRF_LENGTH: Final = 200  # bytes that are read of it
MOST_FIELDS: Final = 500  # the largest form has a field for each action in some dozen repositories
URLENCODED: Final = b"application/x-www-form-urlencoded"
PREFIX = CONSOLE


class Form:
    """The fields by name; a field may be there several times."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, without spaces around it; ``default`` if it is absent."""
        values = self._fields.get(name)
        return values[0].strip() if values else default

    def secret(self, name: str) -> str:
        """The first value of a field as it was typed."""
        values = self._fields.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """Every value of a field that is not empty, such as those of checked boxes."""
        return [value for value in self._fields.get(name, []) if value]

    def flag(self, name: str) -> bool:
        """Whether a box is checked."""
        return bool(self.text(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a field that are not empty."""
        return [line for each in self.text(name).splitlines() if (line := each.strip())]


async def read_form(request: Request) -> Form:
    """
    The form in the body of a request.

    :raises Refusal: 415, the body is no form; :raises Invalid: it has too many fields
    :raises TooLarge: it is longer than ``FORM_LIMIT``
    """
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind != URLENCODED:
        raise Refusal(415, "a form is sent as application/x-www-form-urlencoded", "malformed")
    body = await request.body.read_all(FORM_LIMIT)
    try:
        text = body.decode("utf-8", "replace")
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Invalid(f"the form has more than {MOST_FIELDS} fields") from None


async def read_file_form(request: Request) -> tuple[str, AsyncIterator[Part]]:
    """
    The CSRF value of a form with a file, which is its first part, and the parts after it.

    :raises Refusal: it is no such form (415), or malformed
    """
    parts = read_parts(request.body, request.header(b"content-type"), LIMITS)
    async for part in parts:
        return (await part.read_text(CSRF_LENGTH) if part.name == "csrf" else ""), parts
    return "", parts


class Visit:
    """A request for a page by ``identity``. ``readmes`` renders Markdown and the like."""

    def __init__(
        self,
        request: Request,
        identity: Identity,
        api: Dispatcher,
        renderer: PageRenderer,
        readmes: Readmes,
        formats: Mapping[str, Format],
    ) -> None:
        self.request = request
        self.identity = identity
        self.readmes = readmes
        self._api = api
        self._renderer = renderer
        self._formats = formats

    @property
    def first_format(self) -> str:
        """The name of the format that a form shows before one is chosen."""
        return next(iter(self._formats))

    def format_of(self, repository: Any) -> Format:
        """The format of the record of a repository."""
        return self._formats[repository.format]

    async def api(
        self,
        method: str,
        operation: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str | int | bool] | None = None,
        fields: Mapping[str, Any] | None = None,
        parts: AsyncIterator[Part] | None = None,
    ) -> Any:
        """
        Call an operation of the management API as this caller; see L{Dispatcher.call}.

        :raises PkgrepoError, Refusal: as the API does
        """
        return await self._api.call(
            self.request, self.identity, (method, operation), parameters or {}, query=query, fields=fields, parts=parts
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

    def refusal(self, refusal: Refusal, title: str) -> Response:
        """The page of a request that is refused."""
        values = {"title": title, "sentence": sentence(refusal.sentence)}
        headers = refusal_headers(refusal, None)
        return self.page("refusal.html", status=refusal.status, headers=headers, **values)

    def page(self, template: str, /, *, status: int | None = None, headers: Fields = (), **values: Any) -> Response:
        """
        A page made from a template and values for it; without a ``status`` it is 422 if there is an ``error``.

        This visit, and ``token``, the hidden field of forms, are variables of every template, too.
        """
        status = status or (422 if values.get("error") else 200)
        values |= {"visit": self, "token": self.token}
        return self._renderer.answer(self.request, template, values, status=status, headers=headers)

    def redirect_to(self, *segments: str) -> Response:
        """Send the browser to the page with these segments below ``/ui``, none of which is encoded."""
        return self.redirect("".join(f"/{quote(each, safe='')}" for each in segments))

    def redirect(self, path: str, headers: Fields = ()) -> Response:
        """Send the browser to another page, a path below ``/ui`` (303: RFC 9110 section 15.4.4)."""
        location = (self.base_url + PREFIX + path).encode("ascii")
        return Response(303, headers=((b"Location", location), *NO_STORE, *headers))


async def find_repository(visit: Visit, storage: str, name: str) -> Any:
    """The record of a repository. :raises NotFound: the caller may read no such one"""
    return await visit.api("GET", "/repository/<repository>", {"repository": f"{storage}/{name}"})
