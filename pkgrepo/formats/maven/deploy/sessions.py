"""
The document that begins a session (pure): one version of one artifact, and the files that will come one by one.

A session is a deployment of one version: its files are announced, with their digests, before they are sent.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.names import Coordinates, parse_package_key, parse_version
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.untrusted.text import quoted

MOST_FILES: Final = 500  # of one session

Text = Annotated[str, msgspec.Meta(max_length=255)]
Sum = Annotated[str, msgspec.Meta(pattern="^[0-9A-Fa-f]{0,128}$")]

_LENGTHS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class AnnouncedFile(msgspec.Struct, frozen=True):
    """A file that will be sent; the digests are optional, and compared when it arrives."""

    file_name: Text
    maven_file_type: str | None = None
    md5: Sum | None = None
    sha1: Sum | None = None
    sha256: Sum | None = None
    sha512: Sum | None = None

    def digests(self) -> dict[str, str]:
        """The announced digests in lower case. :raises Invalid: one has a wrong length"""
        found = {each: value.lower() for each in _LENGTHS if (value := getattr(self, each))}
        for algorithm, value in found.items():
            if len(value) != _LENGTHS[algorithm]:
                raise Invalid(f"{quoted(self.file_name)} has a {algorithm} of a wrong length", "files")
        return found


class SessionDocument(msgspec.Struct, frozen=True):
    """The body of the request that begins a session; further members are ignored."""

    group_id: Text
    artifact_id: Text
    version: Text
    files: Annotated[list[AnnouncedFile], msgspec.Meta(min_length=1, max_length=MOST_FILES)]
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


@frozen
class Session:
    """What a session is for: a version, and the announced digests of its files by path."""

    coordinates: Coordinates
    expected: dict[str, dict[str, str]]
    name: str

    @property
    def meta(self) -> dict[str, Any]:
        """What is kept of it while it is open."""
        return {"version": self.coordinates.version, "expected": self.expected}

    @classmethod
    def of(cls, package_key: str, meta: Any) -> Session:
        """The session that was kept."""
        group, _, artifact = package_key.partition(":")
        return cls(Coordinates(group, artifact, meta["version"]), meta["expected"], "")

    def file(self, name: str) -> ArtifactFile | None:
        """The announced file of this name, or None."""
        path = f"{self.coordinates.directory}/{name}"
        if path not in self.expected:
            return None
        found = parse_text(path)
        assert isinstance(found, ArtifactFile), "it was checked when the session began"
        return found


def read_session(value: object) -> Session:
    """
    The session that a client begins with this JSON value.

    :raises Invalid: it is malformed, or a file of it is not one of that version
    """
    try:
        document = msgspec.convert(value, SessionDocument)
    except msgspec.ValidationError as error:
        raise Invalid(f"this is no deployment: {error}") from None
    key = parse_package_key(f"{document.group_id}:{document.artifact_id}")
    group, _, artifact = key.partition(":")
    coordinates = Coordinates(group, artifact, parse_version(document.version))
    expected: dict[str, dict[str, str]] = {}
    for each in document.files:
        path = f"{coordinates.directory}/{each.file_name}"
        file = parse_text(path)
        if not isinstance(file, ArtifactFile) or file.coordinates != coordinates:
            raise Invalid(f"{quoted(each.file_name)} is no name of a file of this version", "files")
        if path in expected:
            raise Invalid(f"{quoted(each.file_name)} is announced twice", "files")
        expected[path] = each.digests()
    return Session(coordinates, expected, document.name)
