"""
The files of a repository as a tree, one level at a time.

Folders exist only as prefixes of paths. To list them, a query seeks in the index from a path to the first path after
all those in the same folder. So a level costs about one index seek for each of its entries, however many files are
below them. Only one page of a level with more than ``MAX_SEEKS`` folders costs more: the page on which its files start
scans all paths below.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from pkgrepo.errors import Conflict
from pkgrepo.interfaces import Reader
from pkgrepo.model import File
from pkgrepo.storage.catalog.rows import (
    LAST_CHARACTER,
    LIKE,
    batches,
    every,
    like,
    non_null,
    optional_conditions,
    placeholders,
    scalar,
)

from .files import FILE, find_file, to_file

AFTER_SLASH = chr(ord("/") + 1)
FOLDER_END = f"/{LAST_CHARACTER}"  # appended to a folder: sorts after every path in the folder
_FILTERS = (
    "repository_id = ?",
    "path > ?",
    "path < ?",
    f"path {LIKE}",
    f"path NOT {LIKE}",
)
_FILE_FILTERS = tuple(f"f.{each}" for each in _FILTERS)
MAX_SEEKS = 64  # over folders, between two files, before a scan; one seek costs as much as reading some 50 rows


@frozen
class Level:
    """A page of one level: names of folders, then files. ``after`` is the cursor of the next page, None at the end."""

    folders: list[str]
    files: list[File]
    after: str | None


def list_tree(r: Reader, repository_id: int, folder: str, *, after: str = "", limit: int = 50) -> Level:
    """
    A page of the direct entries of a folder (``""`` is the root; no slash at the end), folders before files.

    Files are ordered by name, folders by name with a slash at the end: ``a.b`` (``a.b/``) before ``a`` (``a/``).
    ``after`` is the cursor that the previous page returned.
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


def list_folders(r: Reader, repository_id: int, folder: str, after: str, limit: int) -> list[str]:
    """The names of at most ``limit`` folders of a folder, after the name ``after``, in the order of ``list_tree``."""
    return _folders(r, repository_id, f"{folder}/" if folder else "", after, limit)


def list_files(
    r: Reader, repository_id: int, folder: str, after: str, limit: int, *, of_packages: bool = True
) -> list[File]:
    """
    At most ``limit`` files of a folder, after the name ``after``, by name.

    It reads the files in the folders below, too. Without ``of_packages`` it reads and returns only files that belong to
    no package, which are few.
    """
    prefix = f"{folder}/" if folder else ""
    values = (
        repository_id,
        prefix + after,
        prefix[:-1] + AFTER_SLASH if prefix else None,
        None,
        f"{like(prefix)[1:-1]}%/%",
    )
    conditions = optional_conditions(_FILE_FILTERS, values)
    plain = "" if of_packages else " AND f.package_id IS NULL"
    return every(r, to_file, f"{FILE} WHERE {conditions}{plain} ORDER BY f.path LIMIT ?", (*non_null(values), limit))


def folders_with_files(r: Reader, repository_id: int, folders: Iterable[str]) -> set[str]:
    """The folders, of some (no slash at the end), below which there is any file."""
    found: set[str] = set()
    for some in batches(list(folders)):
        rows = r.all(
            f"""
            SELECT folder.column1 FROM (VALUES {placeholders(len(some), "(?)")}) AS folder
            WHERE EXISTS (
                SELECT 1 FROM file
                WHERE repository_id = ? AND path > folder.column1 || '/' AND path < folder.column1 || '{AFTER_SLASH}'
            )
            """,
            (*some, repository_id),
        )
        found.update(path for (path,) in rows)
    return found


def file_or_folder(r: Reader, repository_id: int, path: str) -> File | bool:
    """The file at a path; else True if the path is a folder (the root always is), False if it does not exist."""
    return find_file(r, repository_id, path) or bool(not path or _next(r, repository_id, f"{path}/", f"{path}/"))


def count_below(r: Reader, repository_id: int, folder: str, most: int) -> int:
    """How many files are below a folder (``""`` is the root; no slash at the end); ``most`` if there are more."""
    prefix = f"{folder}/" if folder else ""
    values = (repository_id, prefix, prefix[:-1] + AFTER_SLASH if prefix else None, None, None)
    conditions = optional_conditions(_FILTERS, values)
    sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM file WHERE {conditions} LIMIT ?) AS below"
    return int(scalar(r, sql, (*non_null(values), most)) or 0)


def check_place(r: Reader, repository_id: int, path: str) -> None:
    """
    Check that a file can be at a path. Costs one look-up for each folder of the path.

    :raises Conflict: the path is a folder, or one of its folders is a file
    """
    if file_or_folder(r, repository_id, path) is True:
        raise Conflict(f"{path} is a folder")
    names = path.split("/")
    for some in batches(["/".join(names[:count]) for count in range(1, len(names))]):
        sql = f"SELECT path FROM file WHERE repository_id = ? AND path IN ({placeholders(len(some))})"
        for (file,) in r.all(sql, (repository_id, *some)):
            raise Conflict(f"{file} is a file, so that nothing can be below it")


def _folders(r: Reader, repository_id: int, prefix: str, after: str, limit: int) -> list[str]:
    found: list[str] = []
    low = prefix + after + FOLDER_END if after else prefix
    while len(found) < limit:
        path = _next(r, repository_id, prefix, low, nested=True)
        if path is None:
            break
        name = path[len(prefix) :].partition("/")[0]
        found.append(name)
        low = prefix + name + FOLDER_END
    return found


def _files(r: Reader, repository_id: int, prefix: str, after: str, limit: int) -> list[File]:
    found: list[File] = []
    low = prefix + after
    seeks = 0
    while len(found) < limit:
        path = _next(r, repository_id, prefix, low, nested=False if seeks > MAX_SEEKS else None)
        if path is None:
            break
        name, slash, _ = path[len(prefix) :].partition("/")
        if slash:
            low = prefix + name + FOLDER_END
            seeks += 1
            continue
        seeks = 0
        row = r.one(f"{FILE} WHERE f.repository_id = ? AND f.path = ?", (repository_id, path))
        if row is not None:
            found.append(to_file(row))
        low = path
    return found


def _next(r: Reader, repository_id: int, prefix: str, low: str, *, nested: bool | None = None) -> str | None:
    """
    The first path after ``low`` that starts with the prefix, or None.

    With ``nested`` True only paths with a further folder below the prefix count, with False only those without.
    """
    folder = f"{like(prefix)[1:-1]}%/%"
    values = (
        repository_id,
        low,
        prefix[:-1] + AFTER_SLASH if prefix else None,
        folder if nested is True else None,
        folder if nested is False else None,
    )
    sql = f"SELECT path FROM file WHERE {optional_conditions(_FILTERS, values)} ORDER BY path LIMIT 1"
    return scalar(r, sql, non_null(values))
