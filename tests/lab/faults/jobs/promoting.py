"""Versions that are copied or moved from one repository to another: they are in one of both at any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final
from urllib.parse import quote

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.lab.faults.ledger import Item
from tests.lab.faults.writers import package_of, version_of
from tests.support.first_publishes import REPOSITORIES, Publisher

from .task import Kept, Task, told

FORMATS: Final = ("python", "npm", "maven", "cargo", "raw", "docker")
STAGING: Final = "staging-"  # the beginning of the names of the repositories from which is promoted


@define
class Promoted:
    """A version with its file in both repositories, and where it is by the last acknowledged change."""

    item: Item
    source: Kept
    target: Kept
    in_source: bool = True
    in_target: bool = False
    open: bool = False
    moving: bool = False

    def __str__(self) -> str:
        return f"promoted {self.item}"


@define
class Promoting(Task):
    """A copy leaves the source alone; a move ends with one of both, with no moment at which neither has it."""

    name: ClassVar = "promotions"
    steps: ClassVar = {"publish": 3, "copy": 2, "move": 2, "again": 1}

    every: list[Promoted] = field(factory=list, init=False)

    def prepare(self) -> None:
        api = self.api()
        for each in FORMATS:
            api.create(STAGING + REPOSITORIES[each], each)

    def publish(self) -> None:
        """Publish a version to where it waits."""
        format_, number = self.rng.choice(FORMATS), self.next()
        item = Item(format_, f"promo{number % 5}", f"1.0.{number}")
        with self.lab.ledger.step("publish", f"promoted {item}"):
            found = self.api().publish(format_, item.name, item.version, STAGING + REPOSITORIES[format_])
        here, there = f"/{STAGING}{REPOSITORIES[format_]}/", f"/{REPOSITORIES[format_]}/"
        source = Kept.of(found)
        target = Kept(source.path.replace(here, there), source.sha256, source.index.replace(here, there), source.listed)
        self.every.append(Promoted(item, source, target))

    def copy(self) -> None:
        """Copy one."""
        self._promote(move=False)

    def move(self) -> None:
        """Move one."""
        self._promote(move=True)

    def again(self) -> None:
        """Copy what was copied, which changes nothing."""
        found = [each for each in self.every if each.in_source and each.in_target and not each.open]
        if not found:
            raise Idle
        each = self.rng.choice(found)
        answer = self.api().ask("POST", self._place(each), json={"to": f"main/{REPOSITORIES[each.item.format]}"})
        assert answer.json()["changed"] is False, f"{each} was promoted twice"

    def check(self) -> Iterator[str]:
        opened = [each for each in self.every if each.open]
        yield from self._check(self.api(), [*opened, *self.rng.sample(self.every, min(15, len(self.every)))])

    def finish(self) -> Iterator[str]:
        return self._check(self.api(), self.every)

    def _promote(self, *, move: bool) -> None:
        waiting = [each for each in self.every if each.in_source and not each.in_target and not each.open]
        if not waiting:
            raise Idle
        each = self.rng.choice(waiting)
        each.open, each.moving = True, move
        body = {"to": f"main/{REPOSITORIES[each.item.format]}", "move": move}
        with self.lab.ledger.step("move" if move else "copy", str(each)):
            self.api().ask("POST", self._place(each), json=body)
        each.in_source, each.in_target, each.open = not move, True, False

    def _place(self, each: Promoted) -> str:
        item = each.item
        repository = quote(f"main/{STAGING}{REPOSITORIES[item.format]}", safe="")
        package = quote(package_of(item.format, item.name), safe="")
        return f"api/package/{repository}/{package}/versions/{quote(version_of(item.format, item.version))}/promote"

    def _check(self, api: Publisher, every: list[Promoted]) -> Iterator[str]:
        for each in every:
            try:
                found = (each.source.is_there(api), each.target.is_there(api))
            except AssertionError as error:
                yield f"{each}: {told(error)}"
                continue
            if each.open:
                possible = {(True, False), (False, True) if each.moving else (True, True)}
                each.open = False
                if found not in possible:
                    yield f"{each}: in the source and the target: {found}, after a change that had no answer"
                each.in_source, each.in_target = found
            elif found != (each.in_source, each.in_target):
                yield f"{each}: in the source and the target: {found}; {self.lab.ledger.history(str(each))}"
            elif each.target.is_listed(api) != each.in_target:
                yield f"{each}: the index of the target says otherwise than the file"
