"""Questions to the download log about a package: in the names of its format, and of what companions make of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog.fetches import Question


@frozen
class FetchedNames:
    """Writes names as the log has them; ``formats`` are all, by name, and ``every`` all repositories."""

    formats: Mapping[str, StoredFormat]
    every: Sequence[Repository]

    def keys(self, formats: Collection[str], name: str) -> list[str]:
        """What a name is normalised to by these formats."""
        found = {name: None}
        for each in formats:
            try:
                found[self.formats[each].package_key(name)] = None
            except Invalid:
                continue
        return list(found)

    def versions(self, formats: Collection[str], versions: Collection[str]) -> list[str]:
        """What versions are normalised to by these formats."""
        found = dict.fromkeys(versions)
        for each in formats:
            for version in versions:
                try:
                    found[self.formats[each].version_key(version)] = None
                except Invalid:
                    continue
        return list(found)

    def copies(
        self, parents: Collection[Repository], packages: Collection[str], versions: Collection[str] | None
    ) -> list[Question]:
        """The questions for what companions of some repositories have that is made of these packages (keys)."""
        found = []
        ids = {each.id for each in parents}
        for each in self.formats.values():
            if each.companion is None:
                continue
            of_format = [repo for repo in self.every if repo.parent is not None and repo.format == each.name]
            places = [repo for repo in of_format if repo.parent is not None and repo.parent.id in ids]
            made = [key for package in packages if (key := each.companion.copy_of(package)) is not None]
            if places and made:
                found.append(
                    Question(
                        repositories=[repo.id for repo in places],
                        paths=[repo.path for repo in places],
                        packages=made,
                        versions=None if versions is None else self.versions([each.name], versions),
                    )
                )
        return found
