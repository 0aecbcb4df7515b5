"""
Commands that make one call of the API, made of ``operations.json``, which describes them (see ``Command`` there).

A column, a field or a part of a sentence is a field of the record, dotted if it is one of an object in it, with a form
after a colon: ``created_at:ago``. ``admin+user_manager`` are the names of those that are true, ``route or 'here'`` the
first one that is not empty, and ``{storage_name}/{name}`` a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import click

from pkgrepo.client.groups import operations
from pkgrepo.client.named_versions import named_version
from pkgrepo.client.printer import Column, ago, text_of, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import browser, size
from pkgrepo.errors import Invalid

Operation = Mapping[str, Any]

VERSION: Final = "NAME==VERSION"
# How values are written; "on/off" is a form, too.
FORMS: Final[Mapping[str, Callable[[Any], object]]] = {
    "ago": ago,
    "time": time_with_age,
    "browser": browser,
    "joined": "; ".join,
    "number": lambda value: value,
    "size": size,
}
RIGHT: Final = ("number", "size")  # forms of columns that are aligned to the right
_NAMED: Final = re.compile(r"\{([^}]+)\}")
_EMPTY: Final[tuple[object, ...]] = (None, "", [])


def add_operations(group: click.Group, words: str) -> None:
    """Add to a group, which is called by these words, all commands that are made of operations."""
    for each in operations():
        if each.rpartition(" ")[0] == words:
            group.add_command(command_of(each))


def command_of(words: str) -> click.Command:
    """The command with these words."""
    operation = operations()[words]

    async def call(session: Session, /, **given: Any) -> None:
        await _call(session, operation, given)

    command = remote(call)
    if "ask" in operation:
        command = confirmed(operation["ask"])(command)
    for option in reversed(operation["options"]):
        command = _option(option)(command)
    for argument in reversed(operation["arguments"]):
        if argument["usage"] == VERSION:
            command = click.argument("version", required=False)(command)
        command = _argument(argument["usage"])(command)
    return click.command(words.rpartition(" ")[2], help=operation["help"])(command)


def _argument(usage: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    if usage.endswith("..."):
        return click.argument(_name(usage), nargs=-1, required=True)
    return click.argument(_name(usage), metavar=usage, required=not usage.startswith("["))


def _name(usage: str) -> str:
    return "name" if usage == VERSION else usage.strip("[].").rpartition("/")[2].lower()


def _option(option: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    on, slash, off = option["name"].partition("/")
    flags = [f"--{on}/--{off}" if slash else f"--{on}", *option.get("short", ())]
    settings: dict[str, Any] = {"help": option["help"]}
    match option:
        case {"type": "boolean"}:
            settings |= {"default": None} if slash else {"is_flag": True}
        case {"enum": choices}:
            settings["type"] = click.Choice(choices)
        case {"type": "integer"}:
            limits = option.get("minimum"), option.get("maximum")
            settings["type"] = click.INT if limits == (None, None) else click.IntRange(*limits)
        case {"type": "array"}:
            settings["multiple"] = True
    if "default" in option:
        settings |= {"default": option["default"], "show_default": True}
    return click.option(option["name"].partition("/")[0].replace("-", "_"), *flags, **settings)


async def _call(session: Session, operation: Operation, given: dict[str, Any]) -> None:
    if any(each["usage"] == VERSION for each in operation["arguments"]):
        given["name"], given["version"] = named_version(given["name"], given["version"])
    sent: dict[str, dict[str, Any]] = {"body": {}, "query": dict(operation.get("sends", {}))}
    path: dict[str, str] = {}
    for argument in operation["arguments"]:
        value = given[_name(argument["usage"])]
        if "path" in argument:
            path |= dict(zip(argument["path"], (value, given.get("version")), strict=False))
        elif isinstance(value, tuple):
            sent[argument["in"]][argument["field"]] = [] if value == ("none",) else list(value)
        elif value is not None:
            sent[argument["in"]][argument["field"]] = value
    for option in operation["options"]:
        value = given[option["name"].partition("/")[0].replace("-", "_")]
        if value is not None and value != () and (value is not False or "/" in option["name"]):
            sent[option["in"]][option["field"]] = list(value) if isinstance(value, tuple) else value
    method, address = operation["call"].split()
    segments = [path[each.strip("{}")] if each.startswith("{") else each for each in address.split("/")[1:]]
    await _send(session, operation, given, method, segments, sent)


async def _send(
    session: Session,
    operation: Operation,
    given: Mapping[str, Any],
    method: str,
    segments: list[str],
    sent: Mapping[str, dict[str, Any]],
) -> None:
    client, printer = session.client, session.printer
    body = sent["body"] if operation["has_body"] else None
    if method == "PATCH" and not body:
        raise Invalid("say what to change: see --help")
    if operation["paged"]:
        most = sent["query"].pop("limit", None)
        value: Any = await client.all_items(*segments, most=most, **sent["query"])
    elif method == "GET":
        value = await client.get(*segments, **sent["query"])
    else:
        value = await client.change(method, *segments, body=body, **sent["query"])
    values = {**given, **value} if isinstance(value, dict) else given
    if "columns" in operation:
        records = value[operation["rows"]] if "rows" in operation else value
        printer.table([_column(each) for each in operation["columns"]], records, fill(operation["nothing"], values))
        return
    printer.warnings(value)
    if "fields" in operation:
        printer.record(value, [(title, cell(what)(value)) for title, what in map(_titled, operation["fields"])])
    else:
        printer.done(fill(operation["tried" if given.get("dry_run") else "done"], values), value)


def _titled(text: str) -> tuple[str, str]:
    title, _, what = text.partition(": ")
    return title, what


def _column(text: str) -> Column:
    title, what = _titled(text)
    return Column(title, cell(what), right=what.rpartition(":")[2] in RIGHT)


def cell(what: str) -> Callable[[Any], object]:
    """A function of a record: what is in a column, as the module says."""
    return partial(fill, what) if "{" in what else partial(_value, what)


def fill(template: str, record: Any) -> str:
    """A template with the fields of a record."""
    return _NAMED.sub(lambda found: text_of(_value(found[1], record)), template)


def _value(what: str, record: Any) -> object:
    names, _, form = what.partition(":")
    value: Any = None
    for name in names.split(" or "):
        if name.startswith("'"):
            return name.strip("'")
        if (value := _field(name, record)) not in _EMPTY:
            break
    if "/" in form:
        return form.split("/")[0 if value else 1]
    return FORMS[form](value) if form and value is not None else value


def _field(name: str, record: Any) -> Any:
    if "+" in name:
        return [each.replace("_", " ") for each in name.split("+") if record[each]]
    for each in name.split("."):
        record = record[each]
    return record
