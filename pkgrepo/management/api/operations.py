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
_SHOWN: Final = (  # what is said of a command as it is
    *(
        "done",
        "tried",
        "ask",
        "sends",
        "columns",
        "fields",
        "rows",
        "nothing",
        "lines",
        "whole",
        "notes",
        "fails",
        "unfit",
        "unchanged",
        "warned",
    ),
)
_NULL: Final = re.compile("; null [^.]*")  # which no option can be
ID: Final = "ID"  # an argument that may be a name of what has the id, or the beginning of it
VERSION: Final = "NAME==VERSION"  # an argument for both path parameters, package and version


def operations(routes: Iterable[Route]) -> dict[str, list[dict[str, Any]]]:
    """The description of the commands of these routes, by their words: the calls of which each makes one."""
    found: dict[str, list[dict[str, Any]]] = {}
    every = [*routes]
    lists = {each.path: each.paged for each in every if each.method == "GET"}
    for route in every:
        for command in route.commands:
            words, *arguments = _words(command.usage)
            described = dict(_described(route, command, arguments))
            _name_lists(described["arguments"], route.path, lists)
            found.setdefault(words, []).append(described)
    return dict(sorted(found.items()))


def _name_lists(arguments: Iterable[dict[str, Any]], path: str, lists: Mapping[str, bool]) -> None:
    """Note with each argument that is an id the list of what has one, which is the path before it."""
    for each in arguments:
        if each["usage"] == ID:
            place = path.partition(f"/<{each['path'][0]}>")[0]
            if place in lists:
                each["listed"] = {"at": _PARAMETER.sub(r"{\1}", place), "paged": lists[place]}


def _words(usage: str) -> list[str]:
    """The words of a command, then its arguments."""
    parts = usage.split()
    count = next((number for number, each in enumerate(parts) if not each[0].islower() or ":" in each), len(parts))
    return [" ".join(parts[:count]), *parts[count:]]


def _described(route: Route, command: Command, arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    path = _PARAMETER.sub(r"{\1}", route.path)
    yield "call", f"{route.method} {path}"
    about = command.about or f"{route.summary}.".replace("the caller may", "you may")
    yield "help", "\n\n".join(filter(None, (about, command.more)))
    places: dict[str, dict[str, Any]] = {
        each.name: {"in": "query", **_LEAST.get(each.kind, {}), **each.schema, "help": each.explanation}
        for each in route.parameters
    }
    places |= {name: {"in": "body", **field} for name, field in _fields(route.body)}
    if route.paged or "limit" in places:
        places["limit"] = {"in": "query", "type": "integer", "minimum": 1, "help": "At most so many."}
    yield "arguments", list(_arguments(route, command, arguments, places))
    options = [each.strip() for each in command.options.split(",") if each]
    yield "options", [_option(each, places, command.said) for each in options]
    yield from (("paged", route.paged), ("has_body", route.body is not None))
    if route.media_type.startswith("text/"):
        yield "text", True
    yield from (
        (name, value.split(" | ") if name in ("columns", "fields") else value)
        for name in _SHOWN
        if (value := getattr(command, name))
    )


def _arguments(
    route: Route, command: Command, usages: Sequence[str], places: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What each argument stands for: parameters of the path, or a field of the body or query."""
    unbound = list(_PARAMETER.findall(route.path))
    option = ""
    for each, following in zip(usages, [*usages[1:], "--"], strict=False):
        if each.startswith("--"):
            option = each
            if not following.startswith("--"):
                continue
        usage, bound, field = (each, "", "") if each == VERSION else each.partition("=")
        bound = bound or "=" * each.startswith(("'", "--"))
        argument: dict[str, Any] = {"usage": usage}
        if unbound and not bound:
            argument["path"] = unbound[: 2 if usage == VERSION else 1]
            del unbound[: len(argument["path"])]
        elif field := field or ("" if bound else usage.strip("[].").partition("[")[0].rpartition("/")[2].lower()):
            argument |= {"field": field, "in": places[field.partition(".")[0]]["in"]}
        if option:
            argument |= {"option": option, "help": command.said.get(option) or places[field]["help"]}
        yield argument
        option = ""
    assert not unbound, command.usage


def _option(text: str, places: Mapping[str, Mapping[str, Any]], said: Mapping[str, str]) -> dict[str, Any]:
    head, _, field = text.partition(": ")
    name, *rest = head.split()
    name, _, read = name.partition(":")
    field, _, of_field = field.partition(":")
    needed, name = name.endswith("!"), name.removesuffix("!")
    field = field or name.partition("/")[0].replace("-", "_")
    found: dict[str, Any] = {"name": name, "field": field, **places[field]}
    for each in rest:
        if each.startswith("-"):
            found.setdefault("short", []).append(each)
        else:
            found["default"] = int(each) if each.isdigit() else [each] if found.get("type") == "array" else each
    if read or of_field:
        found["read"] = read or of_field
    found["help"] = said.get(f"--{name}", _NULL.sub("", found["help"]))
    return found | ({"needed": True} if needed else {})


def _fields(kind: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of a body: JSON type, meaning, default, choices and limits."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    _, components = msgspec.json.schema_components([kind])
    yield from _properties(components, kind.__name__)


def _properties(components: Mapping[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in components[kind]["properties"].items():
        named = components[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        kinds = [named, *named.get("anyOf", ())]
        kinds += [components[each["$ref"].rpartition("/")[2]] for each in kinds if "$ref" in each]
        found: dict[str, Any] = {"help": field["description"]}
        for key in ("type", "enum", "minimum", "maximum"):
            for each in kinds:
                if key not in found and each.get(key, "null") != "null":
                    found[key] = each[key]
        if found.get("type") == "array" and (choices := field.get("items", {}).get("enum")):
            found["enum"] = choices
        if field.get("default"):
            found["default"] = field["default"]
        yield name, found
        for each in kinds:
            if "properties" in each:
                yield from ((f"{name}.{inner}", rest) for inner, rest in _properties(components, each["title"]))
