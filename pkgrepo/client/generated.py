"""
Commands that make one call of the API, made of ``operations.json``, which describes them (see ``Command`` there).

A column, a field or a part of a sentence is a field of the record, dotted if it is one of an object in it, with a form
after a colon: ``created_at:ago``; ``:webhook`` is a form of the whole record. ``admin+user_manager`` are the names of
those that are true, ``route or 'here'`` the first one that is not empty, and ``{storage_name}/{name}`` a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import click

from pkgrepo.client.forms import FORMS, READ, RIGHT
from pkgrepo.client.groups import operations
from pkgrepo.client.http import Failed
from pkgrepo.client.named_versions import maybe_version, named_version
from pkgrepo.client.printer import Column, text_of
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.errors import Invalid

Operation = Mapping[str, Any]

VERSION: Final = "NAME==VERSION"
_NAMED: Final = re.compile(r"\{([^}]+)\}")
_EMPTY: Final[tuple[object, ...]] = (None, "", [])


def add_operations(group: click.Group, words: str) -> None:
    """Add to a group, which is called by these words, all commands that are made of operations."""
    for each in operations():
        if each.rpartition(" ")[0] == words:
            group.add_command(command_of(each))


def command_of(words: str) -> click.Command:
    """The command with these words."""
    calls = operations()[words]
    positions = [
        list(filter(None, each))
        for each in zip_longest(*([each for each in call["arguments"] if "option" not in each] for call in calls))
    ]
    keys = [_name(each[0]["usage"]) for each in positions]

    async def call(session: Session, /, **given: Any) -> None:
        await _call(session, calls, keys, given)

    command = remote(call)
    if "ask" in calls[0]:
        command = confirmed(calls[0]["ask"])(command)
    for option, each in reversed(_named(calls).items()):
        every = all(any(argument.get("option") == option for argument in call["arguments"]) for call in calls)
        command = click.option(option, metavar=each["usage"], required=every, help=each["help"])(command)
    for each in reversed({each["name"]: each for call in calls for each in call["options"]}.values()):
        command = _option(each)(command)
    for key, at in reversed([*zip(keys, positions, strict=True)]):
        if any(each["usage"] == VERSION for each in at):
            command = click.argument("version", required=False)(command)
        command = _argument(key, [*dict.fromkeys(each["usage"] for each in at)], needed=len(at) == len(calls))(command)
    return click.command(words.rpartition(" ")[2], help=calls[0]["help"])(command)


def _named(calls: Sequence[Operation]) -> dict[str, Mapping[str, Any]]:
    """The arguments that are written as options."""
    return {each["option"]: each for call in calls for each in call["arguments"] if "option" in each}


def _argument(key: str, usages: list[str], *, needed: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    usage = "NAME[==VERSION]" if VERSION in usages[1:] else "|".join(each.strip("'") for each in usages)
    if usage.endswith("..."):
        return click.argument(key, nargs=-1, required=True)
    bare = usage.startswith("[")
    return click.argument(key, metavar=usage if needed or bare else f"[{usage}]", required=needed and not bare)


def _name(usage: str) -> str:
    if usage == VERSION:
        return "name"
    name = usage.strip("[].'").partition("[")[0].rpartition("/")[2].lower().replace(":", "_")
    return f"{name}_" if name == "url" else name  # which is an option of every command


def _option(option: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    on, slash, off = option["name"].partition("/")
    flags = [f"--{on}/--{off}" if slash else f"--{on}", *option.get("short", ())]
    settings: dict[str, Any] = {"help": option["help"]}
    match option:
        case {"type": "boolean"}:
            settings |= {"default": None} if slash else {"is_flag": True}
        case {"type": "array"}:
            settings |= {"multiple": True} | ({"type": click.Choice(option["enum"])} if "enum" in option else {})
        case {"enum": choices}:
            settings["type"] = click.Choice(choices)
        case {"type": "integer"}:
            limits = option.get("minimum"), option.get("maximum")
            settings["type"] = click.INT if limits == (None, None) else click.IntRange(*limits)
    if "read" in option:
        settings = {"help": option["help"], "metavar": READ[option["read"]][0], "multiple": option["type"] == "object"}
    if "needed" in option:
        settings["required"] = True
    if "default" in option:
        settings |= {"default": option["default"], "show_default": True}
    return click.option(option["name"].partition("/")[0].replace("-", "_"), *flags, **settings)


def _fitting(
    call: Operation, keys: Sequence[str], given: Mapping[str, Any], kinds: Collection[str]
) -> tuple[int, dict[str, Any]] | None:
    """How well what is written fits the arguments of a call, and these by their usage; None if it does not fit."""
    score, found, left, free = 0, dict[str, Any](), {key for key in keys if given[key] is not None}, iter(keys)
    for argument in call["arguments"]:
        key = argument["option"].strip("-") if "option" in argument else next(free)
        fit = _fit(argument["usage"], given[key], kinds)
        needed = ["version"] if argument["usage"] == VERSION else []
        if fit is None or any(given[each] is None for each in needed):
            return None
        left -= {key, *needed}
        score += fit[0]
        found[argument["usage"]] = fit[1]
    return None if left else (score, found)


def _fit(usage: str, value: Any, kinds: Collection[str]) -> tuple[int, Any] | None:
    """How well a text fits an argument, and what it stands for; ``kinds`` are those that other calls take."""
    kind, colon, _ = usage.partition(":")
    if value is None or usage.startswith("["):
        return (0, value) if usage.startswith("[") else None
    if usage.startswith("'"):
        return (3, value) if value == usage.strip("'") else None
    written, _, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon or (rest and written in kinds):
        return (2, rest) if rest and written == kind else None
    return (1 if ("/" in usage) == ("/" in value) else 0), value


async def _call(session: Session, calls: Sequence[Operation], keys: Sequence[str], given: dict[str, Any]) -> None:
    versions = [any(each["usage"] == VERSION for each in call["arguments"]) for call in calls]
    if any(versions):
        named = named_version if all(versions) else maybe_version
        given["name"], given["version"] = named(given["name"], given["version"])
        keys = [*keys, "version"]
    keys = [*keys, *(each.strip("-") for each in _named(calls))]
    kinds = {each["usage"].partition(":")[0] for call in calls for each in call["arguments"] if ":" in each["usage"]}
    fitting = [(found, call) for call in calls if (found := _fitting(call, keys, given, kinds)) is not None]
    if not fitting:
        raise Invalid(calls[0].get("unfit", "this does not go together: see --help"))
    (_, written), operation = max(fitting, key=lambda each: each[0][0])
    sent: dict[str, dict[str, Any]] = {"body": {}, "query": dict(operation.get("sends", {}))}
    path: dict[str, str] = {}
    for argument in operation["arguments"]:
        value = written[argument["usage"]]
        if "path" in argument:
            path |= dict(zip(argument["path"], (value, given.get("version")), strict=False))
        elif argument["usage"] == VERSION:
            sent[argument["in"]][argument["field"]] = given["version"]
        elif "field" in argument and value is not None:
            _put(sent, argument, value)
    for option in operation["options"]:
        value = given[option["name"].partition("/")[0].replace("-", "_")]
        if value is not None and value != () and (value is not False or "/" in option["name"]):
            _put(sent, option, value)
    method, address = operation["call"].split()
    segments = [path[each.strip("{}")] if each.startswith("{") else each for each in address.split("/")[1:]]
    await _send(session, operation, given, method, segments, sent)


def _put(sent: Mapping[str, dict[str, Any]], what: Mapping[str, Any], value: Any) -> None:
    """Set the field of an argument or option in what is sent."""
    if "read" in what:
        value = READ[what["read"]][1](what["name"], value)
    elif isinstance(value, tuple):
        value = [] if value == ("none",) else list(value)
    place = sent[what["in"]]
    *outer, last = what["field"].split(".")
    for each in outer:
        place = place.setdefault(each, {})
    place[last] = value


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
        raise Invalid(operation.get("unchanged", "say what to change: see --help"))
    if operation["paged"]:
        most = sent["query"].pop("limit", None)
        value: Any = await client.all_items(*segments, most=most, **sent["query"])
    elif method == "GET":
        value = await client.get(*segments, **sent["query"])
    else:
        value = await client.change(method, *segments, body=body, **sent["query"])
    values = {**given, **value} if isinstance(value, dict) else given
    shown = [(title, cell(what)(value)) for title, what in map(_titled, operation.get("fields", ()))]
    if "columns" in operation and not (shown and printer.as_json):
        if shown:
            printer.record(None, shown)
        records = value[operation["rows"]] if "rows" in operation else value
        printer.table([_column(each) for each in operation["columns"]], records, fill(operation["nothing"], values))
        for each in records if "warned" in operation else ():
            printer.warnings(each)
        return
    if "fields" in operation:
        printer.warnings(value)
        printer.record(value, shown)
    else:
        printer.done(fill(operation["tried" if given.get("dry_run") else "done"], values), value)
        printer.warnings(value)
    if "notes" in operation and (note := _value(operation["notes"], value)):
        printer.note(text_of(note))
    if "fails" in operation and (sentence := _value(operation["fails"], value)):
        raise Failed(text_of(sentence))


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
    if not name:
        return record
    if "+" in name:
        return [each.replace("_", " ") for each in name.split("+") if record[each]]
    for each in name.split("."):
        record = record[each]
    return record
