"""From everything that was said to one checked configuration, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checks import check
from .keys import iter_keys, keys_of, sections_of
from .kinds import SettingError
from .settings import Config
from .sources import Collected, Said, as_toml, from_caller, from_environment, from_file

KEYS = dict(iter_keys(Config))


class ConfigError(Exception):
    """The configuration will not do; ``problems`` are sentences that begin with the key or the place."""

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
    The configuration from a TOML file, the environment and ``overrides``, the later winning, defaults filled in.

    ``overrides`` maps dotted names such as ``data.dir`` to values, or to texts as the environment would have them;
    ``origin`` is what to call them. Without ``environ`` no variable is looked at. Relative paths start from the
    folder of ``file`` where they stand there, from the working folder otherwise.

    :raises ConfigError: with every problem at once
    """
    here = Path.cwd()
    sources = [
        from_file(file, KEYS) if file else Collected(KEYS),
        from_environment(environ or {}, KEYS, here),
        from_caller(overrides or {}, KEYS, here, origin),
    ]
    said: dict[str, Said] = {}
    for source in sources:
        said |= source.said
    problems = [problem for source in sources for problem in source.problems]
    config: Config | None = _build(Config, "", said, problems)
    if config is not None:
        config, contradictions = check(config)
        problems += contradictions
    if problems or config is None:
        raise ConfigError(tuple(problems))
    return config


def _build(owner: type, prefix: str, said: Mapping[str, Said], problems: list[str]) -> Any:
    """A section from what was said of its keys; None when some value will not do."""
    values: dict[str, object] = {}
    before = len(problems)
    for name, key in keys_of(owner).items():
        dotted = prefix + name
        if dotted not in said:
            continue
        value, origin, folder = said[dotted].value, said[dotted].origin, said[dotted].folder
        if isinstance(value, str) and not key.kind.bare:
            value = as_toml(value)
        try:
            values[key.attribute] = key.kind.read(value, folder)
        except SettingError as problem:
            for rest, sentence in problem.inner or (("", problem.sentence),):
                problems.append(f"{dotted}{rest}: {sentence} (set by {origin})")
    for name, inner in sections_of(owner).items():
        values[name] = _build(inner, f"{prefix}{name}.", said, problems)
    if len(problems) > before:
        return None
    if owner is Config:
        values["origins"] = {name: each.origin for name, each in said.items()}
    return owner(**values)
