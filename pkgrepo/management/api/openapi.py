"""The OpenAPI 3.1 document, made from the route tables that the dispatcher serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pkgrepo import __version__

from .access_rules import PUBLIC
from .call import Call
from .docs_page import render_page
from .pages import Page
from .problems import Problem
from .route import Parameter, Route, Table

_PARAMETER = re.compile(r"<(?:path:)?([a-z]+)>")
_REFERENCES = "#/components/schemas/{name}"

# Descriptions of error statuses: those of every route, and those of routes that change something.
ALWAYS = {
    400: "Malformed.",
    401: "Wrong or no credentials.",
    403: "Not allowed.",
    404: "Not there, or not for the caller to know of.",
    422: "Invalid; see errors.",
    429: "Too many failed logins; see Retry-After.",
    500: "Internal error; the log has the reason.",
    503: "Not now: the repository is switched off, or a part of the server is not ready; see Retry-After.",
}
WHEN_CHANGING = {409: "Contradicts the present state.", 413: "Too large.", 507: "No room left."}

PATH_PARAMETERS = {
    "repository": "The id of a repository, or storage%2Fname.",
    "package": "The name of a package, with slashes written as %2F.",
    "version": "A version.",
    "id": "The id of the thing; for users and storages its name does as well.",
    "key": "The key.",
    "path": "A path below the repository.",
    "storage": "The name of a storage.",
    "name": "The name of a repository.",
    "format": "The name of a format.",
    "type": "Local.",
}


class Description:
    """Serves the document, and the same as an HTML page."""

    table = Table("description")

    def __init__(self, routes: list[tuple[Table, Route]]) -> None:
        self._routes = routes
        self._document: dict[str, Any] | None = None

    @table.route(
        "GET", "/openapi.json", access=PUBLIC, summary="This description, as OpenAPI 3.1", answer=dict[str, Any]
    )
    async def document(self, _call: Call) -> dict[str, Any]:
        """Every route of the API."""
        return self.describe()

    @table.route(
        "GET", "/docs", access=PUBLIC, summary="This description, as a page for people", media_type="text/html"
    )
    async def page(self, _call: Call) -> Any:
        """One page without anything from elsewhere."""
        return render_page(self.describe())

    def describe(self) -> dict[str, Any]:
        """The document; it is made at the first call and kept."""
        if self._document is None:
            self._document = describe(self._routes)
        return self._document


def describe(routes: Iterable[tuple[Table, Route]]) -> dict[str, Any]:
    """The OpenAPI document of these routes."""
    every = list(routes)
    kinds: list[Any] = [Problem]
    for _, route in every:
        kinds += [kind for kind in (route.body, _answer_type(route)) if kind is not None]
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
    """A path in OpenAPI's form, from Klein's."""
    return _PARAMETER.sub(r"{\1}", path)


def _answer_type(route: Route) -> Any:
    if route.answer is None:
        return None
    return Page[route.answer] if route.paged else route.answer  # type: ignore[name-defined]


def _operation(table: Table, route: Route, path: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    names = _PARAMETER.findall(path)
    text = (route.handler.__doc__ or "").strip()
    operation: dict[str, Any] = {
        "tags": [table.name],
        "summary": route.summary,
        "description": f"{text}\n\nFor {route.access.label}.".strip(),
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
                "description": "The ETag of what is to be changed; 412 when it has changed meanwhile.",
                "schema": {"type": "string"},
            }
        )
    if route.body is not None:
        schema = schemas[repr(route.body)]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if not (route.access.scope or route.access.action):
        operation["security"] = [{}, {"basic": []}, {"bearer": []}]
    return operation


def _responses(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": schemas[repr(Problem)]}}
    responses: dict[str, Any] = {}
    kind = _answer_type(route)
    if route.status == 204:
        responses["204"] = {"description": "Done."}
    else:
        schema = {"type": "string"} if kind is None else schemas[repr(kind)]
        fine = {route.status: "Made." if route.status == 201 else "Fine."} | dict(route.further)
        for status, description in sorted(fine.items()):
            responses[str(status)] = {
                "description": description,
                "content": {route.media_type: {"schema": schema}},
            }
    if route.method == "GET" and not route.paged:
        responses["304"] = {"description": "What If-None-Match names is still so."}
    wrong = {**ALWAYS, **(WHEN_CHANGING if route.changes else {})}
    if route.conditional:
        wrong[412] = "Changed since the ETag in If-Match."
    for status, description in sorted(wrong.items()):
        responses[str(status)] = {"description": description, "content": problem}
    return responses


def _described(name: str) -> dict[str, Any]:
    return {"description": PATH_PARAMETERS[name], "schema": {"type": "string"}}


def _query(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.explanation,
        "schema": {"type": parameter.kind},
    }


def _identifier(method: str, path: str) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", openapi_path(path)) if word]
    return "_".join([method.lower(), *words])
