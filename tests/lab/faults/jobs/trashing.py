"""Packages that are deleted, restored from the trash as a whole, or removed from it for good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final
from urllib.parse import quote

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.lab.faults.writers import package_of
from tests.support.first_publishes import REPOSITORIES, Publisher

from .task import Kept, Task, told

VERSIONS: Final = ("1.0.0", "1.1.0", "1.2.0")  # of each package


@define
class Package:
    """
    A package whose files are all ``there``, or in the ``entries`` of the trash, or gone for good.

    ``asked`` is a change that had no answer. The versions of a package are deleted one after the other, so a deletion
    that had none may have left some; all other changes are made as a whole.
    """

    format: str
    name: str
    files: list[Kept]
    there: bool = True
    entries: list[str] = field(factory=list)
    asked: str = ""

    @property
    def place(self) -> str:
        repository = quote(f"main/{REPOSITORIES[self.format]}", safe="")
        return f"api/package/{repository}/{quote(package_of(self.format, self.name), safe='')}"

    def __str__(self) -> str:
        return f"{self.format} {self.name}"


@define
class Trashing(Task):
    """What comes back is all that was deleted, and what was purged does not come back."""

    name: ClassVar = "trash"
    steps: ClassVar = {"publish": 3, "delete": 3, "restore": 3, "purge": 1}

    packages: list[Package] = field(factory=list, init=False)

    def prepare(self) -> None:
        """The repositories are those of the writers."""

    def publish(self) -> None:
        """Publish a package of several versions."""
        format_, name = self.rng.choice([*REPOSITORIES]), f"whole{self.next()}"
        api, package = self.api(), Package(format_, name, [])
        with self.lab.ledger.step("publish", str(package)):
            package.files = [Kept.of(api.publish(format_, name, version)) for version in VERSIONS]
        self.packages.append(package)

    def delete(self) -> None:
        """Delete a package."""
        if (package := self._one(there=True)) is None:
            raise Idle
        package.asked = "delete"
        with self.lab.ledger.step("delete", str(package)):
            package.entries.append(self.api().ask("DELETE", package.place).json()["trash"])
        package.there, package.asked = False, ""

    def restore(self) -> None:
        """Restore one."""
        if (package := self._one(there=False)) is None:
            raise Idle
        package.asked = "restore"
        with self.lab.ledger.step("restore", str(package)):
            self._restore(self.api(), package)
        package.there, package.asked = True, ""

    def purge(self) -> None:
        """Remove one from the trash, after which it cannot be restored."""
        if (package := self._one(there=False)) is None:
            raise Idle
        package.asked, api = "purge", self.api()
        with self.lab.ledger.step("purge", str(package)):
            for each in package.entries:
                api.ask("DELETE", f"api/trash/{each}")
        answer = api.send("POST", f"api/trash/{package.entries[0]}/restore")
        assert answer.status_code == 404, f"restore of what was purged: {answer.status_code} {answer.text[:200]}"
        package.entries, package.asked = [], ""

    def check(self) -> Iterator[str]:
        sample = [each for each in self.packages if each.asked]
        sample += self.rng.sample(self.packages, min(12, len(self.packages)))
        return self._check(self.api(), sample)

    def finish(self) -> Iterator[str]:
        api = self.api()
        yield from self._check(api, self.packages)
        for each in self.packages:
            if each.entries:
                self._restore(api, each)
                each.there = True
        yield from self._check(api, self.packages)

    def _restore(self, api: Publisher, package: Package) -> None:
        while package.entries:
            api.ask("POST", f"api/trash/{package.entries[0]}/restore")
            package.entries.pop(0)

    def _check(self, api: Publisher, packages: list[Package]) -> Iterator[str]:
        for each in packages:
            try:
                found = [file.is_there(api) for file in each.files]
            except AssertionError as error:
                yield f"{each}: {told(error)}"
                continue
            # Versions are deleted one after the other, and restored in parts: what was interrupted is asked for again.
            if each.asked == "delete" and any(found):
                api.ask("DELETE", each.place)
                found = [file.is_there(api) for file in each.files]
            elif each.asked == "restore" and len({*found}) > 1:
                each.entries = self._entries(api, each)
                self._restore(api, each)
                found = [file.is_there(api) for file in each.files]
            if len({*found}) > 1:
                yield f"{each} is there by halves: {found}; {self._history(each)}"
            elif each.asked:
                each.there = found[0]
                each.entries = self._entries(api, each)
                each.asked = ""
            elif found[0] != each.there:
                yield f"{each} is {'there' if found[0] else 'not there'}; {self._history(each)}"
            elif not all(file.is_listed(api) == each.there for file in each.files):
                yield f"{each} is {'there' if each.there else 'deleted'}, and an index says otherwise"

    def _history(self, package: Package) -> list[str]:
        return self.lab.ledger.history(str(package))

    def _entries(self, api: Publisher, package: Package) -> list[str]:
        """What the trash has of a package."""
        repository = quote(f"main/{REPOSITORIES[package.format]}", safe="")
        entries = api.ask("GET", f"api/trash?limit=1000&repository={repository}").json()["items"]
        return [each["id"] for each in entries if each["package"] == package_of(package.format, package.name)]

    def _one(self, *, there: bool) -> Package | None:
        found = [each for each in self.packages if each.there is there and not each.asked and (there or each.entries)]
        return self.rng.choice(found) if found else None
