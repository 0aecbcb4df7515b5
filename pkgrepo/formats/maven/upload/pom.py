"""
Reads POM files (Maven POM reference, model version 4.0.0): what an artifact is, as its version's metadata show it.

A POM is read as bytes, because it says itself in which encoding it is. Nothing is resolved: parents are not fetched,
and expressions such as ``${revision}`` stay as they are. The elements that are not shown are skipped while they are
parsed, so memory does not grow with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.xml_reading import DEEPEST, parse_xml
from pkgrepo.untrusted.text import quoted

POM_SIZE: Final = 4 * 1024 * 1024  # bytes; a larger one is stored and not read
TEXT_SIZE: Final = 64 * 1024  # characters of one text; the rest is cut off
MOST_ENTRIES: Final = 5000  # dependencies, and entries of each other list; further ones are left out

# The elements whose text is read, and those that occur several times, by their path below the project.
_TEXTS: Final = frozenset(
    {
        "groupId", "artifactId", "version", "packaging", "name", "description", "url",
        "parent/groupId", "parent/artifactId", "parent/version",
        "organization/name", "scm/url", "issueManagement/url", "ciManagement/url",
        "distributionManagement/relocation/groupId", "distributionManagement/relocation/artifactId",
        "distributionManagement/relocation/version",
        "properties/maven.compiler.release", "properties/maven.compiler.target", "properties/java.version",
    }
)  # fmt: skip
# The properties that say for which Java the classes are, the one that decides first.
_JAVA: Final = ("maven.compiler.release", "maven.compiler.target", "java.version")
_JAVA_VERSION: Final = re.compile(r"(?:1\.)?([1-9][0-9]?)")  # 1.8 is 8
_LISTS: Final = {
    "licenses/license": frozenset({"name", "url"}),
    "developers/developer": frozenset({"id", "name"}),
    "dependencies/dependency": frozenset(
        {"groupId", "artifactId", "version", "type", "classifier", "scope", "optional"}
    ),
    "dependencyManagement/dependencies/dependency": frozenset({"groupId", "artifactId", "version", "scope"}),
}
_PROPERTIES: Final = "properties/"
_PARENTS: Final = frozenset(
    "/".join(path.split("/")[:length])
    for path in (*_TEXTS, *(f"{place}/{name}" for place, names in _LISTS.items() for name in names))
    for length in range(1, path.count("/") + 1)
)


@frozen
class Pom:
    """
    What a POM says. ``group`` and ``version`` are those of its parent if it has none; any of them may be empty.

    ``dependencies`` are ``group:artifact[:type][:classifier][:version]`` and, in brackets, what limits them. ``links``
    are addresses by their label. ``imports`` are the coordinates of POMs whose managed dependencies it imports, as they
    are written, with ``properties``. ``java`` is the oldest Java that runs the classes, such as 8 or 21.
    """

    group: str
    artifact: str
    version: str
    packaging: str = "jar"
    name: str = ""
    description: str = ""
    url: str = ""
    organization: str = ""
    parent: str = ""
    relocation: str = ""
    java: str = ""
    licenses: tuple[str, ...] = ()
    developers: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    properties: Mapping[str, str] = Factory(dict)
    links: Mapping[str, str] = Factory(dict)

    def meta(self) -> dict[str, Any]:
        """The non-empty fields, as the catalog stores them with the version, under the names of all formats."""
        found: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "license": ", ".join(self.licenses),
            "home_page": self.url,
            "project_urls": [f"{label}, {url}" for label, url in self.links.items()],
            "requires_dist": list(self.dependencies),
            "packaging": self.packaging,
            "organization": self.organization,
            "developers": list(self.developers),
            "parent": self.parent,
            "relocated_to": self.relocation,
            "requires_java": self.java,
        }
        return {key: value for key, value in found.items() if value}

    def mismatch(self, group: str, artifact: str, version: str) -> str | None:
        """A sentence about the first coordinate that is another one than in the path, or None if none is."""
        for what, said, wanted in (
            ("groupId", self.group, group),
            ("artifactId", self.artifact, artifact),
            ("version", self.version, version),
        ):
            if said and said != wanted and "${" not in said:
                return f"the POM says that its {what} is {quoted(said)}, and the path says {quoted(wanted)}"
        return None


def read_pom(content: bytes) -> Pom | None:
    """
    What a POM says, or None if it is not read: it has a DOCTYPE, is too large or in an unknown encoding.

    Takes up to a second for the largest ones, so call it in a thread.

    :raises Invalid: it is malformed, or no POM
    """
    if len(content) > POM_SIZE:
        return None
    target = _Target()
    if parse_xml(content, target, "the POM", "pom") is not None:
        return None
    return _to_pom(target)


def read_pom_file(source: int | bytes) -> Pom | None:
    """The POM in a file, given by its descriptor or its bytes; None and errors are as of ``read_pom``."""
    if isinstance(source, bytes):
        return read_pom(source)
    with open(source, "rb", closefd=False) as file:
        return read_pom(file.read(POM_SIZE + 1))


@define(slots=False)
class _Target:
    """
    Receives the elements as they are parsed, and keeps the texts of those that are wanted.

    ``place`` is the path of the current element below the project, as long as it leads to a wanted one; ``skipped`` is
    the number of open elements below it that lead to none. An empty list of entries is where the next one begins.
    """

    texts: dict[str, str] = Factory(dict)
    entries: dict[str, list[dict[str, str]]] = Factory(lambda: {place: [] for place in _LISTS})
    place: list[str] = Factory(list)
    opened: bool = False
    skipped: int = 0
    parts: list[str] | None = None
    length: int = 0

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        """An element begins."""
        name = tag.rpartition("}")[2]
        if not self.opened:
            if name != "project":
                raise Invalid(f"the root element of a POM is project, and here it is {quoted(name)}", "pom")
            self.opened = True
            return
        path = "/".join((*self.place, name))
        if self.skipped or self.parts is not None or not (path in _PARENTS or self._is_wanted(path)):
            self.skipped += 1
            if self.skipped > DEEPEST:
                raise Invalid(f"the POM has more than {DEEPEST} elements within each other", "pom")
            return
        self.place.append(name)
        if path in _LISTS and len(self.entries[path]) < MOST_ENTRIES:
            self.entries[path].append({})
        if path not in _PARENTS:
            self.parts, self.length = [], 0

    def end(self, _tag: str) -> None:
        """An element ends."""
        if self.skipped:
            self.skipped -= 1
            return
        if not self.place:
            return
        if self.parts is not None:
            self._keep("/".join(self.place), " ".join("".join(self.parts)[:TEXT_SIZE].split()))
            self.parts = None
        self.place.pop()

    def data(self, text: str) -> None:
        """A part of the text of the current element."""
        if self.parts is not None and not self.skipped and self.length < TEXT_SIZE:
            self.parts.append(text)
            self.length += len(text)

    def close(self) -> None:
        """The document ends."""

    def _is_wanted(self, path: str) -> bool:
        if path in _TEXTS or (path.startswith(_PROPERTIES) and len(self.texts) < MOST_ENTRIES):
            return True
        place, _, name = path.rpartition("/")
        return name in _LISTS.get(place, ())

    def _keep(self, path: str, text: str) -> None:
        if path in _TEXTS or path.startswith(_PROPERTIES):
            self.texts.setdefault(path, text)
            return
        place, _, name = path.rpartition("/")
        entries = self.entries[place]
        if len(entries) < MOST_ENTRIES:
            entries[-1].setdefault(name, text)


def _to_pom(target: _Target) -> Pom:
    texts = target.texts
    urls = {
        "Source": texts.get("scm/url", ""),
        "Issues": texts.get("issueManagement/url", ""),
        "Builds": texts.get("ciManagement/url", ""),
    }
    licenses = [each.get("name") or each.get("url", "") for each in target.entries["licenses/license"]]
    developers = [each.get("name") or each.get("id", "") for each in target.entries["developers/developer"]]
    dependencies = [_dependency(each) for each in target.entries["dependencies/dependency"]]
    return Pom(
        group=texts.get("groupId") or texts.get("parent/groupId", ""),
        artifact=texts.get("artifactId", ""),
        version=texts.get("version") or texts.get("parent/version", ""),
        packaging=texts.get("packaging") or "jar",
        name=texts.get("name", ""),
        description=texts.get("description", ""),
        url=_safe(texts.get("url", "")),
        organization=texts.get("organization/name", ""),
        parent=_coordinates(texts, "parent"),
        relocation=_coordinates(texts, "distributionManagement/relocation"),
        java=_java(texts),
        licenses=_distinct(licenses),
        developers=_distinct(developers),
        dependencies=_distinct(dependencies),
        imports=_distinct(
            [
                _coordinates(each, "")
                for each in target.entries["dependencyManagement/dependencies/dependency"]
                if each.get("scope") == "import"
            ]
        ),
        properties={
            path.removeprefix(_PROPERTIES): text for path, text in texts.items() if path.startswith(_PROPERTIES)
        },
        links={label: url for label, url in urls.items() if _safe(url)},
    )


def _java(texts: Mapping[str, str]) -> str:
    """The Java that properties of a POM name, also by another one of them: ``${java.version}``."""
    for name in _JAVA:
        said = texts.get(f"properties/{name}", "")
        if said.startswith("${") and said.endswith("}"):
            said = texts.get(f"properties/{said[2:-1]}", "")
        found = _JAVA_VERSION.fullmatch(said)
        if found is not None:
            return found[1]
    return ""


def _coordinates(texts: Mapping[str, str], place: str) -> str:
    found = [texts.get(f"{place}/{name}".lstrip("/"), "") for name in ("groupId", "artifactId", "version")]
    return ":".join(each for each in found if each)


def _dependency(entry: Mapping[str, str]) -> str:
    if not entry.get("artifactId"):
        return ""
    parts = [entry.get("groupId", ""), entry["artifactId"], entry.get("type", ""), entry.get("classifier", "")]
    parts.append(entry.get("version", ""))
    limits = [entry.get("scope", ""), "optional" if entry.get("optional") == "true" else ""]
    shown = ", ".join(each for each in limits if each)
    return ":".join(each for each in parts if each) + (f" ({shown})" if shown else "")


def _distinct(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in values if each))


def _safe(url: str) -> str:
    """The address, or an empty text if a page must not link to it."""
    return url if url.lower().startswith(("https://", "http://")) else ""
