"""Formats by any of their names, and what their configurations consist of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IFormat
from pkgrepo.model import Repository

# How callers of other servers name parts of a configuration, and of which format, if of one only.
_PART_ALIASES = {
    "maven_push_rules": ("push_rules", "maven"),
    "docker_push_rules": ("push_rules", "docker"),
    "package_retention": ("retention", None),
}

DESCRIPTIONS = {
    "auth": "Whether even public packages are only for people with an account.",
    "cache": "How long answers of upstreams are kept.",
    "config": "Where packages come from.",
    "default": "Whether images whose name begins with no storage and repository are in this one.",
    "page": "A text for people, in Markdown.",
    "policy": "What uploads may do, and which packages may pass.",
    "proxy": "Where packages come from, the route with the highest priority first.",
    "push_rules": "What publishers may do.",
    "quota": "How much may be kept.",
    "retention": "Which versions are removed after a while.",
    "trust": "Whose signatures count, and how long an image waits for one.",
}


def validated(format_: IFormat, config: Mapping[str, Any], pointer: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    A configuration as the format wants it kept: the fixed object, and the settings beside it.

    :raises Invalid: with a pointer that begins with ``pointer``
    """
    try:
        fixed, settings = format_.validate(config)
    except Invalid as error:
        raise Invalid(error.message, pointer + error.pointer) from None
    return fixed, settings


def warnings_of(formats: Mapping[str, IFormat], repository: Repository) -> list[str]:
    """What is to be said about the configuration of a repository, in sentences."""
    format_ = formats.get(repository.format)
    return [] if format_ is None else list(format_.warnings(repository))


def joined(format_: IFormat, configs: Mapping[str, Any]) -> dict[str, Any]:
    """
    The whole configuration, from the older form with one entry for each part.

    :raises Invalid: the entry of the format is no object
    """
    whole: dict[str, Any] = {}
    for key, value in configs.items():
        if is_whole(format_, key):
            if not isinstance(value, dict):
                raise Invalid("a configuration is an object", f"/configs/{key}")
            whole.update(value)
        else:
            whole[part_name(format_, key)] = value
    return whole


def part_name(format_: IFormat, key: str) -> str:
    """The name of a part of a format's configuration that callers may call otherwise; other keys stay as they are."""
    name, only = _PART_ALIASES.get(key, (key, None))
    return name if only in (None, format_.name) else key


def is_whole(format_: IFormat, key: str) -> bool:
    """Whether a configuration key means the format's own object rather than a part beside it."""
    return key == format_.name or key in format_.aliases


def parts(format_: IFormat) -> dict[str, Mapping[str, Any]]:
    """JSON Schema of each part of a format's configuration, by key, with what it refers to."""
    schema = format_.schema()
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    found: dict[str, Mapping[str, Any]] = {}
    for variant in _variants(schema, definitions):
        for key, value in variant.get("properties", {}).items():
            if key != "type":
                found.setdefault(key, {**value, "$defs": definitions})
    return found


def _variants(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in schema:
        return _variants(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        return [found for each in schema["anyOf"] for found in _variants(each, definitions)]
    return [schema]
