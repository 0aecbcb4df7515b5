"""One request for a page, and what its function needs: the caller, the API, the template engine, and the form."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from attrs import Factory, define, field
from markupsafe import Markup

from pkgrepo.auth.login.sessions import csrf_of
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.callers.browsers import CONSOLE, session_secret
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.publishing.uploads import LIMITS
from pkgrepo.gateway.refusals import help_page, refusal_headers
from pkgrepo.http.reading.multipart import Part
from pkgrepo.http.reading.multipart import read_form as read_parts
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Refusal, Response
from pkgrepo.management.api.access_rules import Decided
from pkgrepo.management.api.dispatch import Dispatcher
from pkgrepo.management.api.problems import PreconditionFailed
from pkgrepo.model import Identity
from pkgrepo.untrusted.fields import form_fields
from pkgrepo.web.preconditions import Preconditions
from pkgrepo.web.rendering.languages import Language
from pkgrepo.web.rendering.pages import PageRenderer
from pkgrepo.web.rendering.readme import Readmes
from pkgrepo.web.rendering.refill import CSRF, UNCHANGED, refilled

FORM_LIMIT: Final = 256 * 1024  # bytes; the largest field is a configuration
CSRF_LENGTH: Final = 200  # bytes that are read of it
MOST_FIELDS: Final = 2000  # that of grants has seven for each: a hundred patterns, and some repositories
URLENCODED: Final = b"application/x-www-form-urlencoded"
PREFIX = CONSOLE
# A path of this console; "//" and a backslash would lead to another host. Browsers send all other characters encoded.
_HERE: Final = re.compile(rf"{PREFIX}(/[\w.~%@:+,;=!$&'()*-]*)*(\?[\w.~%@:+,;=!$&'()*/?-]*)?", re.ASCII)
_HIDDEN: Final = Markup('<input type="hidden" name="{}" value="{}">')
_PARAMETER: Final = re.compile(r"<(?:path:)?(\w+)>")


class Form:
    """The fields by name; a field may be there several times."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    @property
    def fields(self) -> Mapping[str, Sequence[str]]:
        """The values as they were sent, by the names of fields."""
        return self._fields

    def __bool__(self) -> bool:
        return bool(self._fields)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, without spaces around it; ``default`` if it is absent."""
        values = self._fields.get(name)
        return values[0].strip() if values else default

    def texts(self, *names: str) -> dict[str, Any]:
        """The texts of several fields, by their names."""
        return {name: self.text(name) for name in names}

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
    return Form(form_fields(body.decode("utf-8", "replace"), MOST_FIELDS, keep_blank_values=True))


async def read_file_form(request: Request) -> tuple[str, AsyncIterator[Part]]:
    """
    The CSRF value of a form with a file, which is its first part, and the parts after it.

    :raises Refusal: it is no such form (415), or malformed
    """
    parts = read_parts(request.body, request.header(b"content-type"), LIMITS)
    async for part in parts:
        return (await part.read_text(CSRF_LENGTH) if part.name == CSRF else ""), parts
    return "", parts


def _at(parameters: Mapping[str, str]) -> dict[str, str]:
    at = dict(parameters)
    if "storage" in at and "name" in at:
        at["repository"] = f"{at['storage']}/{at['name']}"
    return at


@define(eq=False, slots=False)
class Visit:
    """
    A request for a page by ``identity``. ``readmes`` renders Markdown and the like.

    ``at`` are the parameters of the page's path; with ``storage`` and ``name`` also the ``repository`` that they name.
    A page that is shown again since a form was refused has the sentence as ``error``, the form as ``sent``, the JSON
    pointer of the wrong field as ``wrong``, if it is known, and as ``then`` the path of the page without the form.

    What the API changes only if it is as the caller knows it, a form changes only if it is as its page has shown it
    (``unchanged``).
    """

    request: Request
    at: dict[str, str] = field(converter=_at)
    identity: Identity
    readmes: Readmes
    _api: Dispatcher
    _renderer: PageRenderer
    _formats: Mapping[str, Format]
    error: str = ""
    wrong: str = ""
    sent: Form = Factory(lambda: Form({}))
    then: str = ""
    unchanged: Preconditions = Factory(Preconditions)
    _decided: Decided | None = None

    @cached_property
    def language(self) -> Language:
        """The language of the page."""
        return self._renderer.language_of(self.request)

    @property
    def languages(self) -> Mapping[str, Language]:
        """All languages, by their codes."""
        return self._renderer.languages

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

        A parameter of its path that is not among ``parameters`` is that of the page.

        :raises PkgrepoError, Refusal: as the API does; :raises Conflict: it has changed
        """
        given = {**self.at, **(parameters or {})}
        place = {name: given[name] for name in parameters_of(operation)}
        if self._decided is None or self._decided.identity is not self.identity:
            self._decided = self._api.decided(self.identity, kept=True)
        guard = operation if method == "GET" else self._api.guards.get((method, operation))
        address = self.filled(guard or operation, **place)
        try:
            value = await self._api.call(
                self.request,
                self._decided,
                (method, operation),
                place,
                query=query,
                fields=fields,
                parts=parts,
                if_match=self.unchanged.if_match(address) if guard else None,
            )
        except PreconditionFailed:
            raise self.unchanged.refusal() from None
        if self._api.is_change(method, operation):
            self.unchanged.forget(self.filled(operation, **place))
        elif method == "GET" and not query and operation in self._api.guards.values():
            self.unchanged.note(address, value)
        return value

    async def repository(self) -> Any:
        """The record of the repository that the page is about. :raises NotFound: the caller may read no such one"""
        return await self.api("GET", "/repository/<repository>")

    async def listed(self, operation: str, query: Mapping[str, Any], limit: int) -> Any:
        """A page of a list; the first one, and an ``error``, if the ``query`` is wrong."""
        try:
            return await self.api("GET", operation, query={**query, "limit": limit})
        except (Invalid, NotFound) as refused:
            self.error = str(refused)
            return await self.api("GET", operation, query={"limit": limit})

    def query(self, name: str) -> str:
        """The first value of a query parameter; empty when it is absent."""
        return self.request.parameter(name.encode("ascii")) or ""

    def asked(self, *names: str, **more: str | int | bool) -> dict[str, Any]:
        """Those of the query parameters that are there and not empty, and ``more``."""
        return {**more, **{name: text for name in names if (text := self.query(name))}}

    def number(self, name: str, default: int) -> int:
        """A query parameter that is a number of at most five digits and not 0; ``default`` unless it is one."""
        text = self.query(name)
        return (int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0) or default

    @property
    def csrf(self) -> str:
        """The value that forms repeat; empty without a session."""
        secret = session_secret(self.request)
        return "" if secret is None or self.identity.anonymous else csrf_of(secret)

    def token(self, *, changes: bool = True) -> Markup:
        """
        The hidden fields that every form of a logged-in user has: the CSRF value, and what its page was made of.

        Without ``changes`` it is of no form that changes what can be guarded, and only the CSRF value.
        """
        known = self.unchanged.text if changes else ""
        fields = {CSRF: self.csrf} | ({UNCHANGED: known} if known else {})
        return Markup("").join(_HIDDEN.format(*each) for each in fields.items())

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

    @property
    def again(self) -> str:
        """The address at which this page is found once more; of what a form has made, that of the page before."""
        return self.here if self.request.method == b"GET" else PREFIX + self.filled(self.then or "/")

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
        values = {"title": title, "sentence": refusal.sentence, "help": help_page(refusal.code)}
        headers = refusal_headers(refusal, None)
        return self.page("refusal.html", status=refusal.status, headers=headers, **values)

    def page(self, template: str, /, *, status: int | None = None, headers: Fields = (), **values: Any) -> Response:
        """
        A page made from a template and values for it; without a ``status`` it is 422 if there is an ``error``.

        This visit, its ``error``, and ``token``, the hidden field of forms, are variables of every template, too.
        """
        status = status or (422 if self.error else 200)
        values |= {"visit": self, "token": self.token, "error": self.error}
        change = self._refill if self.sent else None
        return self._renderer.answer(
            self.request, self.language, template, values, status=status, headers=headers, change=change
        )

    def _refill(self, page: str) -> str:
        said = self.language.filters["sentence"](self.error)
        return refilled(page, self.path, self.sent.fields, self.wrong, said)

    def filled(self, path: str, /, **parameters: str) -> str:
        """A path in which names in angle brackets are ``parameters``, or those of this page, each one segment."""
        known = {**self.at, **parameters}
        return _PARAMETER.sub(lambda found: quote(known[found[1]], safe=""), path)

    def redirect(self, path: str, headers: Fields = (), **parameters: str) -> Response:
        """Send the browser to another page, a path below ``/ui`` that is ``filled`` (303: RFC 9110 section 15.4.4)."""
        location = (self.base_url + PREFIX + self.filled(path, **parameters)).encode("ascii")
        return Response(303, headers=((b"Location", location), *NO_STORE, *headers))

    def go_back(self, target: str, headers: Fields = ()) -> Response:
        """Show the page of the console at an address that a form has brought; the first one if it is none of ours."""
        if is_elsewhere(target) or not _HERE.fullmatch(target):
            target = f"{PREFIX}/"
        return self.redirect(target.removeprefix(PREFIX), headers=headers)

    async def start_job(self, operation: str, query: Mapping[str, Any] | None = None, **fields: Any) -> Response:
        """Start a job by an operation, and show its page; or that of the one that runs already."""
        try:
            answer: Response = await self.api("POST", operation, query={"wait": 0, **(query or {})}, fields=fields)
        except Refusal as refused:
            if b"Location" not in dict(refused.headers):
                raise
            return self.show_job(refused.headers)
        return self.show_job(answer.headers)

    def show_job(self, headers: Fields) -> Response:
        """Send the browser to the page of the job whose address in the API is the Location of an answer."""
        location = dict(headers)[b"Location"].decode("ascii")
        return self.redirect("/admin/jobs/<job>", job=location.rpartition("/")[2])


def is_elsewhere(target: str) -> bool:
    """Whether a path could lead out of the folder in which it begins, or to another host."""
    # Browsers resolve "." and "..", also encoded ones (URL Standard section 4.4).
    return "//" in target or bool({".", ".."} & set(unquote(target.partition("?")[0]).split("/")))


def parameters_of(path: str) -> list[str]:
    """The names of the parameters in the path of a page or an operation."""
    return _PARAMETER.findall(path)
