"""The parts of a format's configuration: names, schemas, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IFormat
from pkgrepo.model import Repository

# Names of parts that clients of other servers use: our name, and the only format that has it (None: every format).
_PART_ALIASES = {
    "maven_push_rules": ("push_rules", "maven"),
    "docker_push_rules": ("push_rules", "docker"),
    "package_retention": ("retention", None),
}

DESCRIPTIONS = {
    "auth": "Whether reads of a public repository need credentials.",
    "cache": "How long responses of upstream servers are cached.",
    "config": "The upstream servers of the repository.",
    "default": "Whether image names without storage and repository refer to this repository.",
    "page": "A description of the repository, in Markdown.",
    "policy": "Rules for uploads and for the packages that are served.",
    "proxy": "The upstream routes of the repository; the one with the highest priority is tried first.",
    "push_rules": "Rules for pushes.",
    "quota": "The maximum size of the repository.",
    "retention": "Which versions are removed automatically.",
    "trust": "The public keys that are trusted, and how long an unsigned image is kept.",
}


def validated(format_: IFormat, config: Mapping[str, Any], pointer: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    A valid configuration as it is stored: the fixed object, and the settings.

    :raises Invalid: it is not valid; the pointer of the error begins with ``pointer``
    """
    try:
        fixed, settings = format_.validate(config)
    except Invalid as error:
        raise Invalid(error.message, pointer + error.pointer) from None
    return fixed, settings


def warnings_of(formats: Mapping[str, IFormat], repository: Repository) -> list[str]:
    """Warnings about the configuration of a repository, as sentences."""
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
    """The name of a configuration part, from one of its aliases; other keys are returned unchanged."""
    name, only = _PART_ALIASES.get(key, (key, None))
    return name if only in (None, format_.name) else key


def is_whole(format_: IFormat, key: str) -> bool:
    """Whether a key names the whole configuration of the format, not a part of it."""
    return key == format_.name or key in format_.aliases


def parts(format_: IFormat) -> dict[str, Mapping[str, Any]]:
    """The JSON Schema of each part of a format's configuration by key, with the definitions that it refers to."""
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
