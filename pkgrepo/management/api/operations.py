"""
The description of the commands that call one operation, made from the tables of routes.

The client imports nothing of the server: it makes these commands of ``pkgrepo/client/operations.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from .command import Command
from .route import Route

_PARAMETER: Final = re.compile(r"<(?:path:)?(\w+)>")
_LEAST: Final = {"integer": {"minimum": 1}}  # of numbers in a query, which are of days or items
VERSION: Final = "NAME==VERSION"  # an argument for both path parameters, package and version


def operations(routes: Iterable[Route]) -> dict[str, dict[str, Any]]:
    """The description of the commands of these routes, by their words."""
    found: dict[str, dict[str, Any]] = {}
    for route in routes:
        if (command := route.command) is not None:
            words = " ".join(each for each in command.usage.split() if each.islower())
            arguments = command.usage.removeprefix(words).split()
            found[words] = dict(_described(route, command, arguments))
    return dict(sorted(found.items()))


def _described(route: Route, command: Command, arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    path = _PARAMETER.sub(r"{\1}", route.path)
    yield "call", f"{route.method} {path}"
    yield "help", "\n\n".join(filter(None, (f"{route.summary}.".replace("the caller may", "you may"), command.more)))
    places: dict[str, dict[str, Any]] = {
        each.name: {"in": "query", **_LEAST.get(each.kind, {}), **each.schema, "help": each.explanation}
        for each in route.parameters
    }
    places |= {name: {"in": "body", **field} for name, field in _fields(route.body)}
    if route.paged:
        places["limit"] = {"in": "query", "type": "integer", "minimum": 1, "help": "At most so many."}
    unbound = list(_PARAMETER.findall(route.path))
    bound = []
    for each in arguments:
        name = each.strip("[].").rpartition("/")[2].lower()
        if unbound:
            bound.append({"usage": each, "path": unbound[: 2 if each == VERSION else 1]})
            del unbound[: len(bound[-1]["path"])]
        else:
            bound.append({"usage": each, "field": name, "in": places[name]["in"]})
    assert not unbound, command.usage
    yield "arguments", bound
    options = [each.strip() for each in command.options.split(",") if each]
    yield "options", [_option(each, places) for each in options]
    yield from (("paged", route.paged), ("has_body", route.body is not None))
    yield from (
        (name, value.split(" | ") if name in ("columns", "fields") else value)
        for name in ("done", "tried", "ask", "sends", "columns", "fields", "rows", "nothing")
        if (value := getattr(command, name))
    )


def _option(text: str, places: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    head, _, field = text.partition(": ")
    name, *rest = head.split()
    field = field or name.partition("/")[0].replace("-", "_")
    short = [each for each in rest if each.startswith("-")]
    default = {"default": int(rest[0])} if rest and not short else {}
    return {"name": name, "field": field, **places[field], **default} | ({"short": short} if short else {})


def _fields(kind: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of a body: JSON type, meaning, default, choices and limits."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    _, components = msgspec.json.schema_components([kind])
    for name, field in components[kind.__name__]["properties"].items():
        named = components[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        kinds = [named, *named.get("anyOf", ())]
        kinds += [components[each["$ref"].rpartition("/")[2]] for each in kinds if "$ref" in each]
        found: dict[str, Any] = {"help": field["description"]}
        for key in ("type", "enum", "minimum", "maximum"):
            for each in kinds:
                if key not in found and each.get(key, "null") != "null":
                    found[key] = each[key]
        if field.get("default"):
            found["default"] = field["default"]
        yield name, found
