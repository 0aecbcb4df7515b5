"""
Where settings come from: a TOML file, the environment, and what the caller lays over both.

Each source becomes a mapping from dotted names to what was said there, with nothing checked but the name.
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
# Read by the scripts in bin/ and by the command line, before there is a configuration.
NOT_SETTINGS = re.compile(r"PKGREPO_(CONFIG|PYTHON|VENV|REQUIRE_CLIENTS|BENCH_\w+)")
# Kubernetes gives these to every container that runs beside a service named pkgrepo.
FROM_KUBERNETES = re.compile(r"PKGREPO_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)")


@frozen
class Said:
    """A value as it was written, where, and the folder that its relative paths start from."""

    value: object
    origin: str
    folder: Path


@define
class Collected:
    """What one source says, and what is wrong with it."""

    known: Mapping[str, Key]
    said: dict[str, Said] = field(factory=dict)
    problems: list[str] = field(factory=list)

    def take(self, name: str, said: Said, *, called: str | None = None, any_file: bool = False) -> bool:
        """
        Note what was said of the setting ``name``; False when there is no such setting.

        ``<key>_file`` names a file that holds the value: of every key with ``any_file``, otherwise of secrets only.
        """
        target = name
        if name not in self.known:
            target = name.removesuffix("_file")
            if target == name or target not in self.known or not (any_file or self.known[target].kind.secret):
                return False
            content = self._content(called or name, said)
            if content is None:
                return True
            said = content
        if target in self.said:
            self.problems.append(f"{target}: is said twice, by {self.said[target].origin} and by {said.origin}")
        self.said[target] = said
        return True

    def _content(self, called: str, said: Said) -> Said | None:
        path = said.folder / str(said.value)
        try:
            value = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{called}: cannot read {path}: {_why(error)}")
            return None
        return Said(value, f"{said.origin} ({path})", said.folder)


def from_file(path: Path, known: Mapping[str, Key]) -> Collected:
    """What a TOML file says; relative paths in it start from its folder."""
    found = Collected(known)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        found.problems.append(f"{path}: {_why(error)}")
        return found
    folder = path.absolute().parent
    for name, value in _flat(content, known):
        if not found.take(name, Said(value, str(path), folder)):
            found.problems.append(f"{path}: {name} {unknown(name, known)}")
    return found


def from_environment(environ: Mapping[str, str], known: Mapping[str, Key], folder: Path) -> Collected:
    """What variables such as ``PKGREPO_SERVER__LISTEN`` say, and the short ones for the first admin."""
    found = Collected(known)
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or NOT_SETTINGS.fullmatch(variable) or FROM_KUBERNETES.fullmatch(variable):
            continue
        name = SHORTCUTS.get(variable) or variable.removeprefix(PREFIX).lower().replace("__", ".")
        said = Said(environ[variable], f"environment {variable}", folder)
        shaped = variable in SHORTCUTS or "__" in variable
        if not shaped or not found.take(name, said, called=variable, any_file=True):
            spelled = {PREFIX + each.upper().replace(".", "__"): None for each in known} | dict.fromkeys(SHORTCUTS)
            found.problems.append(f"environment: {variable} {unknown(variable, spelled)}")
    return found


def from_caller(overrides: Mapping[str, object], known: Mapping[str, Key], folder: Path, origin: str) -> Collected:
    """What the command line or an embedding program says, by dotted names."""
    found = Collected(known)
    for name, value in overrides.items():
        if not found.take(name, Said(value, origin, folder)):
            found.problems.append(f"{origin}: {name} {unknown(name, known)}")
    return found


def as_toml(text: str) -> object:
    """The value of a TOML literal; any other text is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text


def _flat(content: Mapping[str, object], known: Mapping[str, Key], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its dotted name; a table is opened as long as it is not itself the value of a key."""
    for name, value in content.items():
        dotted = prefix + name
        if isinstance(value, Mapping) and dotted not in known:
            if value or not any(each.startswith(dotted + ".") for each in known):
                yield from _flat(value, known, dotted + ".") if value else iter([(dotted, value)])
        else:
            yield dotted, value


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
