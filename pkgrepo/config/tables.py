"""A list of tables as a kind of value, such as ``[[bootstrap.repositories]]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .keys import REQUIRED, keys_of, unknown
from .kinds import Kind, SettingError


def tables(item: type) -> Kind:
    """A list of tables with the keys of ``item``, as a tuple of its values."""

    def read(value: object, folder: Path) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
            raise SettingError("must be a list of tables")
        problems: list[tuple[str, str]] = []
        found = [_read_table(item, each, folder, f"[{index}]", problems) for index, each in enumerate(value)]
        if problems:
            raise SettingError(inner=tuple(problems))
        return tuple(found)

    return Kind("a list of tables", read, bare=False, show=_show_tables, item=item)


def _show_tables(values: Sequence[Any]) -> str:
    """The tables' keys as they stand in a TOML array; what is unset is left out."""
    return f"[{', '.join(_show_table(each) for each in values)}]"


def _show_table(value: Any) -> str:
    pairs = [
        f"{name} = {key.kind.show(getattr(value, key.attribute))}"
        for name, key in keys_of(type(value)).items()
        if getattr(value, key.attribute) is not None
    ]
    return f"{{{', '.join(pairs)}}}"


def _read_table(
    item: type, values: Mapping[str, object], folder: Path, place: str, problems: list[tuple[str, str]]
) -> object:
    keys = keys_of(item)
    found = {}
    before = len(problems)
    problems += [(f"{place}.{name}", unknown(name, keys)) for name in values if name not in keys]
    for name, key in keys.items():
        if name in values:
            try:
                found[key.attribute] = key.kind.read(values[name], folder)
            except SettingError as problem:
                problems.extend(
                    (f"{place}.{name}{rest}", sentence) for rest, sentence in problem.inner or [("", problem.sentence)]
                )
        elif key.default is REQUIRED:
            problems.append((f"{place}.{name}", f"is missing: {key.explanation}"))
    return item(**found) if len(problems) == before else None
