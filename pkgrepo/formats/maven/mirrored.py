"""Where a repository has what lists of artifacts name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Needs, Place, by_name, is_path
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository

from .locks import NAME, artifact_stem, read_maven
from .needed_poms import NeededPoms
from .paths import ArtifactFile, Metadata, parse_text
from .upload.pom import POM_SIZE

FOLDER_LIST: Final = "list of a local Maven repository"  # the name of the list that a command makes of a folder


def _places(wanted: Wanted) -> Iterator[Place]:
    target = parse_text(wanted.file)
    if isinstance(target, ArtifactFile):
        key = target.coordinates.package_key
        yield Place(wanted=wanted, key=key, path=wanted.file, is_companion=wanted.optional)
    elif isinstance(target, Metadata) and target.package_key is not None:
        key = target.package_key if target.version is None else f"{target.package_key}:{target.version}"
        yield Place(wanted=wanted, key=key, is_document=True)
    else:
        raise Invalid(f"{wanted.file[:200]!r} is not the path of a file of an artifact")


async def _choose(_services: Services, _repository: Repository, name: str, versions: Sequence[str]) -> list[Wanted]:
    return [each for version in versions for each in _artifact(name, version)]


def _artifact(name: str, version: str) -> Iterator[Wanted]:
    """The POM of a version, and its jar if it has one."""
    group, colon, artifact = name.partition(":")
    if not colon:
        raise Invalid("a Java artifact is named group:artifact")
    stem = artifact_stem(group, artifact, version)
    yield Wanted(format=NAME, name=name, version=version, file=f"{stem}.pom")
    yield Wanted(format=NAME, name=name, version=version, file=f"{stem}.jar", optional=True)


MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("gradle.lockfile", "pom.xml"), read_maven, frozenset({NAME})),),
    read_list=read_maven,
    name_sign=re.compile(re.escape(FOLDER_LIST.casefold())),
    text_sign=re.compile(r"<project[\s>]|\[INFO\]"),
    document_keys=lambda _wanted: iter(()),  # most builds ask for files alone
    places=by_name(_places),
    choose=_choose,
    is_wanted=is_path,
    needs=Needs(ending=".pom", largest=POM_SIZE, collect=NeededPoms),
)
