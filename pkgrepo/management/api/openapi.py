"""The description of the API, made from the tables of routes: OpenAPI 3.1, a page of HTML, and a page of the book."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from inspect import cleandoc
from typing import Any

import msgspec

from pkgrepo import __version__
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.problems import Problem
from pkgrepo.management.api.route import PAGING, Parameter, Route, Table

_PARAMETER = re.compile(r"<(?:path:)?([a-z]+)>")
_REFERENCES = "#/components/schemas/{name}"

# Descriptions of error statuses: those of every route, and those of routes that change something.
ALWAYS = {
    400: "The request cannot be parsed.",
    401: "Credentials are missing or wrong.",
    403: "The caller lacks the permission, or the token lacks the scope.",
    404: "The object does not exist, or the caller may not know that it exists.",
    422: "A value is invalid; errors lists each invalid field.",
    429: "Too many failed logins; Retry-After is the number of seconds to wait.",
    500: "Internal error; the server log contains the reason under the request id.",
    503: "The repository is inactive, or a part of the server is unavailable; see Retry-After.",
}
WHEN_CHANGING = {
    405: "The repository is of a type in which this changes nothing.",
    409: "The request conflicts with the current state.",
    413: "The body is too large.",
    507: "The disk is full.",
}

_INTRODUCTION = """\
# The management API

Look up what programs can ask of the server. The paths below follow `/api`. The server describes them at `/ui/api`, with
examples and forms to try them,
and for programs at `/api/openapi.json` with the fields of every body and response. Send Basic credentials, an access
token or a bearer token. Errors are problem details (RFC 9457), whose `errors` point at wrong fields. Send the ETag of
a response in `If-None-Match`, and the changes that you make of it with `If-Match`.
"""

PATH_PARAMETERS = {
    "repository": "A repository: its id, or its path with the slash encoded (storage%2Fname).",
    "place": "A repository that the right is about: its id, or its path with the slash encoded (storage%2Fname).",
    "package": "The name of a package; slashes in it are encoded as %2F.",
    "version": "A version of the package; for images, a tag or the digest of a manifest.",
    "tag": "A tag of an image.",
    "id": "The id of the object; users and storages are also found by name.",
    "key": "The key of a project or of a configuration part.",
    "path": "A path in the repository, without a leading slash.",
    "delivery": "The id of a delivery of the webhook.",
    "storage": "The name of a storage.",
    "name": "The name of a repository or of a group; a group is also found by its id.",
    "token": "The id of a token.",
    "block": "The id of a block.",
    "freeze": "The id of a freeze.",
    "quarantined": "The id of a version in quarantine.",
    "session": "The id of a browser session.",
    "format": "The name of a format.",
    "provider": "The name of an identity provider in auth.oidc.",
    "type": "The type of the storage; the only one is Local.",
}
POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class Description:
    """Serves the OpenAPI document as JSON and as an HTML page."""

    table = Table("description")

    def __init__(self, routes: list[tuple[Table, Route]]) -> None:
        self._routes = routes
        self._document: dict[str, Any] | None = None

    @table.get("/openapi.json", PUBLIC, "Get this description as an OpenAPI 3.1 document")
    async def document(self, _call: Call) -> dict[str, Any]:
        """Contains every route of the API."""
        return self.describe()

    @table.get("/docs", PUBLIC, "Get this description as an HTML page", media_type="text/html")
    async def page(self, _call: Call) -> Any:
        """The page has no scripts and loads no other resources."""
        return render_page(self.describe())

    def describe(self) -> dict[str, Any]:
        """The document; it is built at the first call and cached."""
        if self._document is None:
            self._document = describe(self._routes)
        return self._document


def describe(routes: Iterable[tuple[Table, Route]]) -> dict[str, Any]:
    """The OpenAPI document of these routes."""
    every = list(routes)
    kinds: list[Any] = [Problem]
    for _, route in every:
        kinds += [kind for kind in (route.body, _answer_type(route), route.refusal) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCES)
    by_kind = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for table, route in every:
        for index, (method, path) in enumerate(route.addresses):
            operation = _operation(table, route, path, by_kind)
            operation["operationId"] = _identifier(method, path)
            if index:
                operation["deprecated"] = True
                operation["summary"] += f" (same as {route.method} {openapi_path(route.path)})"
            paths.setdefault(openapi_path(path), {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "pkgrepo management API", "version": __version__},
        "servers": [{"url": "/api"}],
        "security": [{"basic": []}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def openapi_path(path: str) -> str:
    """Convert a path from Klein's syntax to that of OpenAPI."""
    return _PARAMETER.sub(r"{\1}", path)


def _answer_type(route: Route) -> Any:
    if route.answer is None:
        return None
    return Page[route.answer] if route.paged else route.answer  # type: ignore[name-defined]


def _operation(table: Table, route: Route, path: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    names = _PARAMETER.findall(path)
    text = cleandoc(route.handler.__doc__ or "")
    operation: dict[str, Any] = {
        "tags": [table.name],
        "summary": route.summary,
        "description": f"{text}\n\nRequired permission: {route.access.label}.".strip(),
        "parameters": [
            *({"name": name, "in": "path", "required": True, **_described(name)} for name in names),
            *(_query(parameter) for parameter in route.parameters),
        ],
        "responses": _responses(route, schemas),
    }
    if route.conditional:
        operation["parameters"].append(
            {
                "name": "If-Match",
                "in": "header",
                "description": "The ETag of the version that the caller has read; 412 if it is out of date.",
                "schema": {"type": "string"},
            }
        )
    if route.body is not None:
        schema = schemas[repr(route.body)]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if route.form:
        fields = {"file": {"type": "string", "contentMediaType": "application/octet-stream"}}
        schema = {"type": "object", "properties": fields, "required": ["file"]}
        operation["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    if not (route.access.scope or route.access.action):
        operation["security"] = [{}, {"basic": []}, {"bearer": []}]
    return operation


def _responses(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": schemas[repr(Problem)]}}
    responses: dict[str, Any] = {}
    kind = _answer_type(route)
    if route.status == 204:
        responses["204"] = {"description": "The operation succeeded; the answer has no body."}
    else:
        schema = {"type": "string"} if kind is None else schemas[repr(kind)]
        fine = {route.status: "The object was created." if route.status == 201 else "The operation succeeded."} | dict(
            route.further
        )
        for status, description in sorted(fine.items()):
            responses[str(status)] = {
                "description": description,
                "content": {route.media_type: {"schema": schema}},
            }
    if route.method == "GET" and not route.paged:
        responses["304"] = {"description": "The ETag in If-None-Match is still current."}
    wrong = {**ALWAYS, **(WHEN_CHANGING if route.changes else {}), **dict(route.refused)}
    if route.conditional:
        wrong[412] = "The object has changed since the ETag in If-Match was returned."
    if route.form:
        wrong[415] = "The body is not multipart/form-data."
    for status, description in sorted(wrong.items()):
        responses[str(status)] = {"description": description, "content": problem}
    if route.refusal is not None:
        own = {"application/json": {"schema": schemas[repr(route.refusal)]}}
        responses["400"] = {**responses["400"], "content": {**problem, **own}}
    return responses


def _described(name: str) -> dict[str, Any]:
    return {"description": PATH_PARAMETERS[name], "schema": {"type": "string"}}


def _query(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.explanation,
        "schema": parameter.schema,
    }


def _identifier(method: str, path: str) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", openapi_path(path)) if word]
    return "_".join([method.lower(), *words])


_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
code {{ font: 14px/1.4 ui-monospace, monospace }} h3 {{ margin-bottom: 0 }} .old {{ opacity: .6 }}
td {{ vertical-align: top; padding-right: 1em }}
</style></head><body><h1>{title}</h1>
<p>Version {version}. The same for programs: <a href="openapi.json">openapi.json</a>.</p>
"""


def render_page(document: Mapping[str, Any]) -> Response:
    """The OpenAPI document as HTML without scripts and without references to other resources."""
    info = document["info"]
    parts = [_HEAD.format(title=escape(info["title"]), version=escape(info["version"]))]
    for tag, operations in _by_tag(document["paths"]).items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_operation_html(*each) for each in operations]
    parts.append("</body></html>\n")
    return Response(
        body="".join(parts).encode(),
        content_type=b"text/html; charset=utf-8",
        headers=((b"Cache-Control", b"no-cache"), (b"Content-Security-Policy", POLICY)),
    )


def _by_tag(paths: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    found: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return found


def _operation_html(method: str, path: str, operation: Mapping[str, Any]) -> str:
    old = ' class="old"' if operation.get("deprecated") else ""
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['description'])}</td></tr>"
        for each in operation["parameters"]
    )
    return (
        f"<section{old}><h3><code>{method} /api{escape(path)}</code></h3>"
        f"<p><b>{escape(operation['summary'])}.</b> {escape(operation['description'])}</p>"
        f"<table>{rows}</table></section>"
    )


def api_page(tables: Iterable[Table]) -> str:
    """The page of all routes in the book, in Markdown; a test compares it with ``pkgrepo/docs/api.md``."""
    by_tag: dict[str, list[Route]] = {}
    for table in tables:
        by_tag.setdefault(table.name, []).extend(table.routes)
    lines = [_INTRODUCTION, *_rows("parameter", ((f"`{{{name}}}`", text) for name, text in PATH_PARAMETERS.items()))]
    lines += ["\nLists come in pages:\n", *_rows("parameter", _explained(PAGING))]
    for tag, routes in by_tag.items():
        lines += [f"\n## {tag}", *(line for route in routes for line in _route_lines(route))]
    return "\n".join(lines) + "\n"


def _rows(title: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (f"| {title} | meaning |", "| --- | --- |")
    for name, meaning in pairs:
        yield f"| {name} | {meaning.replace('|', chr(92) + '|').replace('<', '&lt;')} |"


def _explained(parameters: Iterable[Parameter]) -> Iterator[tuple[str, str]]:
    return ((f"`{each.name}`", each.explanation) for each in parameters)


def _fields(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """The fields of a body, those that are needed marked as such, with their meanings."""
    (_,), components = msgspec.json.schema_components([kind])
    schema = components[kind.__name__]
    for name, field in schema["properties"].items():
        yield f"`{name}`{' (needed)' if name in schema['required'] else ''}", field["description"]


def _route_lines(route: Route) -> Iterator[str]:
    yield f"\n### {route.method} {openapi_path(route.path)}\n"
    yield f"{route.summary}. {' '.join(cleandoc(route.handler.__doc__ or '').split())}\n"
    yield f"- Permission: {route.access.label}"
    if route.body is not None:
        yield "- Body: JSON"
    elif route.form:
        yield "- Body: a form (multipart/form-data) whose last part is `file`"
    if route.paged:
        yield "- Response: a page of a list"
    if route.conditional:
        yield "- `If-Match`: the ETag of what was read; 412 if it has changed since"
    if route.aliases:
        yield f"- Also: {', '.join(f'`{method} {openapi_path(path)}`' for method, path in route.aliases)}"
    if route.query:
        yield from ("", *_rows("parameter", _explained(route.query)))
    if isinstance(route.body, type) and issubclass(route.body, msgspec.Struct):
        yield from ("", *_rows("field of the body", _fields(route.body)))
