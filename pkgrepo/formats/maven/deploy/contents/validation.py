"""Whether the files of a deployment make whole versions (pure): POMs, coordinates, signatures, checksums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.problems import WHOLE, Problems
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.formats.maven.upload.pom import Pom

from .survey import Contents

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
