"""Whether the files of a deployment can be at their paths, which others may have taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.formats.maven.push_rules import PushPermit
from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.packages.release_batches import find_files, paths_with_files
from pkgrepo.storage.catalog.packages.tree import file_or_folder, folders_with_files, list_folders

from .parts import Part
from .problems import Problems

FEW_FOLDERS: Final = 100


def find_problems(r: Reader, repository_id: int, parts: Sequence[Part], permits: Sequence[PushPermit]) -> Problems:
    """The problems by path: other files that may not be replaced, files where folders are needed, and the reverse."""
    problems = Problems()
    own = {file.path for part in parts for file, _ in part.files}
    needed = {folder for part in parts for folder in _folders_of(part)}
    there = find_files(r, repository_id, own)
    used = folders_with_files(r, repository_id, dict.fromkeys(part.coordinates.directory for part in parts))
    in_the_way = paths_with_files(r, repository_id, needed) | (needed & own)
    for part, permit in zip(parts, permits, strict=True):
        directory = part.coordinates.directory
        for folder in _folders_of(part):
            if folder in in_the_way:
                problems.add(directory, f"{folder} is a file, so that nothing can be below it", 409)
        folders = _folders_in(r, repository_id, part) if directory in used else ()
        for file, staged in part.files:
            found = there.get(file.path)
            if found is not None and found.sha256 != staged.blob.sha256 and not permit.overwrite:
                problems.add(file.path, permit.why_not.sentence, permit.why_not.status)
            if file.filename in folders or file.path in needed:
                problems.add(file.path, "there is a folder at this path", 409)
    return problems


def _folders_of(part: Part) -> Iterator[str]:
    """The folders that the files of a part are in."""
    folder = part.coordinates.directory
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _folders_in(r: Reader, repository_id: int, part: Part) -> set[str]:
    """The names of folders in the directory of a part, among them each that a file of the part has."""
    found = list_folders(r, repository_id, part.coordinates.directory, "", FEW_FOLDERS)
    if len(found) < FEW_FOLDERS:  # nearly always none: one look-up instead of one for each file
        return set(found)
    return {each.filename for each, _ in part.files if file_or_folder(r, repository_id, each.path) is True}
