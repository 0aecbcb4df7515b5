"""An export of devpi (``devpi-export``): ``dataindex.json``, and the files of its indexes beside it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.imported import About, in_order
from pkgrepo.formats.python.names import collapse, file_path, parse_filename
from pkgrepo.gateway.imported.described import digests_of, objects_of, text_of
from pkgrepo.gateway.imported.items import Item, SourcePackage
from pkgrepo.gateway.imported.places import Folder

DATA: Final = "dataindex.json"
SUMS: Final = {each: each for each in ("sha512", "sha256", "md5")}


class DevpiExport:
    """One index of an export; its name (``user/index``) is needed if the export has several."""

    def __init__(self, folder: Folder, repositories: Sequence[str]) -> None:
        self._folder = folder
        self._wanted = [each.strip("/") for each in repositories]
        self._found: dict[str, list[Mapping[str, Any]]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The projects of the index. :raises NotFound: it is no export; :raises Invalid: it has no such index"""
        data = await self._folder.json(DATA)
        indexes = data.get("indexes") if isinstance(data, dict) else None
        if not isinstance(indexes, dict):
            raise Invalid(f"{DATA} has no indexes")
        # mirrors have no files of their own
        own = {name: each for name, each in indexes.items() if isinstance(each, dict) and each.get("files")}
        wanted = self._wanted or list(own)
        if len(wanted) != 1 or wanted[0] not in indexes:
            raise Invalid(
                f"name one index of the export (repositories, or --repository): {', '.join(sorted(own))}",
                "/repositories",
            )
        for file in objects_of(indexes[wanted[0]].get("files")):
            if file.get("type") == "releasefile":
                self._found.setdefault(collapse(text_of(file.get("projectname"))), []).append(file)
        for name in sorted(self._found):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a project."""
        items, left_out = [], []
        files = self._found.pop(name)
        for file in files:
            path = text_of(file.get("relpath"))
            try:
                items.append(self._item(name, path, file))
            except Invalid as error:
                left_out.append((path[:255], error.message))
        mark = hashlib.sha256(repr(files).encode()).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=in_order(items), left_out=left_out)

    def _item(self, project: str, path: str, file: Mapping[str, Any]) -> Item:
        """:raises Invalid: it is no distribution, or its path leads out of the export"""
        if posixpath.normpath(path) != path or path.startswith(("/", "..")):
            raise Invalid("its path leads out of the export")
        parsed = parse_filename(path.rpartition("/")[2], project=project, eggs=True)
        said = file.get("entrymapping")
        entry = said if isinstance(said, dict) else {}
        algorithm, _, digest = text_of(entry.get("hash_spec")).partition("=")
        uploads = [each for each in objects_of(file.get("log")) if each.get("what") == "upload"]
        return Item(
            name=parsed.filename,
            path=file_path(parsed.project_key, parsed.version_text, parsed.filename),
            place=self._folder.at(path),
            version=parsed.version_text,
            digests=digests_of({algorithm: digest, **_object(entry.get("hashes"))}, SUMS),
            published_ms=_time_ms(uploads[0].get("when")) if uploads else None,
            publisher=text_of(uploads[0].get("who")) or None if uploads else None,
            about=About(parsed),
        )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time_ms(when: Any) -> int | None:
    """The time in the six numbers of an export, in ms since the epoch; None if they are no time."""
    try:
        year, month, day, hour, minute, second = when
        return round(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
