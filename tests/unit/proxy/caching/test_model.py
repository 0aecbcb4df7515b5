"""
Whatever upstreams do, time passes, members go off, is purged or restarts: clients get what a small model says.

The model is written from ``states``, ``search_order`` and ``owners`` without their code. It is compared with what
is asked of upstreams, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import define, evolve, field
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, PkgrepoError, RepositoryInactive, UpstreamDenied, UpstreamFailed
from pkgrepo.model import SYSTEM, Repository, RepositoryType
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.caching.revalidation import Cached, Current, Kept, Outcome, Revalidation
from pkgrepo.proxy.caching.states import KeptState, NegativeCache
from pkgrepo.proxy.purge import Selection
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument
from tests.lab.fuzz.machines.awaiting import run_awaiting, wait_for
from tests.support.inprocess_server import no_failures
from tests.support.proxy_world import ManualClock, ProxyWorld
from tests.support.upstreams.faults import failing
from tests.support.upstreams.server import UNKNOWN

TTL_S, NEGATIVE_S, GONE_S, RETRY_S, REVALIDATE_S = 300, 60, 900, 10, 10
SETTINGS: dict[str, Any] = {"cache_ttl": TTL_S, "cache": {"negative_ttl": NEGATIVE_S, "stale_if_gone": GONE_S}}
URL = "http://a.example"

Result = tuple[str, int, bool]  # what clients get: "served", its content, whether it is stale; or an error
ABSENT, FAILED, DENIED, OFF = (("absent", 0, False), ("failed", 0, False), ("denied", 0, False), ("off", 0, False))
ERRORS = {503: FAILED, 403: DENIED}
Has = Mapping[str, int]  # what each route has: the number of a content, or the status of an error

MOVES = st.sampled_from([1, RETRY_S, NEGATIVE_S - 1, NEGATIVE_S, TTL_S - NEGATIVE_S, TTL_S, GONE_S // 2, GONE_S])
STATES = st.sampled_from(["same", "same", "changed", 404, 404, 503, 503, 403])
RARELY = st.sampled_from([False, False, False, True])


@define
class Known:
    """What a proxy keeps: ``content`` 0 says that there is nothing."""

    content: int
    route: str
    said_s: float
    until_s: float
    gone_s: float | None = None
    failed: bool = False


@define
class ProxyModel:
    """A proxy with some routes; ``row`` survives a restart, ``memory`` does not."""

    routes: Sequence[str]
    row: Known | None = None
    memory: Known | None = None

    @property
    def known(self) -> Known | None:
        return self.memory or self.row

    @property
    def has_had_it(self) -> bool:
        return self.known is not None and self.known.content != 0

    def get(self, now_s: float, has: Has, asked: list[str], *, revalidate: bool = False) -> tuple[Result, bool]:
        """What it answers; and for an error, whether that ends the search for all but known members."""
        before = self.known
        over = before is not None and before.gone_s is not None and now_s >= before.gone_s + GONE_S
        if before is not None and not over:
            until_s = before.until_s
            if revalidate and not before.failed:
                until_s = min(until_s, before.said_s + REVALIDATE_S)
            if now_s < until_s:
                return self._result(before), False
        failure: Result | None = None
        for route in self.routes:
            mine = before is not None and before.content != 0 and before.route == route
            if failure is not None and not mine:
                continue
            asked.append(route)
            said = has[route]
            if said in ERRORS:
                failure = DENIED if said == 403 else failure or FAILED
                if said == 403 or mine:
                    break
            elif said != 404:
                self.row, self.memory = Known(said, route, now_s, now_s + TTL_S), None
                return ("served", said, False), False
        if failure is None:
            return self._nothing(now_s, before), False
        if before is None or over or failure == DENIED:
            return failure, True
        self.memory = evolve(before, until_s=now_s + RETRY_S, failed=True)
        return self._result(self.memory), False

    def _nothing(self, now_s: float, before: Known | None) -> Result:
        had_it = before is not None and before.content != 0
        if before is not None and had_it:
            gone_s = now_s if before.gone_s is None else before.gone_s
            if now_s < gone_s + GONE_S:
                until_s = min(now_s + NEGATIVE_S, gone_s + GONE_S)
                self.row, self.memory = Known(before.content, before.route, now_s, until_s, gone_s), None
                return "served", before.content, True
        absent = Known(0, "", now_s, now_s + NEGATIVE_S)
        self.row, self.memory = (absent, None) if had_it else (self.row, absent)
        return ABSENT

    @staticmethod
    def _result(known: Known) -> Result:
        if known.content:
            return "served", known.content, known.failed or known.gone_s is not None
        return FAILED if known.failed else ABSENT


@define
class VirtualModel:
    """The first of some proxies that has it."""

    members: Mapping[str, ProxyModel]
    off: set[str] = field(factory=set)

    def get(self, now_s: float, has: Has, asked: list[str], *, revalidate: bool = False) -> Result:
        only_known, failure = False, ABSENT
        for name, member in self.members.items():
            if name in self.off:
                only_known, failure = True, OFF if failure == ABSENT else failure
                if member.has_had_it:
                    break
                continue
            if only_known and not member.has_had_it:
                continue
            result, ends = member.get(now_s, has, asked, revalidate=revalidate)
            if result == DENIED or result[0] == "served":
                return result
            failure = result if failure == ABSENT else failure
            only_known = only_known or ends
        return failure


async def outcome_of(work: Awaitable[Result]) -> Result:
    try:
        return await work
    except UpstreamDenied:
        return DENIED
    except UpstreamFailed:
        return FAILED
    except RepositoryInactive:
        return OFF
    except NotFound:
        return ABSENT


class DocumentMachine(RuleBasedStateMachine):
    """Documents of npm: a virtual repository over a proxy with two routes and one with another route."""

    world: ProxyWorld
    numbers: Iterator[int]

    @initialize()
    def begin(self) -> None:
        self.number = next(self.numbers)
        self.name = f"left{self.number}"
        self.model = VirtualModel({"one": ProxyModel("ab"), "two": ProxyModel("c")})
        self.has = dict.fromkeys("abc", 404)
        self.contents = dict.fromkeys("abc", 0)
        self.repositories: dict[str, Repository] = {}
        ups = dict(zip("abc", self.world.upstreams, strict=True))
        self.ups = ups
        self._run(self._build())

    async def _build(self) -> None:
        one = await self.world.proxy(f"one{self.number}", self.ups["a"], self.ups["b"], **SETTINGS)
        two = await self.world.proxy(f"two{self.number}", self.ups["c"], **SETTINGS)
        everything = await self.world.virtual(f"all{self.number}", one, two)
        self.repositories = {"one": one, "two": two, "all": everything}
        for route in "abc":
            self._misbehave(route)

    def _let_upstream(self, route: str, state: Any) -> None:
        up = self.ups[route]
        if state == "changed" or (state == "same" and not self.contents[route]):
            self.contents[route] += 1
            up.add(self.name, f"{self.contents[route]}.0.0")
        self.has[route] = self.contents[route] if state in ("same", "changed") else state
        self._misbehave(route)

    @rule(what=st.sampled_from(["switch", "purge", "restart"]), member=st.sampled_from(["one", "two"]))
    def operator_does(self, what: str, member: str) -> None:
        repository, models = self.world.now(self.repositories[member]), self.model.members
        if what == "switch":
            self.model.off ^= {member}
            self._run(self.world.change(repository, active=member not in self.model.off))
        elif what == "restart":
            for each in models.values():
                each.memory = None
            self._run(self.world.restart())
        elif member not in self.model.off:
            models[member].row = models[member].memory = None
            self._run(self.world.proxies.purge.purge(repository, Selection(), SYSTEM, NoProgress()))

    @rule(route=st.sampled_from("aabc"), state=STATES, seconds=MOVES, revalidate=RARELY)
    def client_asks(self, route: str, state: Any, seconds: float, revalidate: bool) -> None:
        self._let_upstream(route, state)
        self.world.clock.advance(seconds)
        asked: list[str] = []
        expected = self.model.get(self.world.clock.ms / 1000, self.has, asked, revalidate=revalidate)
        before = {route: up.count(f"/{self.name}") for route, up in self.ups.items()}
        found = self._run(outcome_of(self._ask(revalidate=revalidate)))
        assert found == expected
        now_asked = [route for route, up in self.ups.items() if up.count(f"/{self.name}") > before[route]]
        assert now_asked == sorted(asked)

    async def _ask(self, *, revalidate: bool) -> Result:
        everything = self.world.now(self.repositories["all"])
        try:
            members = await self.world.resolver.members(everything, self.name, Trace(), revalidate=revalidate)
            (member,) = members.serving
            versions = await self.world.resolver.read(member, lambda parts: [each.version for each in parts.entries()])
            return "served", len(versions), member.held.stale
        finally:
            await self.world.settle()

    def _misbehave(self, route: str) -> None:
        steps = {404: UNKNOWN, 503: failing(503, "3600"), 403: failing(403)}
        self.ups[route].behave()
        if self.has[route] in steps:
            self.ups[route].misbehave(f"/{self.name}", steps[self.has[route]], repeat=True)

    def _run(self, work: Any) -> Any:
        """The result of a coroutine, for which the test awaits while this greenlet stands still."""
        return wait_for(work)


# A failure is shown as it was found: to make it smaller takes minutes.
LONG = settings(
    max_examples=16,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=[Phase.generate],
)


@pytest_twisted.async_yield_fixture
async def world() -> Any:
    with tempfile.TemporaryDirectory() as folder, no_failures():
        made = ProxyWorld(Path(folder))
        await made.start()
        for _ in "abc":
            made.upstream()
        yield made
        await made.settle()
        await made.stop()


async def test_documents_are_as_the_model_says(world: ProxyWorld) -> None:
    class Machine(DocumentMachine):
        pass

    Machine.world, Machine.numbers = world, count()
    await run_awaiting(Machine, LONG)


@define(eq=False)
class InMemory(Cached[int]):
    """Something cached whose row and content are here, and what its only upstream has."""

    clock: ManualClock
    has: int = 404
    asked: int = 0
    content: int | None = None
    row: UpstreamDocument | None = None
    what = "image"
    lasting_absences = True

    async def find(self) -> tuple[int | None, UpstreamDocument | None]:
        return self.content, self.row

    async def ask(self, _kept: Kept[int], _trace: Trace) -> Current[int]:
        self.asked += 1
        if self.has in ERRORS:
            error: type[PkgrepoError] = UpstreamDenied if self.has == 403 else UpstreamFailed
            raise error("a", "it does")
        if self.has == 404:
            raise NotFound("image", "demo")
        now_ms = self.clock.now_ms()
        self.content, times = self.has, {"fetched_ms": now_ms, "checked_ms": now_ms}
        self.row = UpstreamDocument(
            key=self.key, route="a", meta={"address": URL}, fresh_until_ms=now_ms + 1000 * TTL_S, **times
        )
        return Current(self.has, Outcome.MISS, self.row.fresh_until_ms, self.row)

    async def renew(self, content: int, row: UpstreamDocument) -> int:
        self.row = row
        return content

    async def drop(self, absence: UpstreamDocument, _before_ms: int) -> None:
        self.content, self.row = None, absence


class NoCounters:
    """Counts nothing."""

    def add(self, *_: object) -> None:
        pass


class RevalidationMachine(RuleBasedStateMachine):
    """Tags, lists and files that may change: one proxy with one route."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        config = {"proxy": {"routes": [{"name": "a", "url": URL, "priority": 0}]}}
        plain = make_placeholder(1, "main", "mirror")
        proxy = evolve(plain, type=RepositoryType.PROXY, config=config, settings=SETTINGS)
        self.cached = InMemory(clock=self.clock, repository=proxy, key="tag/demo:1", name="demo", package="demo")
        self.model = ProxyModel("a")
        self._start()

    def _start(self) -> None:
        self.engine = Revalidation(
            clock=self.clock,
            negative_cache=NegativeCache(self.clock),
            counters=NoCounters(),  # type: ignore[arg-type]
        )

    @rule()
    def server_restarts(self) -> None:
        self.model.memory = None
        self._start()

    @rule(state=STATES, seconds=MOVES, revalidate=RARELY)
    def client_asks(self, state: Any, seconds: float, revalidate: bool) -> None:
        before = self.cached.content or 1
        self.cached.has = before + (state == "changed") if state in ("same", "changed") else state
        self.clock.advance(seconds)
        asked: list[str] = []
        now_s = self.clock.ms / 1000
        expected, _ = self.model.get(now_s, {"a": self.cached.has}, asked, revalidate=revalidate)
        asked_before = self.cached.asked
        found = now(outcome_of(self._ask(revalidate=revalidate)))
        assert found == expected
        assert self.cached.asked - asked_before == len(asked)

    async def _ask(self, *, revalidate: bool) -> Result:
        found = await self.engine.get(self.cached, Trace(), revalidate=revalidate)
        return "served", found.content, found.stale


def now(work: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    results: list[Any] = []
    Deferred.fromCoroutine(work).addBoth(results.append)
    (result,) = results
    if hasattr(result, "raiseException"):
        result.raiseException()
    return result


TestRevalidation = RevalidationMachine.TestCase
TestRevalidation.settings = settings(LONG, max_examples=50, stateful_step_count=40)


def test_what_another_process_has_confirmed_after_a_failure_is_fresh() -> None:
    machine = RevalidationMachine()
    machine.begin()
    cached, clock = machine.cached, machine.clock
    cached.has = 1
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    clock.advance(TTL_S)
    cached.has = 503
    assert now(machine._ask(revalidate=False)) == ("served", 1, True)
    assert cached.row is not None, "it is kept"
    cached.row = evolve(cached.row, checked_ms=clock.ms, fresh_until_ms=clock.ms + 1000 * TTL_S)
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    assert cached.asked == 2


def test_what_came_while_it_was_looked_for_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = RevalidationMachine()
    machine.begin()
    cached, gate = machine.cached, Deferred[None]()
    cached.has = 1

    async def find_late(_: InMemory) -> tuple[int | None, UpstreamDocument | None]:
        monkeypatch.undo()
        found = cached.content, cached.row
        await gate
        return found

    monkeypatch.setattr(InMemory, "find", find_late)
    late = Deferred.fromCoroutine(machine._ask(revalidate=False))
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    gate.callback(None)
    assert late.result == ("served", 1, False)
    assert cached.asked == 1


def test_what_came_from_a_former_address_is_not_served_as_gone() -> None:
    machine = RevalidationMachine()
    machine.begin()
    cached = machine.cached
    cached.has = 1
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    assert cached.row is not None, "it is kept"
    cached.row = evolve(cached.row, meta={"address": "http://elsewhere.example"})
    cached.has = 404
    assert now(outcome_of(machine._ask(revalidate=False))) == ABSENT
    assert cached.content is None


def test_what_came_while_an_upstream_was_slow_to_say_that_it_has_nothing_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = RevalidationMachine()
    machine.begin()
    cached, clock, gate = machine.cached, machine.clock, Deferred[None]()

    async def ask_late(_self: InMemory, _kept: Kept[int], _trace: Trace) -> Current[int]:
        await gate
        raise NotFound("image", "demo")

    with monkeypatch.context() as patch:
        patch.setattr(InMemory, "ask", ask_late)
        late = Deferred.fromCoroutine(outcome_of(machine._ask(revalidate=False)))
    clock.advance(1)
    cached.has = 1
    now(cached.ask(Kept(None, None, KeptState.NONE), Trace()))  # another process asks, and keeps it
    clock.advance(1)
    gate.callback(None)
    assert late.result == ABSENT
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    assert cached.asked == 1


def test_expired_routes_are_asked_again_although_they_failed_just_now() -> None:
    machine = RevalidationMachine()
    machine.begin()
    cached = machine.cached
    cached.has = 1
    assert now(machine._ask(revalidate=False)) == ("served", 1, False)
    machine.clock.advance(TTL_S)
    cached.has = 503
    assert now(machine._ask(revalidate=False)) == ("served", 1, True)
    cached.has = 2
    assert now(machine._ask(revalidate=False)) == ("served", 1, True)
    machine.engine.expire(cached)
    assert now(machine._ask(revalidate=False)) == ("served", 2, False)
    assert cached.asked == 3


@define(eq=False)
class InTurns(InMemory):
    """The same, of which one process asks at a time: ``ended`` has what each turn ended with."""

    ended: list[Current[int] | None] = field(factory=list)
    shared = False

    async def begin(self) -> Callable[[Any], None]:
        return self.ended.append


@pytest.mark.parametrize(
    ("has", "outcome"), [(1, Outcome.MISS), (404, Outcome.ABSENT), (503, None), (403, None)], ids=str
)
def test_a_turn_ends_once_with_what_was_found_and_also_after_a_failure(has: int, outcome: Outcome | None) -> None:
    machine = RevalidationMachine()
    machine.begin()
    plain = machine.cached
    cached = InTurns(clock=plain.clock, repository=plain.repository, key=plain.key, name="demo", has=has)
    now(outcome_of(served(machine.engine, cached)))
    assert [None if each is None else each.outcome for each in cached.ended] == [outcome]
    now(outcome_of(served(machine.engine, cached)))
    assert len(cached.ended) == (1 if outcome is not None else 2), "what is kept needs no turn"


async def served(engine: Revalidation, cached: Cached[int]) -> Result:
    found = await engine.get(cached, Trace())
    return "served", found.content, found.stale
