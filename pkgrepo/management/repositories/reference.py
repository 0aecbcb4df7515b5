"""
The page of all repository configurations in the book, made of their JSON Schemas.

A test compares it with ``pkgrepo/docs/configuration.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_INTRODUCTION = """\
# Repository configuration

Look up what the configuration of a repository may have. It is the `config` of `POST /api/repository`, of
`pkgrepo repo apply` and of the console, and `GET` and `PUT /api/repository/ID/config` read and replace it;
`PATCH /api/repository/ID/config/KEY` changes single fields. A key with dots is a field of an object:
`policy.keep_removed` is `{"policy": {"keep_removed": true}}`. What begins with `x_` is kept and means nothing to the
server.
"""

Schema = Mapping[str, Any]


def configuration_page(schemas: Mapping[str, Schema]) -> str:
    """
    The page, in Markdown, of the schemas of formats by their names.

    Rows that all formats have for a type of repositories are shown once.
    """
    types: dict[str, dict[str, list[str]]] = {}
    for name, schema in schemas.items():
        definitions = schema.get("$defs", {})
        for each in _alternatives(schema, definitions):
            (type_,) = each["properties"]["type"]["enum"]
            fields = {key: value for key, value in each["properties"].items() if key != "type"}
            rows = [row for key, value in fields.items() for row in _rows(key, value, definitions)]
            types.setdefault(type_, {})[name] = rows
    lines = [_INTRODUCTION]
    for type_, found in types.items():
        first, *others = found.values()
        common = [row for row in first if all(row in each for each in others)]
        lines += _table(f"{type_} repositories of every format", common)
        for name, rows in found.items():
            lines += _table(f"{type_} repositories: {name}", [each for each in rows if each not in common])
    return "\n".join(lines).rstrip() + "\n"


def _table(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    return [f"## {title}\n", "| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _rows(key: str, value: Schema, definitions: Schema) -> Iterator[str]:
    kinds = [each for each in _alternatives(value, definitions) if each.get("type") != "null"]
    objects = [each for each in kinds if "properties" in each]
    default = value.get("default")
    shown = "" if default is None or objects else f"`{json.dumps(default)}`"
    words = " or ".join(dict.fromkeys(_kind(each, definitions) for each in kinds))
    yield f"| `{key}` | {words} | {shown} | {value.get('description', '')} |".replace("\n", " ")
    for each in objects:
        for inner, field in each["properties"].items():
            yield from _rows(f"{key}.{inner}", field, definitions)
    for each in kinds:
        for item in _alternatives(each.get("items", {}), definitions):
            for inner, field in item.get("properties", {}).items():
                yield from _rows(f"{key}[].{inner}", field, definitions)


def _kind(schema: Schema, definitions: Schema) -> str:
    """The values that a schema allows, in words."""
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if schema.get("type") == "array":
        inner = dict.fromkeys(_kind(each, definitions) for each in _alternatives(schema.get("items", {}), definitions))
        return f"list of {' or '.join(inner)}"
    words = {"boolean": "true or false", "string": "text", "integer": "whole number"}
    kind = str(schema.get("type", "any value"))
    text = words.get(kind, kind)
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([text, *bounds])


def _alternatives(schema: Schema, definitions: Schema) -> list[Schema]:
    """The schemas that a schema stands for, without references."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return [inner for each in schema["anyOf"] for inner in _alternatives(each, definitions)]
    return [schema] if schema else []
