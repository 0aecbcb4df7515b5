"""
Builds the configuration from all sources, or reports every problem in them.

The sources are a TOML file, the environment, and overrides by the caller. Each becomes a mapping from dotted names to
raw values, of which the later ones win.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen

from pkgrepo.config.checks import check
from pkgrepo.config.keys import Key, Section, iter_keys, keys_of, sections_of, unknown
from pkgrepo.config.kinds import SettingError
from pkgrepo.config.settings import Config

PREFIX = "PKGREPO_"
SHORTCUTS = {
    "PKGREPO_ADMIN_USER": "bootstrap.admin.user",
    "PKGREPO_ADMIN_PASSWORD": "bootstrap.admin.password",
    "PKGREPO_ADMIN_PASSWORD_FILE": "bootstrap.admin.password_file",
}
# Read by the scripts in bin/ and by the command line, before the configuration is read.
NOT_SETTINGS = re.compile(
    r"PKGREPO_(CONFIG|PYTHON|VENV|REQUIRE_CLIENTS|BENCH_\w+|DEPLOY_(TOKEN|USER|PASSWORD)"
    r"|PROFILES?|URL|TOKEN(_FILE)?|CA_FILE)"
)
# Kubernetes sets these in every container if there is a service named pkgrepo.
FROM_KUBERNETES = re.compile(r"PKGREPO_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)")
KEYS = dict(iter_keys(Config))


@frozen
class RawValue:
    """A value as written, its origin, and the base folder of relative paths."""

    value: object
    origin: str
    folder: Path


@define
class Source:
    """The raw values of one source, and the problems found in it."""

    known: Mapping[str, Key]
    values: dict[str, RawValue] = field(factory=dict)
    problems: list[str] = field(factory=list)

    def take(self, name: str, raw: RawValue, *, called: str | None = None, any_file: bool = False) -> bool:
        """
        Record the value of the setting ``name``; returns False if there is no such setting.

        ``<key>_file`` names a file that holds the value: for every key with ``any_file``, otherwise only for secrets.
        """
        target = name
        if name not in self.known:
            target = name.removesuffix("_file")
            if target == name or target not in self.known or not (any_file or self.known[target].kind.secret):
                return False
            content = self.content(called or name, raw)
            if content is None:
                return True
            raw = content
        if target in self.values:
            self.problems.append(f"{target}: is said twice, by {self.values[target].origin} and by {raw.origin}")
        self.values[target] = raw
        return True

    def content(self, called: str, raw: RawValue) -> RawValue | None:
        """The content of the file that a value names; None, with a problem, if it cannot be read."""
        path = raw.folder / str(raw.value)
        try:
            value = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{called}: cannot read {path}: {_why(error)}")
            return None
        return RawValue(value, f"{raw.origin} ({path})", raw.folder)


def from_file(path: Path, known: Mapping[str, Key]) -> Source:
    """Read a TOML file; relative paths are resolved against its folder."""
    found = Source(known)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        found.problems.append(f"{path}: {_why(error)}")
        return found
    folder = path.absolute().parent
    for name, value in _flat(content, known):
        if not found.take(name, RawValue(value, str(path), folder)):
            found.problems.append(f"{path}: {name} {unknown(name, known)}")
    return found


def from_environment(environ: Mapping[str, str], known: Mapping[str, Key], folder: Path) -> Source:
    """Read variables such as ``PKGREPO_SERVER__LISTEN``, and the short names for the first admin."""
    found = Source(known)
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or NOT_SETTINGS.fullmatch(variable) or FROM_KUBERNETES.fullmatch(variable):
            continue
        name = SHORTCUTS.get(variable) or variable.removeprefix(PREFIX).lower().replace("__", ".")
        raw = RawValue(environ[variable], f"environment {variable}", folder)
        shaped = variable in SHORTCUTS or "__" in variable
        if not shaped or not (
            found.take(name, raw, called=variable, any_file=True) or _take_inner(found, name, raw, variable)
        ):
            spelled = {_variable(each): None for each in known} | dict.fromkeys(SHORTCUTS)
            for table, inner in ((each, keys_of(key.kind.item)) for each, key in known.items() if key.kind.named):
                if name.startswith(f"{table}.") and name.count(".") > table.count(".") + 1:
                    own = name.split(".")[table.count(".") + 1]
                    spelled |= {_variable(f"{table}.{own}.{each}"): None for each in inner}
            found.problems.append(f"environment: {variable} {unknown(variable, spelled)}")
    return found


class _Inner(dict[str, Any]):
    """Keys of tables with names, each of which a variable has set; those of an earlier source stay."""

    def over(self, before: object) -> dict[str, Any]:
        """What they make of the value of an earlier source."""
        tables = dict(before) if isinstance(before, Mapping) else {}
        for name, keys in self.items():
            own = tables.get(name)
            tables[name] = {**own, **keys} if isinstance(own, Mapping) else keys
        return tables


def _take_inner(found: Source, name: str, raw: RawValue, variable: str) -> bool:
    """Record ``auth.oidc.NAME.KEY``; False if that is no key. A line in NAME is a dash, which variables cannot have."""
    table, _, rest = name.rpartition(".")
    table, _, own = table.rpartition(".")
    if table not in found.known or not found.known[table].kind.named:
        return False
    keys, key = keys_of(found.known[table].kind.item), rest
    if key not in keys:
        key = rest.removesuffix("_file")
        content = found.content(variable, raw) if key in keys and key != rest else None
        if content is None:
            return key in keys  # then its problem is recorded
        raw = content
    value = raw.value if keys[key].kind.bare or not isinstance(raw.value, str) else as_literal(raw.value)
    before = found.values.get(table)
    if before is None:
        before = found.values[table] = RawValue(_Inner(), f"environment {_variable(table)}__*", raw.folder)
    if not isinstance(before.value, _Inner):
        found.problems.append(f"{name}: is said twice, by {before.origin} and by {raw.origin}")
        return True
    inner = before.value.setdefault(own.replace("_", "-"), {})
    if key in inner:
        found.problems.append(f"{name}: is said twice, by {variable} and another variable")
    inner[key] = value
    return True


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace("-", "_").replace(".", "__")


def from_caller(overrides: Mapping[str, object], known: Mapping[str, Key], folder: Path, origin: str) -> Source:
    """Read overrides from the command line or an embedding program, by dotted names."""
    found = Source(known)
    for name, value in overrides.items():
        if not found.take(name, RawValue(value, origin, folder)):
            found.problems.append(f"{origin}: {name} {unknown(name, known)}")
    return found


def as_literal(text: str) -> object:
    """Parse a TOML literal, or an object or a list in JSON; any other text is returned unchanged."""
    if "\n" not in text:
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {text}")["value"]
    if text.lstrip()[:1] in ("{", "["):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    return text


def _flat(content: Mapping[str, object], known: Mapping[str, Key], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its dotted name; a table that is not the value of a key is flattened."""
    for name, value in content.items():
        dotted = prefix + name
        if isinstance(value, Mapping) and dotted not in known:
            if value or not any(each.startswith(dotted + ".") for each in known):
                yield from _flat(value, known, dotted + ".") if value else iter([(dotted, value)])
        else:
            yield dotted, value


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


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
        raw |= {name: _joined(raw.get(name), each) for name, each in source.values.items()}
    problems = [problem for source in sources for problem in source.problems]
    config: Config | None = _build(Config, "", raw, problems)
    if config is not None:
        config, contradictions = check(config)
        problems += contradictions
    if problems or config is None:
        raise ConfigError(tuple(problems))
    return config


def _joined(before: RawValue | None, later: RawValue) -> RawValue:
    if not isinstance(later.value, _Inner):
        return later
    # relative paths in the table are mostly those of the source that had it first
    folder = later.folder if before is None else before.folder
    return RawValue(later.value.over(None if before is None else before.value), later.origin, folder)


def _build(owner: type[Section], prefix: str, raw: Mapping[str, RawValue], problems: list[str]) -> Any:
    """Build a section from the values of its keys; None if a value is invalid."""
    values: dict[str, object] = {}
    before = len(problems)
    for name, key in keys_of(owner).items():
        dotted = prefix + name
        if dotted not in raw:
            continue
        value, origin, folder = raw[dotted].value, raw[dotted].origin, raw[dotted].folder
        if isinstance(value, str) and not key.kind.bare:
            value = as_literal(value)
        try:
            values[key.attribute] = key.kind.read(value, folder)
        except SettingError as problem:
            for rest, sentence in problem.inner or (("", problem.sentence),):
                how = "" if value is not raw[dotted].value or rest else _spelling(dotted, key)
                problems.append(f"{dotted}{rest}: {sentence}{how} (set by {origin})")
    for name, inner in sections_of(owner).items():
        values[name] = _build(inner, f"{prefix}{name}.", raw, problems)
    if len(problems) > before:
        return None
    if owner is Config:
        values["origins"] = {name: each.origin for name, each in raw.items()}
    return owner(**values)


def _spelling(name: str, key: Key) -> str:
    """How a text that is no literal can be written, of keys whose values are tables; empty for other keys."""
    if key.kind.bare or key.kind.item is None:
        return ""
    return f", in JSON or TOML{f', or each key in {_variable(name)}__NAME__KEY' if key.kind.named else ''}"
