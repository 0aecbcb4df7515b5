"""Rules by which old versions go: the newest stay, whatever happens, and the others are gone after a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.support.first_publishes import Publisher

from .task import Kept, Task, told

FORMATS: Final = {"npm": "retained-node", "python": "retained-py", "helm": "retained-charts"}
LAST: Final = 3  # versions that the rules keep
PURGED: Final = "python"  # where they go for good, and not to the trash


@define
class Line:
    """
    The versions of a package, from the oldest one; ``gone`` are those that a run has removed.

    None stands for a version whose publish had no answer: whether the rules count it is not known. ``asked`` are those
    that may be pinned, since the request for that had no answer.
    """

    format: str
    versions: list[Kept | None] = field(factory=list)
    gone: list[Kept] = field(factory=list)
    pinned: list[Kept] = field(factory=list)
    asked: list[Kept] = field(factory=list)
    publishing: bool = False
    running: bool = False
    ran: bool = False  # since the last check

    def __str__(self) -> str:
        return f"{self.format} line"

    @property
    def known(self) -> list[Kept]:
        """The versions that were acknowledged."""
        return [each for each in self.versions if each is not None]

    @property
    def kept(self) -> list[Kept]:
        """What the rules keep for sure, also while one more is published."""
        newest = self.versions[-(LAST - 1 if self.publishing else LAST) :]
        return [*(each for each in newest if each is not None), *self.pinned]

    @property
    def old(self) -> list[Kept]:
        """What the rules remove for sure."""
        return [each for each in self.known[:-LAST] if each not in (*self.pinned, *self.asked)]


@define
class Retaining(Task):
    """One package in a repository of each format."""

    name: ClassVar = "retention"
    steps: ClassVar = {"publish": 6, "run": 2, "pin": 1}

    lines: list[Line] = field(factory=list, init=False)

    def prepare(self) -> None:
        api = self.api()
        for format_, name in FORMATS.items():
            api.create(name, format_)
            action = "delete" if format_ == PURGED else "trash"
            # The schedule is far away: what goes is removed by runs that are asked for.
            rules: dict[str, Any] = {"enabled": True, "schedule": "0 0 1 1 *", "max_delete_percent": 100}
            rules["rules"] = [{"name": "old", "keep": {"last": LAST}, "action": action}]
            api.ask("PUT", f"api/repository/main%2F{name}/config/retention", json=rules)
            self.lines.append(Line(format_))

    def publish(self) -> None:
        """Publish the next version."""
        line = self.rng.choice(self.lines)
        if line.publishing or line.running:
            raise Idle
        version = f"1.{self.next()}.0"
        line.publishing = True
        with self.lab.ledger.step("publish", str(line)):
            found = self.api().publish(line.format, "line", version, FORMATS[line.format])
        line.versions.append(Kept.of(found))
        line.publishing = False

    def pin(self) -> None:
        """Pin the newest version, so that it stays for good."""
        line = self.rng.choice(self.lines)
        if line.publishing or line.running or not line.known or len(line.pinned) > 2:
            raise Idle
        newest = line.known[-1]
        version = newest.path.rpartition("line-")[2].removesuffix(".tgz").partition("-py3")[0]
        line.asked.append(newest)
        self.api().ask("PUT", f"api/package/main%2F{FORMATS[line.format]}/line/versions/{version}/pin", json={})
        line.pinned.append(newest)

    def run(self) -> None:
        """Let the rules remove what they do."""
        line = self.rng.choice(self.lines)
        if line.publishing or line.running:
            raise Idle
        line.running = True
        with self.lab.ledger.step("retention", str(line)):
            place = f"api/repository/main%2F{FORMATS[line.format]}/retention?wait=2&confirm=true"
            answer = self.api().send("POST", place, json={})
            # 409: one that began before a fault holds its lease for a while
            assert answer.status_code in (200, 202, 409), f"POST {place}: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 200:
                raise Idle
        line.gone += line.old
        line.versions = [each for each in line.versions if each not in line.gone]
        line.ran = True
        line.running = False

    def check(self) -> Iterator[str]:
        api = self.api()
        for line in self.lines:
            try:
                yield from self._check(api, line)
            except AssertionError as error:
                yield f"{line}: {told(error)}"

    def _check(self, api: Publisher, line: Line) -> Iterator[str]:
        for each in line.kept:
            if not each.is_there(api):
                yield f"{line}: {each.path} is gone, which the rules keep; {self.lab.ledger.history(str(line))[-8:]}"
        for each in line.gone[-20:]:
            if each.is_there(api) or each.is_listed(api):
                yield f"{line}: {each.path} is there, which a run has removed"
        for each in [each for each in line.known if each not in line.kept]:
            if each.is_there(api):
                continue
            if not (line.running or line.ran):
                yield f"{line}: {each.path} is gone, and no run has removed it"
            line.versions.remove(each)
            line.gone.append(each)
        line.ran = False
        if line.publishing or line.running:
            running = api.ask("GET", "api/job?kind=retention&state=running").json()["items"]
            line.running = any(FORMATS[line.format] in str(each) for each in running)
        if line.publishing:
            line.publishing = False
            line.versions.append(None)
