"""The files of a Maven repository in an air-gap bundle."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import Checksum, Directory, parse_text
from pkgrepo.gateway.imported.items import SourcePackage
from pkgrepo.gateway.imported.places import Folder, FoundFile

from .sources import item_of, key_of


class MavenBundle:
    """The files of a Maven repository in a bundle, by directory."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._found: dict[str, list[FoundFile]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The directories that have files."""
        for each in await self._folder.files():
            self._found.setdefault(each.path.rpartition("/")[0], []).append(each)
        for name in sorted(self._found):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a directory, POMs first: they describe what follows."""
        items, left_out = [], []
        found = self._found.pop(name)
        for each in sorted(found, key=lambda file: (not file.path.endswith(".pom"), file.path)):
            try:
                target = parse_text(each.path)
            except Invalid as error:
                left_out.append((each.path, error.message))
                continue
            if not isinstance(target, Checksum | Directory):
                items.append(item_of(target, self._folder.file(each), {}, each.size, each.modified_ns // 1_000_000))
        mark = hashlib.sha256("\n".join(each.mark for each in found).encode()).hexdigest()
        return SourcePackage(name=name, key=key_of(items), fingerprint=mark, items=items, left_out=left_out)
