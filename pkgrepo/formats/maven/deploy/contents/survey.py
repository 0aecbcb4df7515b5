"""
The first pass over a bundle: its paths, checksums, POMs and signatures. Nothing is stored yet.

Most bundles that are refused are refused after this pass, which reads little of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.formats.maven.deploy.limits import MOST_FILES, SIGNATURE_SIZE
from pkgrepo.formats.maven.deploy.problems import WHOLE, Problems
from pkgrepo.formats.maven.limits import CHECKSUM_SIZE
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, Metadata, parse_text
from pkgrepo.formats.maven.upload.digest_fields import parse_checksum
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.untrusted.strict_json import decode_json

from .bundle import Entry, read_entries


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
