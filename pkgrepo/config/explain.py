"""The configuration told to people: what holds and why, and a file to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce

from attrs import frozen

from .keys import Key, iter_keys, keys_of, sections_of
from .settings import Config


@frozen
class Explanation:
    """One key: its value as TOML (``***`` for a secret, empty when unset) and what said so."""

    name: str
    value: str
    origin: str


def explain(config: Config) -> Iterator[Explanation]:
    """Every key with its value and origin, in the order of the sections."""
    for name, key in iter_keys(Config):
        *sections, _ = name.split(".")
        owner = reduce(getattr, sections, config)
        yield Explanation(name, _shown(key, getattr(owner, key.attribute)), config.origins.get(name, "default"))


def template() -> str:
    """A configuration file with every key, its default and its meaning, all commented out."""
    return "\n".join(["# pkgrepo's settings. What is commented out is the default.", *_template(Config, "")])


def _shown(key: Key, value: object) -> str:
    if value is None:
        return ""
    return "***" if key.kind.secret else key.kind.show(value)


def _template(owner: type, prefix: str) -> Iterator[str]:
    keys = keys_of(owner)
    if prefix:
        yield f"\n# {' '.join((owner.__doc__ or '').split())}"
    if keys:
        yield f"[{prefix}]"
    for key in keys.values():
        yield f"# {key.explanation}: {key.kind.what}"
        yield f"#{key.name} = {'' if key.default is None else json.dumps(key.default)}".rstrip()
    for name, inner in sections_of(owner).items():
        yield from _template(inner, f"{prefix}.{name}" if prefix else name)
