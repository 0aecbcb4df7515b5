"""Imports of folders: what was acknowledged is there, and what was interrupted is continued by the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.lab.faults.ledger import sha256_of
from tests.support.first_publishes import Publisher
from tests.support.gems import make_gem
from tests.support.imports import write
from tests.support.python_packages import make_wheel

from .task import Kept, Task, told

INTO: Final = {"python": "imported-py", "ruby": "imported-gems", "raw": "imported-files"}
COUNT: Final = 6  # files of a source


@define
class Source:
    """A folder with files, which are in the repository when the import was acknowledged."""

    kind: str
    folder: Path
    files: list[Kept]
    done: bool = False

    def __str__(self) -> str:
        return f"import of {self.folder.name}"


@define
class Importing(Task):
    """Each source is imported once, or again until the import is acknowledged."""

    name: ClassVar = "imports"
    steps: ClassVar = {"take": 3, "again": 1}

    sources: list[Source] = field(factory=list, init=False)

    @staticmethod
    def settings(folder: Path) -> str:
        return f'imports.folders = ["{folder.parent}"]\n'

    def prepare(self) -> None:
        for format_, name in INTO.items():
            self.api().create(name, format_)

    def take(self) -> None:
        """Import a new source, or one whose import had no answer."""
        waiting = [each for each in self.sources if not each.done]
        source = waiting[0] if waiting else self._make(self.rng.choice([*INTO]))
        self._import(self.api(), source)

    def again(self) -> None:
        """Import one again, of which everything is there."""
        done = [each for each in self.sources if each.done]
        if not done:
            raise Idle
        found = self._import(self.api(), source := self.rng.choice(done))
        assert found.get("files", 0) == 0, f"{source}: {found['files']} files were not there"

    def check(self) -> Iterator[str]:
        done = [each for each in self.sources if each.done]
        return self._check(self.api(), self.rng.sample(done, min(6, len(done))))

    def finish(self) -> Iterator[str]:
        return self._check(self.api(), [each for each in self.sources if each.done])

    def _import(self, api: Publisher, source: Source) -> Mapping[str, int]:
        """The result of an import. :raises Idle: another one has to end first, or it takes long"""
        body = {"kind": source.kind, "source": str(source.folder), "into": f"main/{INTO[source.kind]}"}
        with self.lab.ledger.step("import", str(source)):
            answer = api.send("POST", "api/import?wait=2", json=body)
            # 409: one that began before a fault holds its lease for a while
            assert answer.status_code in (200, 202, 409), f"{source}: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 200:
                raise Idle
        found: dict[str, int] = answer.json()
        # A file that could not be stored is left out, and told: 500, since that is excused once a fault began.
        assert not found["left_out_count"], f"{source}: 500 {answer.text[:300]}"
        source.done = True
        return found

    def _make(self, kind: str) -> Source:
        number = self.next()
        name, into = f"{kind}{number}", INTO[kind]
        if kind == "python":
            files = dict(make_wheel(f"lib{number}", f"1.{each}") for each in range(COUNT))
            paths = {each: f"lib{number}/{each.split('-')[1]}/{each}" for each in files}
        elif kind == "ruby":
            files = {f"gem{number}-1.{each}.gem": make_gem(f"gem{number}", f"1.{each}") for each in range(COUNT)}
            paths = {each: f"gems/{each}" for each in files}
        else:
            files = {f"box{number}/1.{each}/box.bin": self.rng.randbytes(2000) for each in range(COUNT)}
            paths = {each: each for each in files}
        kept = [Kept(f"repositories/main/{into}/{paths[each]}", sha256_of(data)) for each, data in files.items()]
        source = Source(kind, write(self.folder / name, files), kept)
        self.sources.append(source)
        return source

    def _check(self, api: Publisher, sources: list[Source]) -> Iterator[str]:
        for each in sources:
            try:
                lost = [file.path for file in each.files if not file.is_there(api)]
            except AssertionError as error:
                lost = [told(error)]
            if lost:
                yield f"{each} was acknowledged, and {lost} is lost; {self.lab.ledger.history(str(each))}"
