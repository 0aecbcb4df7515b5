"""
Form fields from the JSON Schema of a configuration, and the configuration from the form that a browser sends.

A field is named by the JSON pointer of its value. What a form leaves at its default is left out of the configuration;
of a list of objects, as many are read as the form has.

==========  ==============================================================  ==============================
kind        schema                                                          in the form
==========  ==============================================================  ==============================
flag        boolean                                                         a box
choice      enum; boolean that may be null                                  a selection
number      integer                                                         a number
text        string; string or integer, such as a duration                   a line
secret      string that is a password or a token                            a line that is not shown
page        string for Markdown                                             several lines
lines       array of strings                                                one on each line
pairs       object with any names                                           ``name = value`` on each line
group       object                                                          its fields
list        array of objects                                                its objects, and an empty one
==========  ==============================================================  ==============================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from pkgrepo.errors import Invalid
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.visits import Form

SECRETS: Final = frozenset({"password", "token"})
PAGES: Final = frozenset({"page"})
# ``config`` is another form of ``proxy``; the others have pages of their own.
LEFT_OUT: Final = frozenset({"/type", "/config", "/publishers", "/retention", "/policy/rules"})
LABELS: Final = {"url": "URL", "ca_file": "CA file", "cache_ttl": "Cache TTL", "negative_ttl": "Negative TTL"}
MOST_ENTRIES: Final = 33  # the longest list of the schemas, and an empty entry
_ARMOUR: Final = re.compile(r"-----BEGIN .*?-----END [^\n]*", re.S)  # PEM (RFC 7468), OpenPGP (RFC 9580 section 6.2)
_MISSING: Final = object()


@frozen
class Field:
    """
    One field of a form; ``children`` are the fields of a group, or the groups of a list.

    With ``settable`` a group has a box that tells whether it is there at all, since its defaults say something else.
    ``changed``: it has another value than by default.
    """

    name: str
    label: str
    kind: str
    value: Any = None
    help: str = ""
    choices: Sequence[tuple[str, str]] = ()
    required: bool = False
    settable: bool = False
    changed: bool = False
    children: Sequence[Field] = ()


def fields_of(schema: Mapping[str, Any], type_: str, config: Mapping[str, Any]) -> list[Field]:
    """The fields of the configuration of a repository type, with the values of ``config``; what is needed first."""
    definitions, variant = _variant(schema, type_)
    found = _children("", variant, definitions, config)
    return sorted(found, key=lambda each: (not each.required and each.name != "/proxy", each.kind == "page"))


def config_from(schema: Mapping[str, Any], type_: str, form: Form) -> dict[str, Any]:
    """
    The configuration that the fields of a form describe.

    :raises Invalid: a number is none, or a line has no ``=``
    """
    definitions, variant = _variant(schema, type_)
    return {"type": type_} | _given("", variant, definitions, form)


def kept_elsewhere(before: Mapping[str, Any], config: dict[str, Any]) -> None:
    """Take over into a configuration of a form what the form does not have, since it has pages of its own."""
    for pointer in sorted(LEFT_OUT - {"/type", "/config"}):
        *above, key = pointer[1:].split("/")
        source: Any = before
        for each in above:
            source = source.get(each) or {}
        if source.get(key):
            target = config
            for each in above:
                target = target.setdefault(each, {})
            target[key] = source[key]


def object_fields(schema: Mapping[str, Any], value: Mapping[str, Any], leave_out: Sequence[str] = ()) -> list[Field]:
    """The fields of one object, whose groups are all shown; ``leave_out`` are keys that it has no fields for."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    [best] = _alternatives(schema, definitions)
    found = [each for each in _children("", best, definitions, value) if each.name[1:] not in leave_out]
    return [evolve(each, required=each.required or each.kind == "group") for each in found]


def object_from(schema: Mapping[str, Any], form: Form, leave_out: Sequence[str] = ()) -> dict[str, Any]:
    """
    The object that the fields of a form describe.

    :raises Invalid: a number is none, or a line has no ``=``
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    [best] = _alternatives(schema, definitions)
    return _given("", best, definitions, form, leave_out)


def _variant(schema: Mapping[str, Any], type_: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    for each in _alternatives(schema, definitions):
        if each.get("properties", {}).get("type", {}).get("enum") == [type_]:
            return definitions, {"required": [], **each}
    raise Invalid(said("this format has no repositories of type %(type)s", type=type_), "/config/type")


def _alternatives(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "anyOf" in node:
        for each in node["anyOf"]:
            yield from _alternatives(each, definitions)
    elif "$ref" in node:
        yield from _alternatives(definitions[node["$ref"].rpartition("/")[2]], definitions)
    else:
        yield node


def _chosen(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], bool]:
    """The kind of the field for a schema, the alternative that it shows, and whether the value may be null."""
    every = list(_alternatives(node, definitions))
    some = [each for each in every if each.get("type") != "null"]
    nullable = len(some) < len(every)
    best = next((each for each in some if each.get("type") == "object"), some[-1])
    match best.get("type"):
        case "object":
            kind = "group" if "properties" in best else "pairs"
        case "array":
            items = list(_alternatives(best["items"], definitions))
            kind = "list" if any("properties" in each for each in items) else "lines"
        case "boolean":
            kind = "choice" if nullable else "flag"
        case "integer":
            kind = "number"
        case _:
            kind = "choice" if "enum" in best else "text"
    return kind, best, nullable


def _field(
    name: str, node: Mapping[str, Any], definitions: Mapping[str, Any], value: Any, *, required: bool = False
) -> Field:
    kind, best, nullable = _chosen(node, definitions)
    key = name.rpartition("/")[2]
    default = _default(node)
    changed = value is not _MISSING and value != default
    if value is _MISSING:
        value = default
    children: Sequence[Field] = ()
    choices: list[tuple[str, str]] = []
    match kind:
        case "group":
            value = value if isinstance(value, dict) else {} if value is None else {_simple(best): value}
            children = _children(name, best, definitions, value)
            changed = any(each.changed for each in children)
        case "list":
            children = _entries(name, best, definitions, value or [])
        case "lines":
            value = "\n".join(value or ())
        case "pairs":
            value = "\n".join(f"{one} = {other}" for one, other in (value or {}).items())
        case "choice":
            choices = [("", marked("by default")), *_choices(best)] if nullable else _choices(best)
            value = _shown(value)
        case "text":
            kind = "secret" if key in SECRETS else "page" if key in PAGES else "text"
    return Field(
        name=name,
        label=label_of(key),
        kind=kind,
        value=value,
        help=_plain(node.get("description", "")),
        choices=choices,
        required=required,
        settable=kind == "group" and nullable and any(each.get("default") for each in best["properties"].values()),
        changed=changed,
        children=children,
    )


def label_of(key: str) -> str:
    """What the field with a key is called; catalogs of the console have these, too."""
    return LABELS.get(key) or key.replace("_", " ").capitalize()


def _children(
    name: str, best: Mapping[str, Any], definitions: Mapping[str, Any], value: Mapping[str, Any]
) -> list[Field]:
    return [
        _field(
            f"{name}/{key}",
            each,
            definitions,
            value.get(key, _MISSING),
            required=key in best.get("required", ()),
        )
        for key, each in best["properties"].items()
        if f"{name}/{key}" not in LEFT_OUT
    ]


def _entries(name: str, best: Mapping[str, Any], definitions: Mapping[str, Any], values: Sequence[Any]) -> list[Field]:
    """A group for each value, and one without, for a further object."""
    _, inner, _ = _chosen(best["items"], definitions)
    found = []
    for at, value in enumerate([*values, {}]):
        whole = value if isinstance(value, dict) else {_simple(inner): value}
        children = _children(f"{name}/{at}", inner, definitions, whole)
        found.append(Field(f"{name}/{at}", f"No. {at + 1}", "group", value, required=True, children=children))
    return found


def _read(name: str, node: Mapping[str, Any], definitions: Mapping[str, Any], form: Form) -> Any:
    kind, best, nullable = _chosen(node, definitions)
    text = form.text(name)
    value: Any = _MISSING
    match kind:
        case "group":
            return _read_group(name, node, definitions, form)
        case "list":
            return [each for each in _read_entries(name, best, definitions, form) if each is not _MISSING] or _MISSING
        case "flag":
            value = form.flag(name)
        case "lines":
            value = _ARMOUR.findall(text) or form.lines(name) or _MISSING
        case "pairs":
            value = dict(_pair(name, line) for line in form.lines(name)) or _MISSING
        case "choice" if text:
            value = text == "yes" if best.get("type") == "boolean" else text
        case "number" if text:
            value = _number(name, text)
        case "text" if text:
            takes_numbers = any(each.get("type") == "integer" for each in _alternatives(node, definitions))
            value = int(text) if takes_numbers and text.isascii() and text.isdigit() and len(text) < 18 else text
    # null is another value than the default where both exist
    return _MISSING if not nullable and "default" in node and value == _default(node) else value


def _read_group(name: str, node: Mapping[str, Any], definitions: Mapping[str, Any], form: Form) -> Any:
    _, best, nullable = _chosen(node, definitions)
    given = _given(name, best, definitions, form)
    return given if given or (nullable and form.flag(f"set {name}")) else _MISSING


def _given(
    name: str, best: Mapping[str, Any], definitions: Mapping[str, Any], form: Form, leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of an object that a form does not leave at their defaults."""
    read = {
        key: _read(f"{name}/{key}", each, definitions, form)
        for key, each in best["properties"].items()
        if f"{name}/{key}" not in LEFT_OUT and key not in leave_out
    }
    return {key: value for key, value in read.items() if value is not _MISSING}


def _read_entries(name: str, best: Mapping[str, Any], definitions: Mapping[str, Any], form: Form) -> Iterator[Any]:
    _, inner, _ = _chosen(best["items"], definitions)
    needed = inner.get("required", [])
    for at in range(MOST_ENTRIES):
        if any(form.text(f"{name}/{at}/{key}") for key in needed):  # an entry without them is an empty one
            yield _read_group(f"{name}/{at}", inner, definitions, form)


def _default(node: Mapping[str, Any]) -> Any:
    """The default as JSON has it: schemas that are made of types have tuples."""
    value = node.get("default")
    return list(value) if isinstance(value, tuple) else value


def _simple(best: Mapping[str, Any]) -> str:
    """The field of an object for which another form of the object is the value alone: the one that it needs."""
    return str(best["required"][0])


def _choices(best: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(each, each) for each in best.get("enum", ("yes", "no"))]


def _shown(value: Any) -> str:
    return str({True: "yes", False: "no", None: ""}.get(value, value))


def _plain(text: str) -> str:
    """A docstring as a sentence for people, without its markup."""
    return re.sub(r"``|,? see L\{[^}]*\}|See L\{[^}]*\}\.?", "", " ".join(text.split()))


def _pair(name: str, line: str) -> tuple[str, str]:
    one, equals, other = (part.strip() for part in line.partition("="))
    if not equals:
        raise Invalid(marked("each line is a name, an equals sign and a value"), name)
    return one, other


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise Invalid(said("%(text)s is no whole number", text=repr(text)), name)
    return int(text)
