"""
The POMs that the POMs of mirrored artifacts need: their parents, and those whose managed dependencies they import.

Maven reads both before it reads anything else of an artifact. The version of an import is often a property, of the POM
itself or of one of its parents, so that it is known when these are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import define, evolve, field

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.locks import NAME, artifact_stem
from pkgrepo.formats.maven.upload.pom import Pom, read_pom
from pkgrepo.gateway.mirrored.locks import Wanted

# The publisher of one of the artifacts decides how many others its POM names, and how large these are.
MOST_POMS: Final = 20_000  # that are read for one mirror, and that are told
MOST_BYTES: Final = 256 * 1024 * 1024  # of those that are read; 20 KB is a large one
MOST_PARENTS: Final = 50  # of a POM, and turns of asking for more; Maven has no limit, and refuses circles
_PROPERTY: Final = re.compile(r"\$\{([^${}]{1,200})\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


@define
class NeededPoms:
    """Collects POMs by their path, and tells which others they need."""

    _poms: dict[str, Pom] = field(factory=dict, init=False)
    _told: set[str] = field(factory=set, init=False)
    _size: int = field(default=0, init=False)
    _named: int = field(default=0, init=False)
    _turns: int = field(default=0, init=False)

    def add(self, path: str, content: bytes) -> None:
        """Add a POM. One that cannot be read needs nothing."""
        self._told.add(path)
        self._size += len(content)
        if len(self._poms) >= MOST_POMS or self._size > MOST_BYTES:
            return
        try:
            pom = read_pom(content)
        except Invalid:
            return
        if pom is not None:
            self._poms[path] = evolve(pom, description="", licenses=(), developers=(), dependencies=(), links={})

    def needed(self) -> list[Wanted]:
        """
        The POMs that are needed, as far as that is known now, without those that were added or told before.

        None after many turns: each of them may name one more, without an end.
        """
        found: dict[str, Wanted] = {}
        self._turns += 1
        if self._turns > MOST_PARENTS:
            return []
        for pom in self._poms.values():
            for each in self._needed_by(pom):
                if each.file not in self._told and self._named + len(found) < MOST_POMS:
                    found[each.file] = each
        self._told.update(found)
        self._named += len(found)
        return list(found.values())

    def _needed_by(self, pom: Pom) -> Iterator[Wanted]:
        if pom.parent:
            yield from _wanted(pom.parent)
        for each in pom.imports:
            yield from _wanted(_PROPERTY.sub(lambda found: self._value(pom, found[1]), each))

    def _value(self, pom: Pom, name: str) -> str:
        """The value of a property of a POM or its parents; as it is written if that is not known."""
        own = name.removeprefix("project.").removeprefix("pom.")
        if own in ("version", "groupId", "artifactId"):
            return {"version": pom.version, "groupId": pom.group, "artifactId": pom.artifact}[own]
        if own == "parent.version":
            return pom.parent.rpartition(":")[2]
        value, each = "", pom
        for _ in range(MOST_PARENTS):
            value = each.properties.get(name, "")
            if value or not each.parent:
                break
            above = self._poms.get(next((file.file for file in _wanted(each.parent)), ""))
            if above is None:
                break
            each = above
        inner = _PROPERTY.fullmatch(value)
        if inner is not None and inner[1] != name:
            return pom.properties.get(inner[1]) or each.properties.get(inner[1], value)
        return value or f"${{{name}}}"


def _wanted(coordinates: str) -> Iterator[Wanted]:
    """The POM with plain coordinates ``group:artifact:version``; nothing for others."""
    parts = coordinates.split(":")
    if len(parts) == 3 and all(_PLAIN.fullmatch(each) for each in parts):
        group, artifact, version = parts
        file = f"{artifact_stem(group, artifact, version)}.pom"
        yield Wanted(format=NAME, name=f"{group}:{artifact}", version=version, file=file)
