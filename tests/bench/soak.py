"""
A long run of mixed requests at a part of the highest rate, in which nothing may grow, fail or stall.

A short run as fast as the clients can comes first. Its rate times L{SHARE} is that of the long one, in which a latency
counts from the moment at which its request was due. Memory is sampled for each process: its own, and pages of files
that it has mapped. The latter grow with the database up to a bound for each reader, and are the kernel's to take back.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attrs import define, evolve, field, frozen

from .clients.load import (
    DOCKER,
    MAVEN,
    NPM,
    PIP,
    STEP_LIMIT_S,
    Connection,
    LoadFailed,
    Post,
    Target,
    get,
    percentile,
    send,
)
from .contestants.sizes import PkgrepoMixed
from .measure import MIB, mapped_of, rss_of
from .packages.images import make_image
from .packages.modules import Module
from .packages.wheels import wheels
from .scenarios import publishes

SHARE: Final = 0.7  # of the highest rate
CLIENTS: Final = 8
FASTEST_S: Final = 10.0  # seconds of the run that finds the highest rate
SAMPLE_S: Final = 5.0
READS: Final = 17  # of twenty requests; the others publish a new package
RESTARTED_S: Final = 4 * SAMPLE_S  # of a run with restarts, after which the requests are counted
GROWTH_LIMIT: Final = 0.02  # of the memory, in the second half
LAG_LIMIT_S: Final = 0.02

_STOCK: Final = "bench-soak"
_IMAGE = make_image(_STOCK, 1, 1024)
_LAG: Final = re.compile(rb'^pkgrepo_reactor_lag_seconds_bucket\{le="([^"]+)"\} ([0-9.e+]+)', re.MULTILINE)
_PROBLEMS: Final = (LoadFailed, OSError, http.client.HTTPException)


@frozen
class Sample:
    """
    Resident bytes of each process at a moment, in seconds since the run began.

    ``own`` are those that no file has, ``mapped`` the others.
    """

    at_s: float
    own: Mapping[int, int]
    mapped: Mapping[int, int]

    @property
    def total(self) -> int:
        """Resident bytes of all processes."""
        return sum(self.own.values()) + sum(self.mapped.values())


@define
class Tally:
    """What the clients saw: milliseconds of each answer, and what failed."""

    took_ms: list[float] = field(factory=list)
    errors: list[str] = field(factory=list)


@frozen
class Soak:
    """The result of a run; rates in requests a second, ``lag_s`` bounds 99.9 % of the delays of the reactor."""

    fastest: float
    rate: float
    tally: Tally
    samples: Sequence[Sample]
    lag_s: float

    @property
    def growth(self) -> float:
        """By which share of it the processes' own memory grew from the middle of the run to its end."""
        return _growth([sum(each.own.values()) for each in self.samples])

    @property
    def mapped_growth(self) -> float:
        """The same of what they have mapped, which has no bound here."""
        return _growth([sum(each.mapped.values()) for each in self.samples])

    @property
    def verdicts(self) -> Mapping[str, bool]:
        """Whether each bound was kept."""
        return {
            f"growth of their own memory in the second half: {self.growth:+.1%}, less than {GROWTH_LIMIT:.0%}": (
                self.growth < GROWTH_LIMIT
            ),
            f"{len(self.tally.errors)} errors of {len(self.tally.took_ms):,} requests": not self.tally.errors,
            f"lag of the reactor, 99.9 %: up to {self.lag_s * 1e3:g} ms, at most {LAG_LIMIT_S * 1e3:g}": (
                self.lag_s <= LAG_LIMIT_S
            ),
        }


def run_soak(minutes: float, scratch: Path, say: Callable[[str], None], share: float = SHARE) -> Soak:
    """
    Start a server with two workers, and load it with a ``share`` of the highest rate.

    :raises Unavailable: it cannot be started
    :raises LoadFailed: what is read later could not be published, or no request succeeded in the first run
    """
    server = PkgrepoMixed(scratch / "soak")
    server.start()
    try:
        load = MixedLoad(server)
        say(f"soak: the highest rate, {FASTEST_S:g} s")
        fastest = load.run(FASTEST_S, 0.0)
        if not fastest.took_ms:
            raise LoadFailed(f"no request succeeded: {fastest.errors[:1]}")
        highest = len(fastest.took_ms) / FASTEST_S
        before, samples = _lags(server), list[Sample]()
        say(f"soak: {highest:,.0f}/s; {minutes:g} minutes at {share * highest:,.0f}/s")
        tally = load.run(60 * minutes, CLIENTS / (share * highest), lambda at_s: samples.append(_sample(server, at_s)))
        rate = len(tally.took_ms) / (60 * minutes)
        return Soak(highest, rate, tally, samples, lag_bound(before, _lags(server)))
    finally:
        server.discard()


def describe(soak: Soak) -> str:
    """The result as text."""
    processes = {pid for sample in soak.samples for pid in sample.own}
    lines = [
        f"highest rate {soak.fastest:,.0f}/s, held {soak.rate:,.0f}/s; "
        f"p50 {percentile(soak.tally.took_ms, 50):.1f} ms, p99 {percentile(soak.tally.took_ms, 99):.1f} ms",
        *(f"process {pid}: {_course(soak.samples, pid)} MiB" for pid in sorted(processes)),
        f"mapped pages grew by {soak.mapped_growth:+.1%} in the second half",
        *(f"- {text}: {'met' if met else 'MISSED'}" for text, met in soak.verdicts.items()),
        *(f"  {error}" for error in soak.tally.errors[:5]),
    ]
    return "\n".join(lines) + "\n"


def soak_json(soak: Soak) -> str:
    """Every sample, for programs."""
    value = {
        "fastest_per_s": soak.fastest,
        "rate_per_s": soak.rate,
        "requests": len(soak.tally.took_ms),
        "p50_ms": percentile(soak.tally.took_ms, 50),
        "p99_ms": percentile(soak.tally.took_ms, 99),
        "lag_p999_s": soak.lag_s,
        "errors": soak.tally.errors,
        "growth": soak.growth,
        "samples": [{"at_s": sample.at_s, "own": sample.own, "mapped": sample.mapped} for sample in soak.samples],
        "verdicts": soak.verdicts,
    }
    return json.dumps(value, indent=1)


def lag_bound(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """The smallest bound of 99.9 % of the delays between two readings."""
    counts = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    wanted = 0.999 * max(counts.values(), default=0.0)
    return next((bound for bound, count in sorted(counts.items()) if count >= wanted), float("inf"))


class MixedLoad:
    """Mixed requests of several clients to a server that has what they read."""

    def __init__(self, server: PkgrepoMixed) -> None:
        self._server = server
        self._names = itertools.count()
        server.fill(_STOCK, 5)
        server.publish(wheels(_STOCK, 20))
        server.deploy([Module(_STOCK)])
        server.push(_IMAGE, "v1")
        self._token = server.client(_IMAGE.name).headers

    def run(self, seconds: float, pause_s: float, sample: Callable[[float], object] | None = None) -> Tally:
        tally, stopped = Tally(), threading.Event()
        started = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            asking = [
                pool.submit(self._ask, started + pause_s * number / CLIENTS, pause_s, tally, stopped)
                for number in range(CLIENTS)
            ]
            while not stopped.wait(min(SAMPLE_S, max(0.0, started + seconds - time.monotonic()))):
                at_s = time.monotonic() - started
                if at_s >= seconds:
                    stopped.set()
                elif sample:
                    sample(at_s)
                    self._token = self._server.client(_IMAGE.name).headers  # a token lasts for minutes
        for client in asking:
            client.result()
        return tally

    def _ask(self, due: float, pause_s: float, tally: Tally, stopped: threading.Event) -> None:
        target = Target(self._server.base_url)
        connection = Connection(target.url, STEP_LIMIT_S)
        for post in self._requests():
            if stopped.wait(max(0.0, due - time.monotonic())):
                break
            began = due if pause_s else time.monotonic()
            try:
                send(connection, target, post)
                tally.took_ms.append((time.monotonic() - began) * 1e3)
            except _PROBLEMS as problem:
                tally.errors.append(f"{type(problem).__name__}: {problem}")
                connection.close()
            due += pause_s
        connection.close()

    def _requests(self) -> Iterator[Post]:
        server = self._server
        reads = (
            (server.package_url(_STOCK), NPM),
            (server.page_url(_STOCK), PIP),
            (f"{server.place('maven')}{Module(_STOCK).stem}.jar", MAVEN),
            (server.client(_IMAGE.name).manifest_url("v1"), DOCKER),
        )
        kinds = (("npm", publishes.node_package), ("python", publishes.wheel), ("maven", publishes.jar))
        for number in itertools.count():
            if number % 20 < READS:
                url, headers = reads[number % len(reads)]
                token = self._token if headers is DOCKER else {}
                yield Post({**headers, **token}, (), 0, "GET", urlsplit(url).path)
            else:
                kind, make = kinds[number % len(kinds)]
                target = publishes.target_of(server, kind)
                post, _ = make(server, f"bench-soaked-{next(self._names)}")
                path = post.path or urlsplit(target.url).path
                yield evolve(post, path=path, headers={**target.headers, **post.headers})


def _sample(server: PkgrepoMixed, at_s: float) -> Sample:
    pids = server.tree.pids()
    mapped = {pid: mapped_of(pid) for pid in pids}
    return Sample(at_s, {pid: max(0, rss_of(pid) - mapped[pid]) for pid in pids}, mapped)


def _lags(server: PkgrepoMixed) -> Mapping[float, float]:
    """How many delays were at most so many seconds, since the start."""
    reply = get(f"{server.base_url}/metrics", server.admin)
    return {float(bound): float(count) for bound, count in _LAG.findall(reply.body)}


def _course(samples: Sequence[Sample], pid: int) -> str:
    """Its own memory and, behind a plus sign, its mapped pages, at ten moments."""
    known = [sample for sample in samples if pid in sample.own]
    return " ".join(
        f"{sample.own[pid] / MIB:.0f}+{sample.mapped[pid] / MIB:.0f}" for sample in known[:: max(1, len(known) // 10)]
    )


def _growth(totals: Sequence[int]) -> float:
    """By which share a size grew from the third quarter's beginning to the last one's end, by medians."""
    if not totals:
        return 0.0
    half = totals[len(totals) // 2 :]
    part = max(1, len(half) // 4)
    before, after = statistics.median(half[:part]), statistics.median(half[-part:])
    return (after - before) / before if before else 0.0


class PkgrepoAutomatic(PkgrepoMixed):
    """With a worker on each processor."""

    name = "pkgrepo-automatic"

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_SERVER__WORKERS": "auto"}


@frozen
class Restarts:
    """The result of a run: what the clients saw, how often a replacement was asked for, and how many workers ended."""

    tally: Tally
    asked: int
    replaced: int

    @property
    def is_met(self) -> bool:
        """Whether workers were replaced and no request failed."""
        return self.replaced > 0 and not self.tally.errors


def run_restarts(requests: int, scratch: Path, say: Callable[[str], None]) -> Restarts:
    """
    Load a server with mixed requests, of which none is tried again, and send it SIGHUP every few seconds.

    :raises Unavailable: it cannot be started; :raises LoadFailed: what is read later could not be published
    """
    server, tally, asked, seen = PkgrepoAutomatic(scratch / "restarts"), Tally(), 0, set[int]()

    def replace(_at_s: float) -> None:
        nonlocal asked
        asked += 1
        seen.update(server.tree.pids())
        os.kill(server.tree.roots[0], signal.SIGHUP)

    server.start()
    try:
        load = MixedLoad(server)
        while len(tally.took_ms) + len(tally.errors) < requests:
            part = load.run(RESTARTED_S, 0.0, replace)
            tally.took_ms += part.took_ms
            tally.errors += part.errors
            say(f"restarts: {len(tally.took_ms):,} requests, {len(tally.errors)} failed")
        return Restarts(tally, asked, len(seen - set(server.tree.pids())))
    finally:
        server.discard()


def describe_restarts(restarts: Restarts) -> str:
    """The result as text."""
    tally = restarts.tally
    lines = [
        f"{len(tally.took_ms) + len(tally.errors):,} requests, p99 {percentile(tally.took_ms, 99):.0f} ms; "
        f"{restarts.asked} reloads, {restarts.replaced} workers replaced",
        f"- {len(tally.errors)} failed: {'met' if restarts.is_met else 'MISSED'}",
        *(f"  {error}" for error in tally.errors[:5]),
    ]
    return "\n".join(lines) + "\n"
