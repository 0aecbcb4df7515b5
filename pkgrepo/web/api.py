"""
The pages of the management API: what can be asked, with examples, and forms that ask it with the caller's rights.

They are made of the OpenAPI document: a page for each tag, and one for each operation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from pkgrepo.errors import NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Visit

DEEPEST: Final = 6  # values within each other in an example
METHODS: Final = ("get", "post", "put", "patch", "delete")
# What an example has for a field of this name, instead of a value that only has the right type.
SAMPLES: Final[Mapping[str, Any]] = {
    "repository": "main/py",
    "place": "main/py",
    "package": "demo",
    "version": "1.0",
    "storage": "main",
    "storage_name": "main",
    "name": "demo",
    "username": "ada",
    "email": "ada@example.org",
    "key": "core",
    "format": "python",
    "visibility": "private",
    "config": {"type": "Hosted"},
    "actions": ["read", "write"],
    "default_repository_actions": ["read"],
    "kind": "person",
    "type": "Local",
    "role": "developer",
    "path": "demo/1.0/demo-1.0-py3-none-any.whl",
    "id": "5f0c3a52-6a5e-4b8e-9a55-0e7d1c2b3a49",
    "url": "https://registry.example.org/",
}
KINDS: Final[Mapping[str, Any]] = {"string": str, "array": list, "object": dict}
TIME: Final = "2026-01-31T12:00:00Z"

pages = PageTable()


@frozen
class Operation:
    """An operation as its page shows it; ``body`` and ``response`` are JSON texts, empty if it has none."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Mapping[str, Any]]
    statuses: list[tuple[str, str]]
    deprecated: bool
    body: str = ""
    response: str = ""
    takes_form: bool = False

    @property
    def example(self) -> str:
        """The path with values in place of its parameters."""
        path = self.path
        for each in self.parameters:
            if each["in"] == "path":
                value = str(SAMPLES.get(each["name"], each["name"])).replace("/", "%2F")
                path = path.replace(f"{{{each['name']}}}", value)
        return path


@pages.get("/api")
async def show_index(visit: Visit) -> Response:
    """All operations, by tag."""
    document = await visit.api("GET", "/openapi.json")
    return visit.page("api/index.html", tags=_tags(document), version=document["info"]["version"])


@pages.get("/api/<tag>")
async def show_tag(visit: Visit) -> Response:
    """The operations of a tag."""
    tag = visit.at["tag"]
    tags = _tags(await visit.api("GET", "/openapi.json"))
    if tag not in tags:
        raise NotFound("part of the API", tag)
    return visit.page("api/tag.html", tags=tags, tag=tag)


@pages.get("/api/<tag>/<id>")
async def show_operation(visit: Visit) -> Response:
    """An operation, with examples, and a form that asks it."""
    tag = visit.at["tag"]
    document = await visit.api("GET", "/openapi.json")
    for one in (tags := _tags(document)).get(tag, ()):
        if one.id == visit.at["id"]:
            detailed = _detailed(one, document)
            return visit.page("api/operation.html", tags=tags, tag=tag, one=detailed)
    raise NotFound("operation of the API", visit.at["id"])


def _tags(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """The operations by tag, without examples."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                found.setdefault(methods[method]["tags"][0], []).append(_operation(method, path, methods[method]))
    return found


def _operation(method: str, path: str, said: Mapping[str, Any]) -> Operation:
    return Operation(
        id=said["operationId"],
        method=method.upper(),
        path=path,
        summary=said["summary"],
        description=said["description"],
        parameters=said["parameters"],
        statuses=[(status, each["description"]) for status, each in sorted(said["responses"].items())],
        deprecated=said.get("deprecated", False),
    )


def _detailed(operation: Operation, document: Mapping[str, Any]) -> Operation:
    """The operation with its examples."""
    said, schemas = document["paths"][operation.path][operation.method.lower()], document["components"]["schemas"]
    contents = said.get("requestBody", {}).get("content", {})
    taken, done = contents.get("application/json"), min(said["responses"])
    replied = said["responses"][done].get("content", {}).get("application/json")
    return evolve(
        operation,
        body="" if taken is None else _json(example(taken["schema"], schemas, sent=True)),
        response="" if replied is None else _json(example(replied["schema"], schemas)),
        takes_form="multipart/form-data" in contents,
    )


def example(  # noqa: PLR0911 - one return for each kind of schema
    schema: Mapping[str, Any], schemas: Mapping[str, Any], *, name: str = "", sent: bool = False, depth: int = 0
) -> Any:
    """
    A value that fits a JSON Schema, as it may be for a field of this ``name``.

    One that is ``sent`` has the fields that are needed, and those that have a default other than null.
    """
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return example(kinds[0], schemas, name=name, sent=sent, depth=depth) if kinds else None
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        if depth >= DEEPEST:
            return {}
        wanted = schema.get("required", ()) if sent else schema["properties"]
        fields = {
            each: field
            for each, field in schema["properties"].items()
            if each in wanted or (sent and field.get("default") is not None)
        }
        return {each: example(field, schemas, name=each, sent=sent, depth=depth + 1) for each, field in fields.items()}
    if name in SAMPLES and isinstance(SAMPLES[name], KINDS.get(str(kind), ())):
        return SAMPLES[name]
    if kind == "array":
        return [] if depth >= DEEPEST - 1 else [example(schema.get("items", {}), schemas, sent=sent, depth=depth + 1)]
    if schema.get("default") is not None:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("format") == "date-time" or (kind == "string" and name.endswith("_at")):
        return TIME
    return {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "object": {}}.get(str(kind))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
