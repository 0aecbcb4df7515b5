"""Stages: what is staged is published as a whole when it is approved, and never when it was rejected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.support.first_publishes import REPOSITORIES, Publisher

from .task import Kept, Task, told

FORMATS: Final = ("npm", "python", "maven", "helm")
COUNT: Final = 4  # packages of a stage
STATES: Final = {"approve": "approved", "reject": "rejected", "drop": "rejected"}


@define
class Stage:
    """A stage, with its files as they are when it is approved. ``state`` is ``open`` or one of ``STATES``."""

    id: str
    format: str
    files: list[Kept]
    whole: bool = False
    state: str = "open"
    asked: str = ""  # for a change that had no answer

    def __str__(self) -> str:
        return f"stage {self.id}"


@define
class Staging(Task):
    """All of a stage is published, or nothing of it."""

    name: ClassVar = "stages"
    steps: ClassVar = {"open": 3, "approve": 2, "reject": 1, "drop": 1, "too_late": 1}

    stages: list[Stage] = field(factory=list, init=False)

    def prepare(self) -> None:
        """The repositories are those of the writers."""

    def open(self) -> None:
        """Open a stage, and publish packages to it."""
        api, format_, number = self.api(), self.rng.choice(FORMATS), self.next()
        repository = REPOSITORIES[format_]
        stage = Stage(api.ask("POST", f"api/repository/main%2F{repository}/stages", json={}).json()["id"], format_, [])
        self.stages.append(stage)
        at = f"{repository}+stage-{stage.id}"
        for each in range(COUNT):
            found = Kept.of(api.publish(format_, f"staged{number}n{each}", "1.0.0", at))
            path, index = (text.replace(f"/{at}/", f"/{repository}/") for text in (found.path, found.index))
            stage.files.append(Kept(path, found.sha256, index, found.listed))
            answer = api.send("GET", path)
            assert answer.status_code == 404, f"GET {path}: {answer.status_code} before it was approved"
        stage.whole = True

    def approve(self) -> None:
        """Approve a stage."""
        self._end("approve")

    def reject(self) -> None:
        """Reject a stage."""
        self._end("reject")

    def drop(self) -> None:
        """Withdraw a stage."""
        self._end("drop")

    def too_late(self) -> None:
        """Approve a stage that has ended, which is refused."""
        ended = [each for each in self.stages if each.state == "rejected"]
        if not ended:
            raise Idle
        stage = self.rng.choice(ended)
        answer = self.api().send("POST", f"api/stages/{stage.id}/approve", json={})
        assert answer.status_code in (404, 409), f"approval of an ended {stage}: {answer.status_code} {answer.text}"

    def check(self) -> Iterator[str]:
        asked = [each for each in self.stages if each.asked]
        yield from self._check(self.api(), [*asked, *self.rng.sample(self.stages, min(8, len(self.stages)))])

    def finish(self) -> Iterator[str]:
        return self._check(self.api(), self.stages)

    def _end(self, how: str) -> None:
        waiting = [each for each in self.stages if each.whole and each.state == "open" and not each.asked]
        if not waiting:
            raise Idle
        stage = self.rng.choice(waiting)
        stage.asked = how
        with self.lab.ledger.step(how, str(stage)):
            if how == "drop":
                self.api().ask("DELETE", f"api/stages/{stage.id}")
            else:
                self.api().ask("POST", f"api/stages/{stage.id}/{how}", json={})
        stage.state, stage.asked = STATES[how], ""

    def _check(self, api: Publisher, stages: list[Stage]) -> Iterator[str]:
        for each in stages:
            try:
                found = {file.is_there(api) for file in each.files}
            except AssertionError as error:
                yield f"{each}: {told(error)}"
                continue
            if len(found) > 1:
                yield f"{each} is published by halves; {self.lab.ledger.history(str(each))}"
                continue
            if each.asked:
                yield from self._settle(api, each)
            if found and found != {each.state == "approved"}:
                yield f"{each} is {each.state}, and its files are {'there' if True in found else 'not there'}"

    def _settle(self, api: Publisher, stage: Stage) -> Iterator[str]:
        """Learn whether a stage has ended whose end had no answer."""
        answer = api.send("GET", f"api/stages/{stage.id}")
        state = answer.json()["state"] if answer.ok else "rejected"
        wanted, stage.asked = STATES[stage.asked], ""
        stage.state = state
        if state not in ("open", wanted):
            yield f"{stage} was to be {wanted}, and is {state}"
