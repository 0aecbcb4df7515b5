"""
The sources of settings: a TOML file, the environment, and overrides by the caller.

Each source becomes a mapping from dotted names to raw values; only the names are validated here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import define, field, frozen

from .keys import Key, unknown

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
            content = self._content(called or name, raw)
            if content is None:
                return True
            raw = content
        if target in self.values:
            self.problems.append(f"{target}: is said twice, by {self.values[target].origin} and by {raw.origin}")
        self.values[target] = raw
        return True

    def _content(self, called: str, raw: RawValue) -> RawValue | None:
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
        if not shaped or not found.take(name, raw, called=variable, any_file=True):
            spelled = {PREFIX + each.upper().replace(".", "__"): None for each in known} | dict.fromkeys(SHORTCUTS)
            found.problems.append(f"environment: {variable} {unknown(variable, spelled)}")
    return found


def from_caller(overrides: Mapping[str, object], known: Mapping[str, Key], folder: Path, origin: str) -> Source:
    """Read overrides from the command line or an embedding program, by dotted names."""
    found = Source(known)
    for name, value in overrides.items():
        if not found.take(name, RawValue(value, origin, folder)):
            found.problems.append(f"{origin}: {name} {unknown(name, known)}")
    return found


def as_toml(text: str) -> object:
    """Parse a TOML literal; any other text is returned unchanged."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
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
