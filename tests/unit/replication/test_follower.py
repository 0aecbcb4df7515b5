"""What a follower does with answers that do not say what they seem to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import Factory, define
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import NotFound, UpstreamFailed, UpstreamMisconfigured, UpstreamUnavailable
from pkgrepo.model import Repository
from pkgrepo.replication import follower as follower_module
from pkgrepo.replication.follower import FIRST_PAUSE_S, MOST_TASKS, REFUSED_PAUSE_S, Follower
from pkgrepo.replication.source import Page, RemoteDeleted, RemoteVersion
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.packages.deleted_names import list_deleted
from pkgrepo.storage.catalog.server import replicas
from pkgrepo.storage.catalog.server.replicas import ALL, DELETED, DELETED_NAMES, FOLLOWING, LISTED
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository
from tests.support.upstreams.server import ScriptedUpstream
from tests.unit.replication.test_source import make_source

HELD = Placed(PolicyRule(name="held"), "main/a")
HERE: Any = SimpleNamespace(id=1, path="main/a", format="npm")


@define
class Noting:
    """Copies that note what is to be evicted."""

    dropped: list[str] = Factory(list)

    async def kept(self, repository: Repository, package: str) -> Sequence[str]:
        return ["1.0"]

    async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
        raise AssertionError("nothing is there")

    async def drop(self, repository: Repository, package: str, version: str) -> None:
        self.dropped.append(version)

    async def renew(self, repository: Repository, package: str) -> None:
        pass


async def test_what_is_kept_stays_while_the_repository_there_may_not_be_read() -> None:
    unused, copies = Any, Noting()
    with ScriptedUpstream() as server:  # whose answers are 404, as those of one who may not read it
        follower = Follower(
            repository=HERE,
            source=make_source(server),
            copies=copies,
            package_key=str,
            catalog=unused,
            clock=unused,
            reactor=unused,
            settle=unused,
            mark_old=unused,
        )
        for work in (follower._apply_version("demo", "1.0"), follower._apply_all("demo")):
            with pytest.raises(UpstreamFailed, match="none that may be read"):
                await work
        assert copies.dropped == []
        server.serve("/api/repository/main%2Fb", json.dumps({"type": "Hosted", "format": "npm"}).encode())
        await follower._apply_version("demo", "1.0")
        await follower._apply_all("demo")
        assert copies.dropped == ["1.0", "1.0"]


class Connecting(Follower):
    """One whose steps wait for a connection, whose cancellation looks like an upstream that does not answer."""

    async def _listen(self) -> None:
        try:
            await Deferred()
        except CancelledError:
            raise UpstreamUnavailable("there", "the connection was not made") from None

    _work = _listen


async def test_a_follower_ends_while_it_connects() -> None:
    async def write(*_: Any, **__: Any) -> None:
        pass

    unused: Any = SimpleNamespace(name="there")
    follower = Connecting(
        repository=HERE,
        source=unused,
        copies=Noting(),
        package_key=str,
        catalog=cast("Any", SimpleNamespace(write=write)),
        clock=cast("Any", SimpleNamespace(now_ms=lambda: 0)),
        reactor=Clock(),
        settle=unused,
        mark_old=unused,
    )
    running = Deferred.fromCoroutine(follower.run())
    assert not running.called
    follower.end()
    running.cancel()
    assert running.called, "it goes on for ever, and the server does not stop"


async def test_tasks_that_failed_keep_neither_events_nor_the_comparison_from_going_on() -> None:
    catalog, reactor = MemoryCatalog(), Clock()
    repository = catalog.do(add_repository)

    class Events:
        """A repository of which nothing new happens, and whose list of packages has one more."""

        name = "there main/a"
        followed = SimpleNamespace(files=("*",))

        def __init__(self) -> None:
            self.waits: list[bool] = []

        async def events(self, position: str, *, wait: bool) -> Page:
            self.waits.append(wait)
            return Page((), position, 0)

        async def packages(self, cursor: str) -> tuple[list[str], str | None]:
            return ["good"], None

        async def deleted(self, cursor: str, package: str = "") -> tuple[list[RemoteDeleted], str | None]:
            page = int(cursor or 0)
            at = datetime(2026, 1, 2, tzinfo=UTC)
            return [RemoteDeleted("gone", f"gone-{page}", "a" * 64, at)], None if page else "1"

    source: Any = Events()
    catalog.do(replicas.begin_comparison, repository.id, source.name, "evt_1_1", "", 1)
    catalog.do(replicas.walk_on, repository.id, LISTED, "", [(f"bad{each}", ALL) for each in range(MOST_TASKS)], 1)
    for task in catalog.peek(replicas.due_tasks, repository.id, 1, MOST_TASKS):
        catalog.do(replicas.fail_task, repository.id, task, "another digest", 10**15)

    follower = make_follower(catalog, source, Noting(), reactor, repository)

    async def listen() -> None:
        step = Deferred.fromCoroutine(follower._listen())
        while not step.called:
            reactor.advance(1)
        await step

    for walk, walked in ((DELETED, ""), (DELETED, "1"), (FOLLOWING, "")):
        await listen()
        found = catalog.peek(replicas.find_replica, repository.id)
        assert (found.walk, found.walked) == (walk, walked)
    assert [each.path for each in catalog.peek(list_deleted, repository.id)] == ["gone-0", "gone-1"]
    (task,) = catalog.peek(replicas.due_tasks, repository.id, 2, 10)
    assert task.package_key == "good"
    catalog.do(replicas.end_task, repository.id, task)
    await listen()
    assert catalog.peek(replicas.find_replica, repository.id).current_at is None, "some of it is not here"
    await listen()
    assert source.waits == [False, False, False, False, True], "it asks again and again"


def make_follower(catalog: Any, source: Any, copies: Any, reactor: Clock, repository: Any = HERE) -> Follower:
    async def nothing() -> None:
        pass

    return Follower(
        repository=repository,
        source=source,
        copies=copies,
        package_key=str,
        catalog=catalog,
        clock=cast("Any", SimpleNamespace(now_ms=lambda: 2)),
        reactor=reactor,
        settle=nothing,
        mark_old=cast("Any", None),
        jitter=lambda: 0.5,
    )


async def test_no_events_are_read_while_too_many_tasks_wait() -> None:
    catalog, reactor = MemoryCatalog(), Clock()
    repository = catalog.do(add_repository)
    source: Any = SimpleNamespace(name="there main/a")  # any question fails
    catalog.do(replicas.begin_comparison, repository.id, source.name, "evt_1_1", "", 1)
    catalog.do(replicas.walk_on, repository.id, FOLLOWING, "", [(f"p{each}", ALL) for each in range(MOST_TASKS)], 1)
    step = Deferred.fromCoroutine(make_follower(catalog, source, Noting(), reactor, repository)._listen())
    assert not step.called
    reactor.advance(1)
    await step


@pytest.mark.parametrize(
    ("error", "least_s"),
    [(UpstreamUnavailable("there", "away"), FIRST_PAUSE_S), (UpstreamMisconfigured("there", "401"), REFUSED_PAUSE_S)],
)
async def test_wrong_credentials_are_not_tried_again_soon(error: Exception, least_s: float) -> None:
    catalog, reactor = MemoryCatalog(), Clock()
    source: Any = SimpleNamespace(name="there main/a")
    follower, tried = make_follower(catalog, source, Noting(), reactor), []

    async def step() -> None:
        tried.append(reactor.seconds())
        if len(tried) == 2:
            follower.end()
        raise error

    running = Deferred.fromCoroutine(follower._forever("working", step))
    reactor.advance(least_s - 0.1)
    assert len(tried) == 1
    reactor.advance(0.2)
    assert len(tried) == 2
    await running


async def test_a_version_that_is_gone_or_refused_keeps_no_other_of_its_package_from_being_compared() -> None:
    class Comparing(Noting):
        async def kept(self, repository: Repository, package: str) -> Sequence[str]:
            return ["1.0", "1.1", "2.0", "3.0"]

        async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
            self.dropped.append(version.version)
            if version.version == "1.0":
                raise NotFound("version", "1.0")
            if version.version == "1.1":
                raise RuleRefused("demo", "here", "somebody", Verdict())
            if version.version == "2.0":
                raise UpstreamFailed("there", "another digest")

    class Listing:
        name, followed = "there main/a", SimpleNamespace(files=())

        async def versions(self, package: str) -> AsyncIterator[list[str]]:
            yield ["1.0", "1.1", "2.0", "3.0"]

        async def version(self, package: str, version: str) -> RemoteVersion:
            return RemoteVersion(version, [])

    copies = Comparing()
    follower = make_follower(MemoryCatalog(), cast("Any", Listing()), copies, Clock())
    with pytest.raises(UpstreamFailed, match="another digest"):
        await follower._apply_all("demo")
    assert copies.dropped == ["1.0", "1.1", "2.0", "3.0"]


async def test_the_names_of_what_was_deleted_of_a_package_are_noted_to_the_last_page() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)

    class Listing:
        name = "there main/a"

        async def deleted(self, cursor: str, package: str) -> tuple[list[RemoteDeleted], str | None]:
            at = datetime(2026, 1, 2, tzinfo=UTC)
            if not cursor:
                return [RemoteDeleted(package, f"{package}-1", "a" * 64, at)], "x"
            return [RemoteDeleted(package, "", "", at)], None

    follower = make_follower(catalog, cast("Any", Listing()), Noting(), Clock(), repository)
    await follower._apply(replicas.Task("demo", DELETED_NAMES, 0, 0))
    assert [(each.package_key, each.path) for each in catalog.peek(list_deleted, repository.id)] == [
        ("demo", "demo-1"),
        ("demo", ""),
    ]


@pytest.mark.parametrize(
    ("verdict", "due_ms"),
    [
        (Verdict(by=HELD), []),
        (Verdict(by=HELD, opens_ms=10**12), [10**12]),
        (Verdict(by=HELD, waits=True), [5002]),
    ],
)
async def test_what_a_rule_lets_in_later_is_tried_again_then(verdict: Verdict, due_ms: list[int]) -> None:
    class Refusing(Noting):
        async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
            raise RuleRefused("demo", "here", "somebody", verdict)

    class Listing:
        name, followed = "there main/a", SimpleNamespace(files=("*",))

        async def version(self, package: str, version: str) -> RemoteVersion:
            return RemoteVersion(version, [])

    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    catalog.do(replicas.begin_comparison, repository.id, Listing.name, "evt_1_1", "", 1)
    catalog.do(replicas.add_tasks, repository.id, [("demo", "1.0")], 1)
    follower = make_follower(catalog, cast("Any", Listing()), Refusing(), Clock(), repository)
    (task,) = catalog.peek(replicas.due_tasks, repository.id, 1, 1)
    await follower._do(task)
    due = catalog.tx.all("SELECT due_at FROM replica_task WHERE repository_id = ?", (repository.id,))
    assert [each[0] for each in due] == due_ms


@pytest.mark.parametrize(
    ("verdict", "later"), [(Verdict(by=HELD), False), (Verdict(by=HELD, opens_ms=10**12), True)], ids=["never", "later"]
)
@pytest.mark.parametrize("files", [(), ("*",)], ids=["kept", "all"])
async def test_a_package_is_compared_again_if_a_rule_lets_in_one_of_its_versions_later(
    verdict: Verdict, later: bool, files: tuple[str, ...]
) -> None:
    class Refusing(Noting):
        async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
            self.dropped.append(version.version)
            raise RuleRefused("demo", "here", "somebody", verdict)

        async def renew(self, repository: Repository, package: str) -> None:
            self.dropped.append("renewed")

    class Listing:
        name, followed = "there main/a", SimpleNamespace(files=files)

        async def versions(self, package: str) -> AsyncIterator[list[str]]:
            yield ["0.9", "1.0"]

        async def version(self, package: str, version: str) -> RemoteVersion:
            return RemoteVersion(version, [])

    copies = Refusing()
    with pytest.raises(RuleRefused) if later else nullcontext():
        await make_follower(MemoryCatalog(), cast("Any", Listing()), copies, Clock())._apply_all("demo")
    assert copies.dropped == [*(["0.9"] if files else []), "1.0", "renewed"]


async def test_of_a_package_only_so_many_versions_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Listing:
        name, followed = "there main/a", SimpleNamespace(files=())
        upstream = SimpleNamespace(name="there")

        async def versions(self, package: str) -> AsyncIterator[list[str]]:
            yield ["1.0", "1.1"]
            yield ["1.2"]

        async def version(self, package: str, version: str) -> RemoteVersion | None:
            return None

        async def check(self, format: str) -> None:
            pass

    for most, fails in ((3, False), (2, True)):
        monkeypatch.setattr(follower_module, "MOST_VERSIONS", most)
        copies = Noting()
        with pytest.raises(UpstreamFailed, match="too many versions") if fails else nullcontext():
            await make_follower(MemoryCatalog(), cast("Any", Listing()), copies, Clock())._apply_all("demo")
        assert copies.dropped == ([] if fails else ["1.0"])


async def test_a_source_that_does_not_answer_is_asked_for_no_other_version() -> None:
    class Listing:
        name, followed = "there main/a", SimpleNamespace(files=("*",))

        async def versions(self, package: str) -> AsyncIterator[list[str]]:
            yield ["1.0", "1.1"]

        async def version(self, package: str, version: str) -> RemoteVersion | None:
            asked.append(version)
            raise UpstreamUnavailable("there", "away")

    asked: list[str] = []
    with pytest.raises(UpstreamUnavailable):
        await make_follower(MemoryCatalog(), cast("Any", Listing()), Noting(), Clock())._apply_all("demo")
    assert asked == ["1.0"]


async def test_a_pause_ends_with_new_tasks_or_with_its_time() -> None:
    reactor = Clock()
    follower = make_follower(MemoryCatalog(), cast("Any", None), Noting(), reactor)
    for wake in (follower._woken, lambda: reactor.advance(5)):
        pause = Deferred.fromCoroutine(follower._pause(5))
        assert not pause.called
        wake()
        assert pause.called
        follower._woken()  # again, which wakes nobody
        await pause
