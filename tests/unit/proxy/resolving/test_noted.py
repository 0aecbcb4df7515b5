"""What rules were found to hide of packages is noted for lists, by all processes that judge these."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.proxy.resolving.rules import PolicyJudges
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.rules import RuleSet, Verdict
from pkgrepo.repositories.policy.schema import Order, PolicyRule, RuleMatch
from pkgrepo.storage.catalog.server import judged
from tests.support.catalog import MemoryCatalog
from tests.support.quota_walk import add_two_repositories

HIDDEN = Verdict(by=Placed(PolicyRule(name="no GPL"), "server"))


class Noting:
    """A repository with a rule about licences, and the processes that judge its packages."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository, _ = self.catalog.do(add_two_repositories)
        match = RuleMatch(licences=["GPL*"])
        self.lists = {self.repository.type}
        self._rules = RuleSet([Placed(PolicyRule(name="no GPL", match=match), "server")], Order())

    def process(self) -> PolicyJudges:
        return PolicyJudges(self.catalog, SimpleNamespace(now_ms=lambda: 1), {})

    async def note(self, process: PolicyJudges, package: str, *versions: str, whole: bool = False) -> None:
        format_ = SimpleNamespace(lists_noted=self.lists)
        judge: Any = SimpleNamespace(rules=self._rules.of(package), member=self.repository, format=format_)
        await process.note(judge, dict.fromkeys(versions, HIDDEN), whole=whole)

    def noted(self, package: str) -> set[str]:
        rules = self._rules.of(package)
        assert rules is not None
        return {*(self.catalog.peek(judged.find_judged, self.repository.id, package, rules.stamp) or ())}


async def test_processes_note_versions_beside_those_of_each_other() -> None:
    noting = Noting()
    one, other = noting.process(), noting.process()
    await noting.note(one, "left", "1.0")
    await noting.note(other, "left", "2.0")
    await noting.note(one, "left", "3.0")
    assert noting.noted("left") == {"1.0", "2.0", "3.0"}
    await noting.note(other, "left", "2.0", whole=True)
    await noting.note(one, "left", "3.0")
    assert noting.noted("left") == {"2.0", "3.0"}


async def test_what_made_room_for_others_is_noted_again_when_it_is_judged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "MOST", 2)
    noting = Noting()
    process = noting.process()
    for package in ("a", "b", "c"):
        await noting.note(process, package, "1.0", whole=True)
    assert noting.noted("a") == set()
    await noting.note(process, "a", "1.0", whole=True)
    assert noting.noted("a") == {"1.0"}


async def test_what_is_noted_already_is_not_written_again() -> None:
    noting = Noting()
    await noting.note(noting.process(), "left", "1.0", whole=True)
    serial = noting.catalog.peek(judged.judged_serial, noting.repository.id)
    await noting.note(noting.process(), "left", "1.0")
    await noting.note(noting.process(), "left", "1.0", whole=True)
    assert noting.catalog.peek(judged.judged_serial, noting.repository.id) == serial


async def test_nothing_is_noted_where_no_list_leaves_it_out() -> None:
    noting = Noting()
    noting.lists = set()
    await noting.note(noting.process(), "left", "1.0", whole=True)
    assert noting.noted("left") == set()
    assert noting.catalog.peek(judged.judged_serial, noting.repository.id) == 0
