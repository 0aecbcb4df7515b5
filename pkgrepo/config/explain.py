"""Shows the configuration to people: every value with its origin, and a template file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from attrs import frozen

from .keys import REQUIRED, Key, iter_keys, keys_of, sections_of
from .kinds import toml
from .settings import Config


@frozen
class Explanation:
    """One key: its value as TOML (``***`` for a secret, empty if unset) and its origin."""

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
    if value is None and key.default is None:
        return ""
    return "***" if key.kind.secret else key.kind.show(value)


def _template(owner: type, prefix: str) -> Iterator[str]:
    if prefix:
        yield f"\n# {summary(owner)}"
    keys = keys_of(owner)
    plain = [key for key in keys.values() if key.kind.item is None]
    if plain and prefix:
        yield f"[{prefix}]"
    for key in plain:
        yield from _template_of_key(key)
        if key.kind.secret:
            yield f"# name of a file that holds it, instead of {key.name}"
            yield f"#{key.name}_file ="
    for key in keys.values():
        if key.kind.item is not None:
            yield f"\n# {summary(key.kind.item)}"
            yield f"#[[{prefix}.{key.name}]]"
            for inner in keys_of(key.kind.item).values():
                yield from _template_of_key(inner)
    for name, section in sections_of(owner).items():
        yield from _template(section, f"{prefix}.{name}" if prefix else name)


def _template_of_key(key: Key) -> Iterator[str]:
    needed = "needed; " if key.default is REQUIRED else ""
    yield f"# {key.explanation} ({needed}{key.kind.what})"
    default = "" if key.default is None or key.default is REQUIRED else toml(key.default)
    yield f"#{key.name} = {default}".rstrip()


def summary(owner: type) -> str:
    """The meaning of a section, from the first line of its docstring."""
    return (owner.__doc__ or "").replace("``", "").strip().partition("\n")[0]
