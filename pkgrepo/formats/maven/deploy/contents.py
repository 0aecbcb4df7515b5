"""
The files in a bundle, and whether they make whole versions.

A bundle is a zip, tar or gzipped tar archive, which is read without unpacking it to disk. The first pass over it finds
its paths, checksums, POMs and signatures, before anything is stored. Most bundles that are refused are refused after
this pass, which reads little of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from pkgrepo.archives.source import Source, check_entry_name
from pkgrepo.archives.streams import Gunzip, PlainStream
from pkgrepo.archives.tar_archive import Tar
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.formats.maven.configuration import CHECKSUM_SIZE, DeployRequirements
from pkgrepo.formats.maven.deploy.problems import MOST_FILES, SIGNATURE_SIZE, WHOLE, Problems
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, Metadata, parse_text
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.gateway.digest_fields import parse_checksum
from pkgrepo.untrusted.strict_json import decode_json

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second one is an archive without entries
_GZIP = b"\x1f\x8b"


@frozen
class Entry:
    """
    A file in a bundle; ``size`` in bytes.

    ``pieces`` iterates over its content, once, before the next entry is asked for.
    """

    name: str
    size: int
    pieces: Callable[[], Iterator[bytes]]


def read_entries(source: Source, limit: int) -> Iterator[Entry]:
    """
    Iterate over the files of an archive, whose kind is found by its first bytes. Blocks: call it in a thread.

    Folders are left out.

    :raises Invalid: it is no archive, is damaged, exceeds a limit of ``pkgrepo.archives.source``, unpacks to more than
        ``limit`` bytes, or has a link, a device or an unsafe name
    """
    start = source.read(0, min(4, source.size))
    found = _zip_entries(source) if start in _ZIP else _tar_entries(source, packed=start.startswith(_GZIP))
    left = limit
    for entry in found:
        left -= entry.size
        if left < 0:
            raise source.refuse(f"unpacks to more than {limit} bytes")
        yield entry


def _zip_entries(source: Source) -> Iterator[Entry]:
    archive = ZipArchive(source)
    for name, entry in archive.entries.items():
        if not entry.is_folder:
            yield Entry(name, entry.size, lambda name=name: archive.pieces(name))  # type: ignore[misc]


def _tar_entries(source: Source, *, packed: bool) -> Iterator[Entry]:
    archive = Tar(source, Gunzip(source) if packed else PlainStream(source))
    for member in archive:
        name = member.name
        while name.startswith("./"):  # GNU tar writes it before each name
            name = name[2:]
        if member.is_folder and name.rstrip("/") in ("", "."):
            continue
        check_entry_name(source, name.removesuffix("/"))
        if member.link:
            raise source.refuse(f"has an entry {name!a} that is a link")
        if not member.is_folder:
            yield Entry(name, member.size, archive.pieces)


@define
class Contents:
    """
    What a bundle contains.

    ``files`` are by path, and so are the ``poms`` and the ``checksums`` that it says its files have, by algorithm.
    Metadata is ignored, because it is made from what exists.
    """

    files: dict[str, ArtifactFile] = field(factory=dict)
    checksums: dict[str, dict[str, str]] = field(factory=dict)
    poms: dict[str, Pom] = field(factory=dict)
    size: int = 0


def survey(source: Source, limit: int, contents: Contents, problems: Problems) -> Iterator[None]:
    """
    Fill in the contents of a bundle, or its problems. It stops after each file, so that others get the thread.

    :raises Invalid: the archive cannot be read; see ``read_entries``
    """
    for entry in read_entries(source, limit):
        _look_at(entry, contents, problems)
        if len(contents.files) > MOST_FILES:
            problems.add(WHOLE, f"a deployment has at most {MOST_FILES} files", 413)
            return
        yield


def _look_at(entry: Entry, contents: Contents, problems: Problems) -> None:
    try:
        path = parse_text(entry.name)
    except Invalid as error:
        problems.add(entry.name, str(error))
        return
    if isinstance(path, Metadata):
        return
    if isinstance(path, ArtifactFile):
        _take_file(entry, path, contents, problems)
        return
    if isinstance(path, Checksum):
        if isinstance(path.of, Metadata):
            return
        if isinstance(path.of, ArtifactFile):
            _take_checksum(entry, path.of.path, path.algorithm, contents, problems)
            return
    problems.add(entry.name, "this is no path of an artifact's file: group/artifact/version/artifact-version.extension")


def _take_file(entry: Entry, file: ArtifactFile, contents: Contents, problems: Problems) -> None:
    if file.path in contents.files:
        problems.add(file.path, "the bundle has two files at this path")
        return
    contents.files[file.path] = file
    contents.size += entry.size
    if file.role is not None:
        _check_signature(entry, file, problems)
    elif file.extension == "pom" and not file.classifier:
        _take_pom(entry, file, contents, problems)


def _take_checksum(entry: Entry, of: str, algorithm: str, contents: Contents, problems: Problems) -> None:
    content = _small(entry, CHECKSUM_SIZE)
    if content is None:
        problems.add(entry.name, f"a checksum file of more than {CHECKSUM_SIZE} bytes")
        return
    try:
        digest = parse_checksum(content, algorithm)
    except Invalid as error:
        problems.add(entry.name, str(error))
        return
    if contents.checksums.setdefault(of, {}).setdefault(algorithm, digest) != digest:
        problems.add(entry.name, "the bundle has two checksums at this path")


def _take_pom(entry: Entry, file: ArtifactFile, contents: Contents, problems: Problems) -> None:
    content = _small(entry, POM_SIZE)
    if content is None:
        problems.add(file.path, f"the POM is larger than {POM_SIZE} bytes")
        return
    try:
        pom = read_pom(content)
    except PkgrepoError as error:
        problems.add(file.path, str(error))
        return
    if pom is None:
        problems.add(file.path, "the POM cannot be read: it has a DOCTYPE, or an unknown encoding")
    else:
        contents.poms[file.path] = pom


def _check_signature(entry: Entry, file: ArtifactFile, problems: Problems) -> None:
    content = _small(entry, SIGNATURE_SIZE)
    if content is None:
        problems.add(file.path, f"the signature is larger than {SIGNATURE_SIZE} bytes")
        return
    sentence = signature_problem(content, file.role or "")
    if sentence is not None:
        problems.add(file.path, sentence)


def signature_problem(content: bytes, role: str) -> str | None:
    """What is wrong with the form of a signature, or None. Whether it is valid is checked when its file is stored."""
    if role == ".asc":
        # RFC 9580 section 6.2: the lines around an armoured signature
        lines = content.strip().splitlines()
        framed = len(lines) > 2 and lines[0].strip() == b"-----BEGIN PGP SIGNATURE-----"
        if not framed or lines[-1].strip() != b"-----END PGP SIGNATURE-----":
            return "this is no armoured PGP signature"
        return None
    try:
        value = decode_json(content)
    except Invalid:
        return "this is no bundle of sigstore: it is not JSON"
    return None if isinstance(value, dict) and "mediaType" in value else "this is no bundle of sigstore"


def _small(entry: Entry, limit: int) -> bytes | None:
    """The content of a file, or None if it is longer than ``limit`` bytes."""
    return None if entry.size > limit else b"".join(entry.pieces())


SIGNED_BY_ASC = ".asc"


@frozen
class Component:
    """One version of one artifact in a deployment, with its files ordered by path."""

    coordinates: Coordinates
    files: tuple[ArtifactFile, ...]

    @property
    def directory(self) -> str:
        """The path of the version's directory."""
        return self.coordinates.directory


def group_files(files: Iterable[ArtifactFile]) -> list[Component]:
    """The components that files belong to, ordered by directory."""
    found: dict[Coordinates, list[ArtifactFile]] = {}
    for each in files:
        found.setdefault(each.coordinates, []).append(each)
    return [
        Component(coordinates, tuple(sorted(found[coordinates], key=lambda file: file.path)))
        for coordinates in sorted(found, key=lambda each: each.directory)
    ]


def check_contents(contents: Contents, requirements: DeployRequirements, problems: Problems) -> list[Component]:
    """The components of a deployment. What is wrong with them is added to the problems."""
    components = group_files(contents.files.values())
    if not components and not problems:
        problems.add(WHOLE, "the deployment has no file of an artifact")
    for component in components:
        _check_component(component, contents, requirements, problems)
    for path in contents.checksums:
        if path not in contents.files:
            problems.add(path, "there is a checksum of this file, but not the file")
    return components


def check_digests(path: str, claimed: Mapping[str, str], actual: Mapping[str, str], problems: Problems) -> None:
    """Compare the checksums that a deployment says a file has with those of its bytes."""
    for algorithm, digest in claimed.items():
        if actual[algorithm] != digest:
            problems.add(path, f"{algorithm} mismatch: the deployment says {digest}, the file has {actual[algorithm]}")


def _check_component(
    component: Component, contents: Contents, requirements: DeployRequirements, problems: Problems
) -> None:
    coordinates = component.coordinates
    mains = [each for each in component.files if not each.classifier and each.role is None]
    if not any(each.extension in ("pom", "module") for each in mains):
        problems.add(component.directory, "the version has neither a POM nor a Gradle module file")
    for each in component.files:
        pom = contents.poms.get(each.path)
        mismatch = None if pom is None else pom_mismatch(pom, coordinates, each.file_version)
        if mismatch is not None:
            problems.add(each.path, mismatch)
        signed = each.signed_path
        if signed is not None and signed not in contents.files:
            problems.add(each.path, "there is a signature of this file, but not the file")
        if signed is None and requirements.signatures and each.path + SIGNED_BY_ASC not in contents.files:
            problems.add(each.path, "the file has no PGP signature, which this repository requires")
    for each in mains:
        if each.extension == "jar":
            _check_companions(each, contents, requirements, problems)


def pom_mismatch(pom: Pom, coordinates: Coordinates, file_version: str) -> str | None:
    """How a POM contradicts the path that it is at, or None. That of a build of a snapshot may name the build."""
    found = pom.mismatch(coordinates.group, coordinates.artifact, coordinates.version)
    return found and pom.mismatch(coordinates.group, coordinates.artifact, file_version) and found


def _check_companions(
    jar: ArtifactFile, contents: Contents, requirements: DeployRequirements, problems: Problems
) -> None:
    stem = jar.path.removesuffix(".jar")
    for wanted, classifier in ((requirements.sources, "sources"), (requirements.javadoc, "javadoc")):
        if wanted and f"{stem}-{classifier}.jar" not in contents.files:
            problems.add(jar.path, f"there is no {classifier} jar beside it, which this repository requires")


def component_list(components: Iterable[Coordinates], most: int) -> list[dict[str, Any]]:
    """The first components as records of a deployment's status."""
    shown = (each for _, each in zip(range(most), components, strict=False))
    return [{"group_id": each.group, "artifact_id": each.artifact, "version": each.version} for each in shown]
