"""Parses the parts that the configurations of hosted repositories share in all formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from pkgrepo.errors import Invalid

C = TypeVar("C", bound=msgspec.Struct)


class Auth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whether reads of a public repository need credentials."""

    enabled: bool = False


def parse_hosted_config(
    config: Mapping[str, Any], kind: type[C], parts: Sequence[str], what: str
) -> tuple[C, dict[str, Any]]:
    """
    Parse a configuration as a ``kind``. Returns it with the settings: those of ``parts`` that are set, and ``x_`` keys.

    ``what`` names the format in messages.

    :raises Invalid: an unknown key or a wrong value, with its JSON pointer
    """
    type_ = config.get("type", "Hosted")
    if type_ == "Proxy":
        raise Invalid(f"proxy repositories of {what} are not available in this version", "/type")
    settings = {key: value for key, value in config.items() if key.startswith("x_")}
    rest = {key: value for key, value in config.items() if key not in settings}
    try:
        parsed = msgspec.convert({**rest, "type": type_}, kind)
    except msgspec.ValidationError as error:
        raise Invalid(*_explain(str(error))) from error
    for part in parts:
        value = getattr(parsed, part)
        if value is not None:
            settings[part] = msgspec.to_builtins(value)
    return parsed, settings


def _explain(message: str) -> tuple[str, str]:
    """Split the message of a msgspec error into its sentence and a JSON pointer."""
    text, _, where = message.partition(" - at `$")
    pointer = where.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
    unknown = re.search(r"unknown field `([^`]*)`", text)
    return text, f"{pointer}/{unknown[1]}" if unknown else pointer
