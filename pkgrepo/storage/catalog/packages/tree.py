"""
The files of a repository as a tree, one level at a time.

Folders exist only as parts of paths, so they are found by jumping: from a path to the first one behind all that share
its folder. A level costs about one index look-up for each of its entries, however much is below them. Only the page on
which the files of a level with very many folders begin goes through all paths below.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File
from pkgrepo.storage.catalog.clauses import given, narrowed
from pkgrepo.storage.catalog.columns import LAST, LIKE, like

from .files import FILE, find_file, to_file

AFTER_SLASH = chr(ord("/") + 1)
BELOW = f"/{LAST}"  # behind a folder: after all that is below it
_FILTERS = (
    "repository_id = ?",
    "path > ?",
    "path < ?",
    f"path {LIKE}",
    f"path NOT {LIKE}",
)
JUMPS = 64  # over folders, between two files; one jump costs as much as reading some fifty rows


@frozen
class Level:
    """Names of folders, then files; what follows is after ``after``, or nothing when it is None."""

    folders: list[str]
    files: list[File]
    after: str | None


def list_tree(r: Reader, repository_id: int, folder: str, *, after: str = "", limit: int = 50) -> Level:
    """
    What is directly in a folder (``""`` is the root; no slash at the end), folders before files.

    Files are in the order of their names, folders in that of the paths below them: ``a.b`` (``a.b/``) before ``a``.
    ``after`` is what an earlier level said, to go on from there.
    """
    prefix = f"{folder}/" if folder else ""
    phase, _, name = after.partition("/")
    folders: list[str] = []
    if phase != "f":
        folders = _folders(r, repository_id, prefix, name, limit + 1)
        if len(folders) > limit:
            folders = folders[:limit]
            return Level(folders, [], f"d/{folders[-1]}")
        name = ""
    found = _files(r, repository_id, prefix, name, limit + 1 - len(folders))
    if len(folders) + len(found) > limit:
        found = found[: limit - len(folders)]
        last = found[-1].path[len(prefix) :] if found else ""
        return Level(folders, found, f"f/{last}")
    return Level(folders, found, None)


def file_or_folder(r: Reader, repository_id: int, path: str) -> File | bool:
    """The file at a path; else whether anything is below it."""
    return find_file(r, repository_id, path) or bool(not path or _next(r, repository_id, f"{path}/", f"{path}/"))


def _folders(r: Reader, repository_id: int, prefix: str, after: str, limit: int) -> list[str]:
    found: list[str] = []
    low = prefix + after + BELOW if after else prefix
    while len(found) < limit:
        path = _next(r, repository_id, prefix, low, nested=True)
        if path is None:
            break
        name = path[len(prefix) :].partition("/")[0]
        found.append(name)
        low = prefix + name + BELOW
    return found


def _files(r: Reader, repository_id: int, prefix: str, after: str, limit: int) -> list[File]:
    found: list[File] = []
    low = prefix + after
    jumps = 0
    while len(found) < limit:
        path = _next(r, repository_id, prefix, low, nested=False if jumps > JUMPS else None)
        if path is None:
            break
        name, slash, _ = path[len(prefix) :].partition("/")
        if slash:
            low = prefix + name + BELOW
            jumps += 1
            continue
        jumps = 0
        row = r.one(f"{FILE} WHERE f.repository_id = ? AND f.path = ?", (repository_id, path))
        if row is not None:
            found.append(to_file(row))
        low = path
    return found


def _next(r: Reader, repository_id: int, prefix: str, low: str, *, nested: bool | None = None) -> str | None:
    """The first path behind ``low`` below the prefix; with ``nested``, the first that has a folder there, or none."""
    folder = f"{like(prefix)[1:-1]}%/%"
    values = (
        repository_id,
        low,
        prefix[:-1] + AFTER_SLASH if prefix else None,
        folder if nested is True else None,
        folder if nested is False else None,
    )
    sql = f"SELECT path FROM file WHERE {narrowed(_FILTERS, values)} ORDER BY path LIMIT 1"
    row = r.one(sql, given(values))
    return None if row is None else str(row[0])
