"""
Compares two versions of a package: their files, dependencies and install scripts.

Archives of two versions are compared entry by entry. Where names have the version in their first segment, as
``demo-1.0.dist-info/METADATA`` has, it counts as the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final, Literal

from pkgrepo.archives.listing import is_archive
from pkgrepo.management.packages.contents import ArchiveEntryRecord, EntryChange, TextChange
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages.dependencies import read_dependencies

LARGEST_COMPARED: Final = 128 * 1024 * 1024  # bytes of an archive
INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")


def find_pair(before: Iterable[File], after: Iterable[File], versions: tuple[str, str]) -> tuple[File, File] | None:
    """
    The archives of two versions to compare: the smallest two whose names differ in the version alone.

    None if there are none; archives of more than ``LARGEST_COMPARED`` bytes do not count.
    """
    ours, theirs = (
        {_filename(each).replace(version, "*"): each for each in files if _comparable(each)}
        for files, version in zip((before, after), versions, strict=True)
    )
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    return min(pairs, key=lambda pair: pair[0].size + pair[1].size, default=None)


def compare_entries(
    before: Iterable[ArchiveEntryRecord],
    after: Iterable[ArchiveEntryRecord],
    versions: tuple[str, str],
    complete: tuple[bool, bool] = (True, True),
) -> tuple[list[EntryChange], bool]:
    """
    The files and links that were added, removed or changed, by name, and whether these are all.

    They are not all where a listing is not ``complete``, since what it lacks is not known to be absent, and where files
    of one size have no digests.
    """
    ours, theirs = (
        {neutral_name(each.name, version): each for each in entries if each.kind != "folder"}
        for entries, version in zip((before, after), versions, strict=True)
    )
    found, whole = [], all(complete)
    change: Literal["added", "removed", "changed"]
    for name in sorted(ours.keys() | theirs.keys()):
        old, new = ours.get(name), theirs.get(name)
        if old is None or new is None:
            if not complete[0 if old is None else 1]:
                continue
            change = "added" if old is None else "removed"
        elif _content(old) != _content(new):
            change = "changed"
        else:
            whole = whole and (old.kind != "file" or bool(old.sha256))
            continue
        found.append(EntryChange(name=name, change=change, size_before=_size(old), size_after=_size(new)))
    return found, whole


def neutral_name(name: str, version: str) -> str:
    """The name of an entry with "*" in place of the version in its first segment."""
    top, slash, rest = name.partition("/")
    return f"{top.replace(version, '*')}{slash}{rest}" if slash else name


def unified_difference(texts: Sequence[str | None], labels: tuple[str, str]) -> str:
    """Two texts as a unified diff; None for a text that is not there. It may take some milliseconds."""
    before, after = ((text or "").splitlines() for text in texts)
    return "".join(f"{line}\n" for line in unified_diff(before, after, *labels, lineterm=""))


def compare_requirements(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[TextChange]:
    """The dependencies that differ between the metadata of two versions, by name."""
    ours, theirs = (_by_name(meta) for meta in (before, after))
    return _changes(ours, theirs)


def compare_scripts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[TextChange]:
    """The scripts that run at an installation and differ between the metadata of two versions."""
    return _changes(*(_scripts(meta) for meta in (before, after)))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[TextChange]:
    names = sorted(before.keys() | after.keys())
    return [
        TextChange(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _by_name(meta: Mapping[str, Any]) -> dict[str, str]:
    """The dependencies by name; those that are written several times, for several platforms, are joined."""
    found: dict[str, list[str]] = {}
    for each in read_dependencies(meta):
        found.setdefault(each.name or each.text, []).append(each.text)
    return {name: "; ".join(texts) for name, texts in found.items()}


def _scripts(meta: Mapping[str, Any]) -> dict[str, str]:
    scripts = meta.get("scripts")
    if not isinstance(scripts, dict):
        return {}
    return {name: scripts[name] for name in INSTALL_SCRIPTS if isinstance(scripts.get(name), str)}


def _content(entry: ArchiveEntryRecord) -> Sequence[object]:
    return entry.kind, entry.size, entry.link, entry.sha256


def _size(entry: ArchiveEntryRecord | None) -> int | None:
    return None if entry is None else entry.size


def _comparable(file: File) -> bool:
    return is_archive(_filename(file)) and file.size <= LARGEST_COMPARED


def _filename(file: File) -> str:
    return file.path.rpartition("/")[2]
