"""Builds the configuration from all sources, or reports every problem in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checks import check
from .keys import iter_keys, keys_of, sections_of
from .kinds import SettingError
from .settings import Config
from .sources import RawValue, Source, as_toml, from_caller, from_environment, from_file

KEYS = dict(iter_keys(Config))


class ConfigError(Exception):
    """The configuration is invalid; ``problems`` are sentences that begin with the key or its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read_config(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    origin: str = "command line",
) -> Config:
    """
    Read the configuration from a TOML file, the environment and ``overrides``; later sources win.

    ``overrides`` maps dotted names such as ``data.dir`` to values, or to texts in the form of environment variables;
    ``origin`` is their name in messages. Without ``environ`` no variable is read. Relative paths in ``file`` are
    resolved against its folder, all others against the working directory.

    :raises ConfigError: with every problem at once
    """
    here = Path.cwd()
    sources = [
        from_file(file, KEYS) if file else Source(KEYS),
        from_environment(environ or {}, KEYS, here),
        from_caller(overrides or {}, KEYS, here, origin),
    ]
    raw: dict[str, RawValue] = {}
    for source in sources:
        raw |= source.values
    problems = [problem for source in sources for problem in source.problems]
    config: Config | None = _build(Config, "", raw, problems)
    if config is not None:
        config, contradictions = check(config)
        problems += contradictions
    if problems or config is None:
        raise ConfigError(tuple(problems))
    return config


def _build(owner: type, prefix: str, raw: Mapping[str, RawValue], problems: list[str]) -> Any:
    """Build a section from the values of its keys; None if a value is invalid."""
    values: dict[str, object] = {}
    before = len(problems)
    for name, key in keys_of(owner).items():
        dotted = prefix + name
        if dotted not in raw:
            continue
        value, origin, folder = raw[dotted].value, raw[dotted].origin, raw[dotted].folder
        if isinstance(value, str) and not key.kind.bare:
            value = as_toml(value)
        try:
            values[key.attribute] = key.kind.read(value, folder)
        except SettingError as problem:
            for rest, sentence in problem.inner or (("", problem.sentence),):
                problems.append(f"{dotted}{rest}: {sentence} (set by {origin})")
    for name, inner in sections_of(owner).items():
        values[name] = _build(inner, f"{prefix}{name}.", raw, problems)
    if len(problems) > before:
        return None
    if owner is Config:
        values["origins"] = {name: each.origin for name, each in raw.items()}
    return owner(**values)
