"""
YAML that others wrote, as texts, lists and objects: nothing is made of tags, and no text becomes a number or a time.

PyYAML, which takes 3 MB and 20 ms, is imported for the first document, by L{load_yaml} alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, Final

from pkgrepo.errors import Invalid

MOST_DEPTH: Final = 50
MOST_EVENTS: Final = 4_000_000
MOST_DIRECTIVES: Final = 10  # libyaml compares each with all others

_LOADING: Final = Lock()
_LONGEST: Final = 500  # characters of a sentence about a malformed one
_NULLS: Final = ("", "~", "null")
_COLLECTIONS: Final[Mapping[str, Callable[[], Any]]] = {"MappingStartEvent": dict, "SequenceStartEvent": list}


@cache
def load_yaml() -> Any:
    """
    Import PyYAML as a whole, or leave nothing of it behind.

    An import that fails halfway, for want of a descriptor, leaves submodules behind that the next import does not give
    to the package; and where libyaml cannot be loaded PyYAML goes on without it. Either would last until a restart.

    :raises OSError: no descriptor is left; :raises ImportError: it cannot be loaded
    """
    with _LOADING:
        try:
            import yaml  # noqa: PLC0415 - see above

            if not yaml.__with_libyaml__ and find_spec("yaml._yaml") is not None:
                raise ImportError("libyaml was not loaded")
        except BaseException:
            for name in [*sys.modules]:
                if name.partition(".")[0] in ("yaml", "_yaml"):
                    del sys.modules[name]
            os.close(os.open(os.devnull, os.O_RDONLY))  # which fails for want of a descriptor, too
            raise
    return yaml


def read_yaml(text: str, *, aliases: bool = False) -> Any:
    """
    A YAML document; scalars are texts, and null is None. It is read event by event, so that other threads can run.

    With ``aliases`` a value may be in several places: readers of such a document look at a bounded number of them.

    :raises Invalid: it is malformed, nested too deeply, has too many values, or an alias where none may be
    """
    yaml = load_yaml()
    if text.count("\n%") > MOST_DIRECTIVES:
        raise Invalid("it has too many directives")
    try:
        return _read_events(text, {} if aliases else None)
    except (yaml.YAMLError, ValueError) as error:
        raise Invalid(f"it is no YAML document: {' '.join(str(error).split())[:_LONGEST]}") from None


def read_mapping(data: bytes, name: str) -> dict[str, Any]:
    """
    A YAML document that is a mapping, with aliases; ``name`` is that of its file for errors.

    :raises Invalid: it is another document, or no text; see L{read_yaml}
    """
    try:
        found = read_yaml(data.decode("utf-8-sig"), aliases=True)
    except (Invalid, UnicodeDecodeError) as error:
        raise Invalid(f"{name} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Invalid(f"{name} is no mapping")
    return found


def _read_events(text: str, anchors: dict[str, Any] | None) -> Any:
    yaml = load_yaml()
    root: list[Any] = []
    stack: list[tuple[Any, list[Any]]] = [(root, [])]  # a collection, and the key in a mapping whose value comes next
    for number, event in enumerate(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
        if number > MOST_EVENTS or len(stack) > MOST_DEPTH:
            raise Invalid("it has too many values, or is nested too deeply")
        if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            stack.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        value = _value_of(event, anchors)
        collection, key = stack[-1]
        if isinstance(collection, list):
            collection.append(value)
        elif not key:
            key.append(value if isinstance(value, str) else None)
        else:
            collection[key.pop()] = value
        if isinstance(value, (dict, list)) and not isinstance(event, yaml.AliasEvent):
            stack.append((value, []))
    return root[0] if root else None


def _value_of(event: Any, anchors: dict[str, Any] | None) -> Any:
    """The value that an event of a node begins: a collection, a scalar, or what an alias stands for."""
    kind = type(event).__name__
    if kind == "AliasEvent":
        if anchors is None or event.anchor not in anchors:
            raise Invalid("it has an alias, and there may be none")
        return anchors[event.anchor]
    value: Any = None
    if kind in _COLLECTIONS:
        value = _COLLECTIONS[kind]()
    elif not event.implicit[0] or event.value not in _NULLS:
        value = event.value
    if anchors is not None and event.anchor is not None:
        anchors[event.anchor] = value
    return value
