"""Lock files of Python: requirements of pip, ``uv.lock``, ``poetry.lock``, ``pdm.lock``, ``pylock.toml``, Pipenv."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from packaging.requirements import Requirement

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import (
    Digests,
    Lock,
    Wanted,
    parse_hashes,
    path_of,
    read_json,
    table_of,
    tables_of,
    text_of,
)
from pkgrepo.untrusted.toml import read_toml

PYTHON: Final = "python"
NO_INDEX: Final = "it does not come from an index"
ELSEWHERE: Final = ("git", "url", "vcs", "archive", "hg", "svn")  # of what is fetched past an index
HERE: Final = ("editable", "virtual", "directory", "path", "file", "workspace")  # of what is a part of the project
LONGEST_REQUIREMENT: Final = 2000  # characters, without its hashes
_REMOTE: Final = re.compile(r"(?<!file)://|@[^/\s]+:")  # in an address of another machine, also as scp writes it
_HASH: Final = re.compile(r"--hash[= ]\s*(\S+)")
_OPTION: Final = re.compile(r"\s--?[A-Za-z].*", re.DOTALL)
_COMMENT: Final = re.compile(r"(^|\s)#.*")


def read_requirements(text: str) -> Lock:
    """Requirements with pins, as ``pip freeze`` and ``pip-compile`` write them; with hashes if they have them."""
    lock = Lock()
    for line in _lines(text):
        if line.startswith(("-r", "--requirement", "-c", "--constraint")):
            lock.leave_out(line, "it is another file: give that one, too")
        elif line.startswith(("-e", "--editable")) and _REMOTE.search(line):
            lock.leave_out(line, NO_INDEX)
        elif line.startswith(("-e", "--editable", ".", "/", "file:")):
            continue  # it is a part of the project
        elif not line.startswith("-"):
            _add_requirement(lock, line)
    return lock


def _lines(text: str) -> Iterator[str]:
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        stripped = _COMMENT.sub("", line).strip()
        if stripped:
            yield stripped


def _add_requirement(lock: Lock, line: str) -> None:
    text = _OPTION.sub("", line)
    try:
        requirement = Requirement(text if len(text) <= LONGEST_REQUIREMENT else "")
    except (ValueError, RecursionError):
        lock.leave_out(line, "it is no requirement" if "://" not in line else NO_INDEX)
        return
    pins = [each.version for each in requirement.specifier if each.operator in ("==", "===")]
    if requirement.url:
        lock.leave_out(line, NO_INDEX)
    elif len(pins) != 1 or "*" in pins[0]:
        lock.leave_out(line, "it is not pinned with == to one version")
    else:
        digests = parse_hashes(_HASH.findall(line))
        lock.want(Wanted(format=PYTHON, name=requirement.name, version=pins[0], digests=digests))


def read_uv(text: str) -> Lock:
    """``uv.lock``. :raises Invalid: it is another file"""
    lock = Lock()
    for each in tables_of(read_toml(text).get("package")):
        source = table_of(each.get("source"))
        if any(kind in source for kind in ELSEWHERE):
            lock.leave_out(_title(each), NO_INDEX)
        elif not any(kind in source for kind in HERE):
            _add_files(lock, each, [each.get("sdist"), *tables_of(each.get("wheels"))])
    return lock


def read_poetry(text: str) -> Lock:
    """``poetry.lock`` and ``pdm.lock``. :raises Invalid: it is another file"""
    document, lock = read_toml(text), Lock()
    older = table_of(table_of(document.get("metadata")).get("files"))  # of poetry before 1.3
    for each in tables_of(document.get("package")):
        kind = text_of(table_of(each.get("source")).get("type"))
        if kind in ELSEWHERE or any(name in each for name in ("git", "url")):
            lock.leave_out(_title(each), NO_INDEX)
        elif kind not in HERE and "path" not in each:
            _add_files(lock, each, tables_of(each.get("files")) or tables_of(older.get(text_of(each.get("name")))))
    return lock


def read_pylock(text: str) -> Lock:
    """``pylock.toml`` (PEP 751). :raises Invalid: it is another file"""
    document, lock = read_toml(text), Lock()
    if "lock-version" not in document:
        raise Invalid("it has no lock-version: is it a pylock.toml?")
    for each in tables_of(document.get("packages")):
        if "vcs" in each or "archive" in each:
            lock.leave_out(_title(each), NO_INDEX)
        elif "directory" not in each:
            _add_files(lock, each, [each.get("sdist"), *tables_of(each.get("wheels"))])
    return lock


def read_pipfile(text: str) -> Lock:
    """``Pipfile.lock``. :raises Invalid: it is another file"""
    document = read_json(text)
    if "_meta" not in document:
        raise Invalid("it has no _meta: is it a Pipfile.lock?")
    lock = Lock()
    for group, entries in document.items():
        for name, entry in table_of(entries).items() if group != "_meta" else ():
            version = text_of(table_of(entry).get("version"))
            if version.startswith("=="):
                hashes = entry.get("hashes")
                digests = parse_hashes(hashes if isinstance(hashes, list) else ())
                pin = version.lstrip("=")
                lock.want(Wanted(format=PYTHON, name=name, version=pin, digests=digests))
            elif _is_elsewhere(table_of(entry)):
                lock.leave_out(name, NO_INDEX)
    return lock


def _is_elsewhere(entry: dict[str, Any]) -> bool:
    """Whether an entry without a version is fetched past an index, also one that is editable then."""
    if any(kind in entry for kind in ELSEWHERE) or not any(kind in entry for kind in HERE):
        return True
    return any(_REMOTE.search(text_of(entry.get(kind))) for kind in ("file", "path"))


def _title(entry: dict[str, Any]) -> str:
    return f"{text_of(entry.get('name'))} {text_of(entry.get('version'))}".strip()


def _add_files(lock: Lock, entry: dict[str, Any], listed: list[Any]) -> None:
    """The files of a version, or the version if none is listed."""
    name, version = text_of(entry.get("name")), text_of(entry.get("version"))
    files = [(file, digests) for file, digests in map(_file, listed) if file]
    if not name or (not version and not files):
        lock.leave_out(_title(entry) or "a package", "it has no name or no version")
        return
    for file, digests in files or [("", frozenset[tuple[str, str]]())]:
        lock.want(Wanted(format=PYTHON, name=name, version=version, file=file, digests=digests))


def _file(value: object) -> tuple[str, Digests]:
    """The name of a file, and its digests."""
    table = table_of(value)
    name = text_of(table.get("file")) or text_of(table.get("name")) or text_of(table.get("filename"))
    if not name:
        name = path_of(text_of(table.get("url"))).rpartition("/")[2]
    hashes = [f"{algorithm}:{text}" for algorithm, text in table_of(table.get("hashes")).items()]
    return name, parse_hashes([table.get("hash"), *hashes])
