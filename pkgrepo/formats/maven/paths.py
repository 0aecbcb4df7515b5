"""
The grammar of request paths below a repository (Maven 2 repository layout).

A path is split before it is decoded, and each segment is decoded once, so that an encoded character never acts as a
separator. What a path means follows from the path alone:

=====================================  =================================================================================
path                                   meaning
=====================================  =================================================================================
``g/a/v/a-v[-classifier].ext``         a file of an artifact; of a snapshot also ``a-<build>...``, where a build is
                                       ``1.1-20240102.030405-6``
``<directory>/maven-metadata.xml``     metadata; ``repo-metadata.xml`` is another name of the same object
``<any of these>.sha1`` and others     a checksum, which is computed and never stored
ends with a slash, or is empty         a directory
anything else                          a plain file, which belongs to no artifact
=====================================  =================================================================================

The file's name is read by what the directories say, since artifacts, versions and classifiers all may have dashes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.names import SNAPSHOT, UNWANTED, Coordinates, is_literal_snapshot, is_part, is_snapshot
from pkgrepo.untrusted.text import decode_parts

LONGEST_SEGMENT: Final = 255  # bytes
LONGEST_PATH: Final = 1024  # bytes
RECENT: Final = 1000  # parsed paths, at most 2 MB

SEARCH: Final = "solrsearch/select"  # editors and build tools append it to the repository's address
TAKEN: Final = (".twin", ".bundle")  # folders that static twins and bundles of the repository have for themselves
METADATA_NAME: Final = "maven-metadata.xml"
METADATA_NAMES: Final = (METADATA_NAME, "repo-metadata.xml")
ALGORITHMS: Final = ("md5", "sha1", "sha256", "sha512")  # of checksums
ROLES: Final = (".asc", ".sigstore.json")  # suffixes of the signatures of a file

# Maven takes build numbers of any length, and a segment of a path has at most 255 bytes.
_BUILD = re.compile(r"([0-9]{8}\.[0-9]{6})-([0-9]{1,255})(?=[-.])")


@frozen
class ArtifactFile:
    """
    A file of one version of an artifact, or the signature of such a file.

    ``file_version`` is the version in the file's name, which in a timestamped snapshot is that of the build, whose
    ``timestamp`` and ``build`` number stand beside it. ``extension`` has no dot in front; that of a signature goes on
    behind that of its file: ``jar.asc``. ``role`` is the suffix by which a signature differs from the name of its file;
    None for other files.
    """

    path: str
    coordinates: Coordinates
    file_version: str
    classifier: str
    extension: str
    timestamp: str | None = None
    build: int | None = None
    role: str | None = None

    @property
    def filename(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]

    @property
    def signed_path(self) -> str | None:
        """The path of the file that this is a signature of; None for other files."""
        return None if self.role is None else self.path.removesuffix(self.role)

    @property
    def literal_snapshot(self) -> bool:
        """Whether this is a snapshot without a timestamp in its name, which each deploy replaces."""
        return self.timestamp is None and is_literal_snapshot(self.coordinates.version)


@frozen
class Metadata:
    """
    The metadata of a directory; ``path`` always has the usual name of it, and ``directory`` has no slash at the end.

    ``package_key`` is the artifact that the metadata belongs to: of ``g1/g2/a`` it is ``g1.g2:a`` (the directory may be
    the group ``g1.g2.a`` at the same time, whose plugins are in the same document). None where the directory is no
    artifact: the metadata is a plain file then.

    In the directory of a snapshot ``version`` is set, and ``package_key`` is the artifact of that version.

    ``coordinates`` are what the directory is if it is that of a version. If ``version`` is None too, only the catalog
    can tell: ``g1/g2/a`` may also be version ``a`` of ``g1:g2``.
    """

    path: str
    directory: str
    coordinates: Coordinates | None
    package_key: str | None
    version: str | None


@frozen
class PlainFile:
    """A file that belongs to no artifact."""

    path: str


@frozen
class Checksum:
    """A checksum of another object; ``algorithm`` is one of L{ALGORITHMS}."""

    of: ArtifactFile | Metadata | PlainFile
    algorithm: str

    @property
    def path(self) -> str:
        """The path of the checksum."""
        return f"{self.of.path}.{self.algorithm}"


@frozen
class Directory:
    """A directory; ``path`` has no slash at the end, and is empty for the repository itself."""

    path: str


FilePath = ArtifactFile | Metadata | PlainFile
Path = FilePath | Checksum | Directory


def parse_path(raw: bytes, *, directory_ok: bool) -> Path:
    """
    What a path means; ``raw`` is as on the wire, behind the slash that ends the repository's own path.

    :raises Invalid: it is no path; with ``directory_ok`` off also if it is one of a directory
    """
    if not raw or raw.endswith(b"/"):
        if not directory_ok:
            raise Invalid("this is the path of a directory, and a file was expected", "path")
        return Directory(_join(_decode(raw[:-1]))) if raw else Directory("")
    return parse_text("/".join(_decode(raw)))


@lru_cache(maxsize=RECENT)
def parse_text(path: str) -> Path:
    """
    What a decoded path of a file means, such as that of an entry of an archive.

    It is asked several times while one file is published or fetched, so recent answers are kept.

    :raises Invalid: it is no path of a file
    """
    segments = path.split("/")
    for each in segments:
        _check_segment(each)
    return _parse_segments(segments)


def artifact_file(coordinates: Coordinates, path: str, name: str) -> ArtifactFile | None:
    """The file of this name in the directory of a version, or None if its name does not begin with the artifact's."""
    found = _split_version(name, coordinates)
    if found is None:
        return None
    file_version, rest, timestamp, build = found
    classifier, dot, extension = (rest[1:] if rest[0] == "-" else rest).partition(".")
    if not dot or not all(extension.split(".")) or (rest[0] == "-") != (classifier != ""):
        return None
    role = next((each for each in ROLES if f".{extension}".endswith(each) and f".{extension}" != each), None)
    return ArtifactFile(path, coordinates, file_version, classifier, extension, timestamp, build, role)


def _parse_segments(segments: list[str]) -> FilePath | Checksum:
    """
    What the segments of a path of a file mean; each is checked already, but not its length.

    :raises Invalid: it is too long, the checksum of a checksum, or below the name of metadata
    """
    *directory, name = segments
    if not set(METADATA_NAMES).isdisjoint(directory):
        raise Invalid(f"a directory cannot have the name {METADATA_NAME}, which is that of metadata", "path")
    stem, dot, suffix = name.rpartition(".")
    if dot and stem and suffix in ALGORITHMS:
        if stem.rpartition(".")[2] in ALGORITHMS:
            raise Invalid("checksums have no checksums", "path")
        return Checksum(_parse_file(directory, stem), suffix)
    return _parse_file(directory, name)


def _parse_file(directory: list[str], name: str) -> FilePath:
    if name in METADATA_NAMES:
        return _metadata(directory)
    path = _join([*directory, name])
    coordinates = coordinates_of(directory)
    found = None if coordinates is None else artifact_file(coordinates, path, name)
    return PlainFile(path) if found is None else found


def _metadata(directory: list[str]) -> Metadata:
    path = _join([*directory, METADATA_NAME])
    coordinates = coordinates_of(directory)
    if coordinates is not None and is_snapshot(coordinates.version):
        key: str | None = coordinates.package_key
        version: str | None = coordinates.version
    else:
        key = package_key_of(directory)
        version = None
    return Metadata(path, "/".join(directory), coordinates, key, version)


def coordinates_of(directory: list[str]) -> Coordinates | None:
    """What a directory is if it is that of a version, or None if it cannot be one."""
    *package, version = directory or [""]
    if package_key_of(package) is None or not is_part(version):
        return None
    return Coordinates(".".join(package[:-1]), package[-1], version)


def package_key_of(directory: list[str]) -> str | None:
    """
    The key of the artifact whose directory this is, or None if it cannot be one.

    A dot in a segment of a group would be another way to write a slash, so that two directories were one artifact.
    """
    *group, artifact = directory or [""]
    if not group or not is_part(artifact) or any("." in each or not is_part(each) for each in group):
        return None
    return f"{'.'.join(group)}:{artifact}"


def _split_version(name: str, coordinates: Coordinates) -> tuple[str, str, str | None, int | None] | None:
    """Split a file's name behind its version: (version, rest, timestamp, build number), or None."""
    version = coordinates.version
    rest = name.removeprefix(f"{coordinates.artifact}-{version}")
    if rest != name and rest[:1] in ("-", "."):
        return version, rest, None, None
    if not is_literal_snapshot(version):
        return None
    base = version[: -len(SNAPSHOT)]  # with its dash
    rest = name.removeprefix(f"{coordinates.artifact}-{base}")
    match = _BUILD.match(rest) if rest != name else None
    if match is None:
        return None
    return base + match[0], rest[match.end() :], match[1], int(match[2])


def _decode(raw: bytes) -> list[str]:
    """The segments of a path, none of which has a slash."""
    try:
        segments = [each.decode() for each in decode_parts(raw)]
    except UnicodeDecodeError:
        raise Invalid("the path is not UTF-8", "path") from None
    for each in segments:
        _check_segment(each)
    return segments


def _check_segment(segment: str) -> None:
    if segment in ("", ".", ".."):
        raise Invalid("a segment of the path is empty, '.' or '..'", "path")
    if UNWANTED.search(segment):
        raise Invalid("the path has an encoded slash, a backslash or a control character", "path")


def _join(segments: list[str]) -> str:
    """The path; checksums are not stored, so their suffixes do not count. :raises Invalid: it is too long"""
    path = "/".join(segments)
    if any(len(each.encode()) > LONGEST_SEGMENT for each in segments):
        raise Invalid(f"a segment of the path is longer than {LONGEST_SEGMENT} bytes", "path")
    if len(path.encode()) > LONGEST_PATH:
        raise Invalid(f"the path is longer than {LONGEST_PATH} bytes", "path")
    return path


OTHER: Final = "application/octet-stream"

_MEDIA_TYPES: Final = {
    "jar": "application/java-archive",
    "war": "application/java-archive",
    "ear": "application/java-archive",
    "aar": "application/java-archive",
    "pom": "application/xml",
    "xml": "application/xml",
    "module": "application/json",
    "json": "application/json",
    "asc": "text/plain",
    "md5": "text/plain",
    "sha1": "text/plain",
    "sha256": "text/plain",
    "sha512": "text/plain",
    "txt": "text/plain",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tgz": "application/gzip",
    "tar": "application/x-tar",
}


def media_type(path: str) -> str:
    """The media type of the file at a path."""
    return _MEDIA_TYPES.get(path.rpartition(".")[2].lower(), OTHER)
