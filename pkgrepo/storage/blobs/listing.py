"""Lists the blobs and removes the old uploads of a filesystem store. All of it blocks: call it on the disk threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from .paths import FAN_OUT, StorePaths, is_locator, is_upload_id


def scan_blobs(paths: StorePaths, after: str, limit: int) -> list[tuple[str, int, datetime]]:
    """
    Return up to ``limit`` copies as (locator, size, time of commit) after ``after``, ordered by locator.

    Holds at most ``limit`` names in memory, however many a directory has. Copies removed meanwhile are left out.
    """
    return list(islice(_copies(paths, after, limit), limit))


def _copies(paths: StorePaths, after: str, limit: int) -> Iterator[tuple[str, int, datetime]]:
    for folder in FAN_OUT:
        if folder < after[:2]:
            continue
        last = after
        while True:
            with os.scandir(paths.blobs / folder) as entries:
                locators = (f"{folder}/{entry.name}" for entry in entries)
                page = nsmallest(limit, (each for each in locators if each > last and is_locator(each)))
            for locator in page:
                with suppress(FileNotFoundError):
                    found = paths.blob(locator).lstat()
                    yield locator, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)
            if len(page) < limit:
                break
            last = page[-1]


def sweep_uploads(paths: StorePaths, older_than: datetime, in_use: Callable[[str], bool]) -> int:
    """Remove the files of uploads last written before ``older_than`` and not in use. Returns their number."""
    limit = older_than.timestamp()
    removed = 0
    with os.scandir(paths.uploads) as entries:
        candidates = [entry.name for entry in entries if is_upload_id(entry.name) and not in_use(entry.name)]
    for upload_id in candidates:
        folder = paths.upload(upload_id)
        # An upload that has just ended has no files left; one that cannot be removed is tried by the next sweep.
        with suppress(OSError):
            if _modified_at(folder) < limit:
                for file in folder.iterdir():  # the data, and copies of it
                    file.unlink()
                folder.rmdir()
                removed += 1
    return removed


def _modified_at(folder: Path) -> float:
    files = [each.lstat().st_mtime for each in folder.iterdir()]
    return max(files, default=folder.lstat().st_mtime)
