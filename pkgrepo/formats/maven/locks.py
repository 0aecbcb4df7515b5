"""
Lists of artifacts.

A POM does not say what a build needs: Maven resolves it, with its plugins. So Maven's own lists are read: of
``dependency:list`` and ``dependency:tree``, the lock file of Gradle, coordinates, and lists of the paths in a local
repository, with the digests of these files.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_sum

NAME: Final = "maven"
LONGEST_LINE: Final = 2000  # of a list of artifacts
_PART: Final = r"[A-Za-z0-9_.$-]+"
_COORDINATES: Final = re.compile(rf"(?<![^\s|+\\-])({_PART}+(?::{_PART}+){{2,5}}+)(?=[\s=,)]|$)")
_SCOPES: Final = frozenset({"compile", "runtime", "provided", "test", "system", "import"})
_PATH: Final = re.compile(r"[A-Za-z0-9_.+-]+(?:/[^\s/]+)+")
_ENDINGS: Final = {"test-jar": "jar", "maven-plugin": "jar", "ejb": "jar", "bundle": "jar", "java-source": "jar"}
_CLASSIFIERS: Final = {"test-jar": "tests", "java-source": "sources"}


def read_maven(text: str) -> Lock:
    """
    Coordinates, alone or in what Maven and Gradle print, and paths of files, each with a digest before it or not.

    :raises Invalid: it is a POM
    """
    if re.search(r"<project[\s>]", text):
        raise Invalid(
            "a POM does not say which versions a build needs: give the folder of a local repository, filled by "
            "'mvn -Dmaven.repo.local=FOLDER package', or the file that 'mvn dependency:list -DoutputFile=FILE' writes"
        )
    lock, coordinates = Lock(), list[list[str]]()
    for line in text.splitlines():
        stripped = line.strip()
        if len(stripped) > LONGEST_LINE:
            lock.leave_out(stripped, "the line is too long")
            continue
        digests, path = parse_sum(stripped) or (frozenset(), stripped)
        if stripped.startswith("#"):
            continue
        if _PATH.fullmatch(path) is not None:
            parts = path.split("/")
            name = f"{'.'.join(parts[:-3])}:{parts[-3]}" if len(parts) > 3 else path
            lock.want(Wanted(format=NAME, name=name, file=path, digests=digests))
        elif found := _COORDINATES.search(stripped.replace("[INFO]", "")):
            coordinates.append(found[1].split(":"))
    scoped = any(parts[-1] in _SCOPES for parts in coordinates)
    for parts in coordinates:
        if parts[-1] in _SCOPES:
            _add_artifact(lock, parts[:-1])
        elif not scoped or len(parts) == 3:  # else it is the project itself, at the root of its tree
            _add_artifact(lock, parts)
    return lock


def _add_artifact(lock: Lock, parts: list[str]) -> None:
    """The file with coordinates ``group:artifact[:type[:classifier]]:version``, and its POM."""
    if len(parts) < 3 or len(parts) > 5:
        lock.leave_out(":".join(parts), "these are no coordinates of an artifact")
        return
    group, artifact, version = parts[0], parts[1], parts[-1]
    kind = parts[2] if len(parts) > 3 else "jar"
    classifier = parts[3] if len(parts) == 5 else _CLASSIFIERS.get(kind, "")
    stem = artifact_stem(group, artifact, version)
    name = f"{group}:{artifact}"
    lock.want(Wanted(format=NAME, name=name, version=version, file=f"{stem}.pom"))
    if kind != "pom":
        ending = f"{'-' + classifier if classifier else ''}.{_ENDINGS.get(kind, kind)}"
        lock.want(Wanted(format=NAME, name=name, version=version, file=stem + ending))


def artifact_stem(group: str, artifact: str, version: str) -> str:
    """The path of the files of an artifact, without their endings."""
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
