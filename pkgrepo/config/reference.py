"""The page of all settings in the book, made of their declarations; a test compares it with ``docs/settings.md``."""

from __future__ import annotations

from collections.abc import Iterator

from .explain import summary
from .keys import REQUIRED, Key, keys_of, sections_of
from .kinds import toml
from .settings import Config

_INTRODUCTION = """\
# Settings

Look up what can be set, what it means, and what holds without it. `pkgrepo init` writes a file with all of them, and
`pkgrepo check-config --explain` shows the values of a server and where each comes from. A setting `section.key` is also
the variable `PKGREPO_SECTION__KEY`, and the option `--set section.key=value`.
"""


def settings_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_INTRODUCTION, *_section(Config, "")]).rstrip() + "\n"


def _section(owner: type, name: str) -> Iterator[str]:
    keys = keys_of(owner)
    yield from _table(name, summary(owner), [key for key in keys.values() if key.kind.item is None])
    for key in keys.values():
        if key.kind.item is not None:
            inner = f"[{name}.{key.name}]"
            yield from _table(inner, summary(key.kind.item), list(keys_of(key.kind.item).values()))
    for inner_name, section in sections_of(owner).items():
        yield from _section(section, f"{name}.{inner_name}" if name else inner_name)


def _table(name: str, meaning: str, keys: list[Key]) -> Iterator[str]:
    if not keys:
        return
    yield f"## [{name}]\n\n{meaning}\n\n| setting | default | meaning |\n| --- | --- | --- |"
    for key in keys:
        default = "needed" if key.default is REQUIRED else "" if key.default is None else f"`{toml(key.default)}`"
        also = f"; or `{key.name}_file`, a file that holds it" if key.kind.secret else ""
        yield f"| `{key.name}` | {default} | {_cell(f'{key.explanation} ({key.kind.what}){also}')} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")
