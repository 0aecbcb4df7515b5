"""
Commands that make one call of the API, made of ``operations.json``, which describes them (see ``Command`` there).

A column, a field or a part of a sentence is a field of the record, dotted if it is one of an object in it, with a form
after a colon: ``created_at:ago``; ``:webhook`` is a form of the whole record. ``admin+user_manager`` are the names of
those that are true, ``route or 'here'`` the first one that is not empty, and ``{storage_name}/{name}`` a template. Of
``moved:yes/no`` it is the one or the other, and of ``files:count file`` how many. Sentences, fields of an object, notes
and errors may also name what was given, and the ``server`` that was asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import click

from pkgrepo.client.api import at
from pkgrepo.client.forms import FORMS, READ, RIGHT
from pkgrepo.client.groups import operations
from pkgrepo.client.http import Failed
from pkgrepo.client.named_objects import whole_id
from pkgrepo.client.named_versions import maybe_version, named_version
from pkgrepo.client.printer import Column, Printer, text_of
from pkgrepo.client.session import Session, checked, confirmed, remote
from pkgrepo.display import plural
from pkgrepo.errors import Invalid

Operation = Mapping[str, Any]

VERSION: Final = "NAME==VERSION"
COMMAS: Final = ("ACTIONS...", "FORMATS...")  # arguments whose words have no commas, and may have some between them
_NAMED: Final = re.compile(r"\{([^}]+)\}")
_UNWRITTEN: Final[tuple[object, ...]] = (None, False, ())
_EMPTY: Final[tuple[object, ...]] = (None, "", [])


def add_operations(group: click.Group, words: str) -> None:
    """Add to a group, which is called by these words, all commands that are made of operations."""
    for each in operations():
        if each.rpartition(" ")[0] == words:
            group.add_command(command_of(each))


def made_of(words: str, about: str) -> click.Command:
    """The command with these words, or the group of those that begin with them, of which ``about`` is the help."""
    if not about:
        return command_of(words)
    group = click.Group(words.rpartition(" ")[2], help=f"{about}.")
    add_operations(group, words)
    return group


def command_of(words: str) -> click.Command:
    """The command with these words."""
    calls = operations()[words]
    positions = [
        list(filter(None, each))
        for each in zip_longest(*([each for each in call["arguments"] if "option" not in each] for call in calls))
    ]
    keys = [_name(each[0]["usage"]) for each in positions]

    async def call(session: Session, /, **given: Any) -> None:
        await _call(session, *_chosen(calls, keys, given), given)

    def question(**given: Any) -> str:
        return fill(checked(lambda: _chosen(calls, keys, given))[0]["ask"], given)

    command = remote(call)
    if "ask" in calls[0]:
        command = confirmed(question)(command)
    for option, each in reversed(_named(calls).items()):
        every = all(any(argument.get("option") == option for argument in call["arguments"]) for call in calls)
        settings = {"is_flag": True} if each["usage"] == option else {"metavar": each["usage"], "required": every}
        command = click.option(option, help=each["help"], **settings)(command)
    for each in reversed({each["name"]: each for call in calls for each in call["options"]}.values()):
        command = _option(each)(command)
    for key, arguments in reversed([*zip(keys, positions, strict=True)]):
        usages = [*dict.fromkeys(each["usage"] for each in arguments)]
        if VERSION in usages:
            command = click.argument("version", required=False)(command)
        command = _argument(key, usages, needed=len(arguments) == len(calls))(command)
    return click.command(words.rpartition(" ")[2], help=calls[0]["help"])(command)


def _named(calls: Sequence[Operation]) -> dict[str, Mapping[str, Any]]:
    """The arguments that are written as options."""
    return {each["option"]: each for call in calls for each in call["arguments"] if "option" in each}


def _argument(key: str, usages: list[str], *, needed: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    usage = "NAME[==VERSION]" if VERSION in usages and len(usages) > 1 else "|".join(each.strip("'") for each in usages)
    if usage.endswith("..."):
        return click.argument(key, nargs=-1, required=needed)
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
    score, found, left, free = 0, dict[str, Any](), {key for key in keys if given[key] not in _UNWRITTEN}, iter(keys)
    for argument in call["arguments"]:
        key = _key(argument["option"]) if "option" in argument else next(free)
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
    if value in _UNWRITTEN or usage.startswith("["):
        return (0, value) if usage.startswith("[") else None
    if usage.startswith(("'", "--")):
        return (3, value) if value in (usage.strip("'"), True) else None
    written, _, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon or (rest and written in kinds):
        return (2, rest) if rest and written == kind else None
    return (1 if ("/" in usage) == ("/" in value) else 0), value


def _chosen(
    calls: Sequence[Operation], keys: Sequence[str], given: dict[str, Any]
) -> tuple[Operation, Mapping[str, Any]]:
    """The call that fits what is given, and its arguments by their usage. :raises Invalid: none fits"""
    versions = [any(each["usage"] == VERSION for each in call["arguments"]) for call in calls]
    if any(versions):
        named = named_version if all(versions) else maybe_version
        given["name"], given["version"] = named(given["name"], given["version"])
        keys = [*keys, "version"]
    keys = [*keys, *map(_key, _named(calls))]
    kinds = {each["usage"].partition(":")[0] for call in calls for each in call["arguments"] if ":" in each["usage"]}
    options = [each for call in calls for each in call["options"]]
    used = {_key(each["name"]) for each in options if _is_given(each, given, each.get("default"))}
    fitting = [
        (found, call)
        for call in calls
        if used <= {_key(each["name"]) for each in call["options"]}
        and (found := _fitting(call, keys, given, kinds)) is not None
    ]
    if not fitting:
        raise Invalid(calls[0].get("unfit", "this does not go together: see --help"))
    (_, written), operation = max(fitting, key=lambda each: each[0][0])
    return operation, written


async def _call(session: Session, operation: Operation, written: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    sent: dict[str, dict[str, Any]] = {"body": {}, "query": {}}
    path: dict[str, str] = {}
    for field, value in operation.get("sends", {}).items():
        always = {"in": "body" if operation["has_body"] else "query", "field": field}
        _put(sent, always, value and fill(value, given), given)
    for argument in operation["arguments"]:
        value = written[argument["usage"]]
        if "path" in argument:
            path |= dict(zip(argument["path"], (value, given.get("version")), strict=False))
        elif argument["usage"] == VERSION:
            sent[argument["in"]][argument["field"]] = given["version"]
        elif "field" in argument and value is not None:
            _put(sent, argument, value, given)
    for option in operation["options"]:
        if _is_given(option, given):
            _put(sent, option, given[_key(option["name"])], given)
    method, address = operation["call"].split()
    for argument in operation["arguments"]:
        if (listed := argument.get("listed")) is not None:
            name = argument["path"][0]
            place = _filled(listed["at"], path)
            path[name] = await whole_id(session.client, place, path[name], paged=listed["paged"])
    segments = _filled(address, path)
    await _send(session, operation, given, method, segments, sent)


def _filled(address: str, path: Mapping[str, str]) -> list[str]:
    """The segments of an address, with the parameters of the path in it."""
    return [path[each.strip("{}")] if each.startswith("{") else each for each in address.split("/")[1:]]


def _key(option: str) -> str:
    """The name of the parameter of an option."""
    return option.strip("-").partition("/")[0].replace("-", "_")


def _is_given(option: Mapping[str, Any], given: Mapping[str, Any], default: object = None) -> bool:
    value = given[_key(option["name"])]
    return value not in (None, (), default) and (value is not False or "/" in option["name"])


def _put(sent: Mapping[str, dict[str, Any]], what: Mapping[str, Any], value: Any, given: Mapping[str, Any]) -> None:
    """Set the field of an argument or option in what is sent."""
    if "read" in what:
        value = READ[what["read"]][1](what["name"], value)
    elif isinstance(value, tuple):
        if what.get("usage") in COMMAS:
            value = tuple(word for each in value for word in each.split(",") if word)
        value = [] if value == ("none",) else list(value) if what["in"] == "body" else " ".join(value)
    place = sent[what["in"]]
    *outer, last = what["field"].split(".")
    for each in outer:
        place = place.setdefault(each, {})
    place[fill(last, given)] = value


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
    told: Mapping[str, Any] = {}  # what the answer says besides its items
    if operation["paged"]:
        most = sent["query"].pop("limit", None)
        pages = [each async for each in client.pages(*segments, most=most, **sent["query"])]
        value: Any = [item for each in pages for item in each["items"]]
        told = pages[-1] if pages else {}
    elif "text" in operation:
        reply = await client.call(method, at(*segments), query=sent["query"])
        value = reply.body.decode().split("\n")[:-1]
    elif method == "GET":
        value = await client.get(*segments, **sent["query"])
    else:
        value = await client.change(method, *segments, body=body, **sent["query"])
    if isinstance(value, dict):
        told = value
    _show(printer, operation, value, {"server": client.url, **given, **told})


def _show(printer: Printer, operation: Operation, value: Any, values: Mapping[str, Any]) -> None:
    """Print what came of a call; ``values`` are the fields of the object, and what was given."""
    shown = [(title, cell(what)(values)) for title, what in map(_titled, operation.get("fields", ()))]
    printer.warnings(value)
    lines: Any = _value(operation["lines"], value) if "lines" in operation and not printer.as_json else ()
    for line in lines:
        printer.line(line)
    if "columns" in operation and not (printer.as_json and (shown or "whole" in operation)):
        if shown:
            printer.record(None, shown)
        records: Any = _value(operation["rows"], value) if "rows" in operation else value
        nothing = fill(operation.get("nothing", "nothing was found"), values)
        printer.table([_column(each) for each in operation["columns"]], records, nothing)
        for each in records if "warned" in operation else ():
            printer.warnings(each)
    elif "done" in operation:
        printer.done(fill(operation["tried" if values.get("dry_run") else "done"], values), value)
    else:
        printer.record(value, shown)
    for each in operation["notes"].split(" | ") if "notes" in operation else ():
        if note := _value(each, values):
            printer.note(text_of(note))
    if "fails" in operation and (sentence := _value(operation["fails"], values)):
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
    if " " in form and isinstance(value, int | list):
        return plural(value if isinstance(value, int) else len(value), *form.split()[1:])
    return FORMS[form](value) if form and value is not None else value


def _field(name: str, record: Any) -> Any:
    if not name:
        return record
    if "+" in name:
        return [each.replace("_", " ") for each in name.split("+") if record[each]] or None
    for each in name.split("."):
        record = record[each]
    return record
