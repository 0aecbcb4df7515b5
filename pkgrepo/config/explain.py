"""
The settings for people: every value with its origin, a template file, and the page of the book.

A test compares the page with ``pkgrepo/docs/settings.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from types import MappingProxyType

from attrs import frozen

from .keys import REQUIRED, Key, Section, iter_keys, keys_of, sections_of
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
        yield Explanation(name, key.show(getattr(owner, key.attribute)), config.origins.get(name, "default"))


def template(chosen: Mapping[str, object] = MappingProxyType({})) -> str:
    """
    A configuration file with every key, its default and its meaning, commented out unless a value is ``chosen`` for its
    dotted name.
    """
    return "\n".join(["# pkgrepo's settings. What is commented out is the default.", *_template(Config, "", chosen)])


def _template(owner: type[Section], prefix: str, chosen: Mapping[str, object]) -> Iterator[str]:
    if prefix:
        yield f"\n# {summary(owner)}"
    keys = keys_of(owner)
    plain = [key for key in keys.values() if key.kind.item is None]
    if plain and prefix:
        yield f"[{prefix}]"
    for key in plain:
        yield from _template_of_key(key, chosen.get(_join(prefix, key.name)))
        if key.kind.secret:
            yield f"# name of a file that holds it, instead of {key.name}"
            yield f"#{key.name}_file ="
    for key in keys.values():
        if key.kind.item is not None:
            yield f"\n# {summary(key.kind.item)}"
            yield f"#[{_join(prefix, key.name)}.NAME]" if key.kind.named else f"#[[{_join(prefix, key.name)}]]"
            for inner in keys_of(key.kind.item).values():
                yield from _template_of_key(inner)
    for name, section in sections_of(owner).items():
        yield from _template(section, _join(prefix, name), chosen)


def _join(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name


def _template_of_key(key: Key, chosen: object = None) -> Iterator[str]:
    needed = "needed; " if key.default is REQUIRED else ""
    yield f"# {key.explanation} ({needed}{key.kind.what})"
    yield f"#{key.name} = {key.show(key.default)}".rstrip() if chosen is None else f"{key.name} = {key.show(chosen)}"


def summary(owner: type[Section]) -> str:
    """The meaning of a section, from the first line of its docstring."""
    return (owner.__doc__ or "").replace("``", "").strip().partition("\n")[0]


_INTRODUCTION = """\
# Settings

Look up what can be set, what it means, and what holds without it. `pkgrepo init` writes a file with all of them, and
`pkgrepo check-config --explain` shows the values of a server and where each comes from. A setting `section.key` is also
the variable `PKGREPO_SECTION__KEY`, and the option `--set section.key=value`.
"""


def settings_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_INTRODUCTION, *_section(Config, "")]).rstrip() + "\n"


def _section(owner: type[Section], name: str) -> Iterator[str]:
    keys = keys_of(owner)
    yield from _table(name, summary(owner), [key for key in keys.values() if key.kind.item is None])
    for key in keys.values():
        if key.kind.item is not None:
            inner = f"{_join(name, key.name)}.NAME" if key.kind.named else f"[{_join(name, key.name)}]"
            yield from _table(inner, summary(key.kind.item), list(keys_of(key.kind.item).values()))
    for inner_name, section in sections_of(owner).items():
        yield from _section(section, _join(name, inner_name))


def _table(name: str, meaning: str, keys: list[Key]) -> Iterator[str]:
    if not keys:
        return
    title, meaning = (
        (f"[{name}]", meaning) if name else ("[hosts] and [aliases]", "Tables that are settings themselves.")
    )
    yield f"## {title}\n\n{meaning}\n\n| setting | default | meaning |\n| --- | --- | --- |"
    for key in keys:
        shown = key.show(key.default)
        default = "needed" if key.default is REQUIRED else _cell(f"`{shown}`") if shown else ""
        also = f"; or `{key.name}_file`, a file that holds it" if key.kind.secret else ""
        yield f"| `{key.name}` | {default} | {_cell(f'{key.explanation} ({key.kind.what}){also}')} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")
