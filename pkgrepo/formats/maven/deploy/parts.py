"""The parts of a deployment: files of one version to which the same push rules apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from pkgrepo.formats.maven.deploy.contents import component_list
from pkgrepo.formats.maven.deploy.problems import SHOWN_COMPONENTS
from pkgrepo.formats.maven.metadata.reading import Plugin
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.formats.maven.push_rules import PushPermit
from pkgrepo.formats.maven.upload.jar import FACTS
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.model.deployments import StagedFile
from pkgrepo.repositories.publish.releases import Release


@frozen
class Part:
    """
    Files of one version to which the same push rules apply.

    Those of a snapshot without a timestamp may be replaced where others may not, so they are a part of their own.
    """

    coordinates: Coordinates
    files: tuple[tuple[ArtifactFile, StagedFile], ...]

    @property
    def first(self) -> ArtifactFile:
        """Any of the files, to ask for the rules."""
        return self.files[0][0]

    @property
    def meta(self) -> Mapping[str, Any] | None:
        """What its POM says of the version; of several builds of a snapshot that of the newest; None without POM."""
        poms = [
            (file.timestamp or "", file.build or 0, staged) for file, staged in self.files if "meta" in staged.attrs
        ]
        if not poms:
            return None
        found: Mapping[str, Any] = max(poms, key=lambda each: each[:2])[2].attrs["meta"]
        return found

    @property
    def plugin(self) -> Mapping[str, str] | None:
        """Prefix and name of the plugin that it is, or None."""
        return next((staged.attrs["plugin"] for _, staged in self.files if "plugin" in staged.attrs), None)


def split_parts(staged: Iterable[StagedFile]) -> list[Part]:
    """The parts of a deployment, ordered by directory. Takes some 10 us per file."""
    found: dict[tuple[str, bool], list[tuple[ArtifactFile, StagedFile]]] = {}
    staged = list(staged)
    for file, each in zip(artifact_files(staged), staged, strict=True):
        found.setdefault(part_key(file), []).append((file, each))
    return [Part(found[key][0][0].coordinates, tuple(found[key])) for key in sorted(found)]


def artifact_files(staged: Iterable[StagedFile]) -> list[ArtifactFile]:
    """What the paths of staged files mean."""
    found = [parse_text(each.path) for each in staged]
    assert all(isinstance(each, ArtifactFile) for each in found), "they were checked before they were staged"
    return found  # type: ignore[return-value]


def one_of_each(files: Iterable[ArtifactFile]) -> Sequence[ArtifactFile]:
    """One file of each part, in the order of their directories."""
    found = {part_key(each): each for each in files}
    return [found[key] for key in sorted(found)]


def part_key(file: ArtifactFile) -> tuple[str, bool]:
    """What the files of one part have in common."""
    return file.coordinates.directory, file.literal_snapshot


def summary_of(parts: Sequence[Part]) -> dict[str, Any]:
    """What is kept of a deployment: its components, and the number of its files."""
    coordinates = dict.fromkeys(each.coordinates for each in parts)
    return {
        "components": component_list(coordinates, SHOWN_COMPONENTS),
        "component_count": len(coordinates),
        "file_count": sum(len(each.files) for each in parts),
    }


def releases_of(parts: Sequence[Part], permits: Sequence[PushPermit]) -> list[Release]:
    """One release for each part, with what the push rules permit it."""
    return [
        make_release(
            part.coordinates,
            [new_file(file, staged.blob, **_facts(staged)) for file, staged in part.files],
            part.meta,
            overwrite=permit.overwrite,
            reuse=permit.reuse,
        )
        for part, permit in zip(parts, permits, strict=True)
    ]


def _facts(staged: StagedFile) -> dict[str, Any]:
    """The attributes of a staged file that are those of the published one, too."""
    return {FACTS: staged.attrs[FACTS]} if FACTS in staged.attrs else {}


def plugins_of(parts: Iterable[Part]) -> dict[str, list[Plugin]]:
    """The plugins among the parts, by group."""
    found: dict[str, list[Plugin]] = {}
    for part in parts:
        if part.plugin is not None:
            at = part.coordinates
            found.setdefault(at.group, []).append(Plugin(part.plugin["prefix"], at.artifact, part.plugin["name"]))
    return found
