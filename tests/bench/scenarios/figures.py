"""What scenarios of several formats have in common: figures of a round, requests again and again, and probes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from tests.bench.arena import CPU, GROWTH, P50, P99, RATE, RSS, Arena, Metric, Trial
from tests.bench.clients.load import Hits, LoadFailed, Prober, Reply, download, get, percentile, wrk
from tests.bench.contestants.server import Contestant, Nginx
from tests.bench.measure import MIB, Watch

READ = (RATE, CPU, P50, P99, RSS)
SPEED = Metric("mb_per_s", "MB/s")
SECONDS = Metric("seconds", "s", 2)
WRITTEN = Metric("written", "bytes written / size", 3, compared=False)
UPLOADS = Metric("rate", "uploads/s")
QUIET_P99 = Metric("quiet_p99_ms", "p99 ms, quiet", 2)
QUIET_MAX = Metric("quiet_max_ms", "longest ms, quiet", 1)
BESIDE_P99 = Metric("beside_p99_ms", "p99 ms beside it", 2)
BESIDE_MAX = Metric("beside_max_ms", "longest ms beside it", 1)
WARM_UP_S = 1.0
DOWNLOADS = 5  # in a round: one of them is short against the clock's tick of 10 ms

T = TypeVar("T")


def figures(
    watch: Watch,
    took_ms: Sequence[float] = (),
    *,
    count: int = 0,
    size: int = 0,
    beside: Sequence[float] = (),
    quiet: Sequence[float] = (),
) -> dict[str, float]:
    """
    All figures of a round that can be computed; a scenario shows those of its metrics.

    ``took_ms`` are the times of requests, of which there were ``count``, with so many bytes. ``beside`` and ``quiet``
    are those of probes while the round ran, and before it.
    """
    cost, count = watch.cost, count or len(took_ms) or 1
    found = {
        RATE.key: count / cost.seconds,
        CPU.key: cost.cpu_s * 1e6 / count,
        "cpu_ms": cost.cpu_s * 1e3 / count,
        SECONDS.key: cost.seconds,
        GROWTH.key: cost.rss_growth / MIB,
        RSS.key: cost.rss_after / MIB,
    }
    if size:
        found |= {SPEED.key: size / 1e6 / cost.seconds, WRITTEN.key: cost.written / size}
    for times, median, late, longest in (
        (took_ms, P50.key, P99.key, "max_ms"),
        (beside, "beside_p50_ms", BESIDE_P99.key, BESIDE_MAX.key),
        (quiet, "quiet_p50_ms", QUIET_P99.key, QUIET_MAX.key),
    ):
        if times:
            found |= {median: percentile(times, 50), late: percentile(times, 99), longest: max(times)}
    return found


def sending(
    server: Contestant,
    make: Callable[[int], T],
    send: Callable[[T], Sequence[float]],
    check: Callable[[T], object] = bool,
) -> Trial:
    """
    Rounds of uploads, which are made before the clock runs and checked afterwards.

    ``make`` is given the number of the round, ``send`` gives the milliseconds of each request.
    """

    def trial(number: int) -> Mapping[str, float]:
        made = make(number)
        with Watch(server.tree) as watch:
            took_ms = send(made)
        check(made)
        return figures(watch, took_ms)

    return trial


def downloading(arena: Arena, name: str, url: str, headers: Mapping[str, str], size: int) -> Trial:
    """Rounds of downloads of a big file by curl. :raises LoadFailed: it has another size"""
    if download(url, headers) != size:
        raise LoadFailed(f"{url}: another size than was uploaded")

    def trial(_: int) -> Mapping[str, float]:
        with Watch(arena.get(name).tree) as watch:
            read = sum(download(url, headers) for _ in range(DOWNLOADS))
        return figures(watch, count=DOWNLOADS, size=read)

    return trial


def disturbed(
    server: Contestant,
    probe: Callable[[Callable[[], object]], list[float]],
    quiet_s: float,
    work: Callable[[], object],
) -> dict[str, float]:
    """The figures of some work, of probes beside it, and of those in so many quiet seconds before."""
    quiet = probe(lambda: time.sleep(quiet_s))
    with Watch(server.tree) as watch:
        beside = probe(work)
    return figures(watch, beside=beside, quiet=quiet)


def asking(
    arena: Arena,
    name: str,
    url: str,
    headers: Mapping[str, str],
    turns: Path | None = None,
    *,
    refused: bool = False,
) -> Trial:
    """Rounds of small requests to a contestant, which is warmed up now; ``turns`` and ``refused`` as in L{wrk}."""
    wrk(url, headers, WARM_UP_S, turns=turns, refused=refused)

    def trial(_: int) -> Mapping[str, float]:
        with Watch(arena.get(name).tree) as watch:
            hits = wrk(url, headers, arena.seconds, turns=turns, refused=refused)
        return of_hits(watch, hits)

    return trial


def reading(
    arena: Arena, name: str, url: str, headers: Mapping[str, str], *, revalidate: Literal["no", "may", "must"] = "no"
) -> Trial:
    """
    Rounds of requests for one document, or for nginx of the bytes that it has.

    With ``revalidate`` they send the validator of the first response, if it has one, or as it must have.
    """
    sent = dict(headers)
    url = mirrored(arena, name, url, sent)
    validator = ask(url, sent).headers.get("etag")
    if revalidate == "must" and validator is None:
        raise LoadFailed(f"{name} gives no validator")
    if revalidate != "no" and validator is not None:
        sent["If-None-Match"] = validator
        ask(url, sent, 304)
    return asking(arena, name, url, sent)


def of_hits(watch: Watch, hits: Hits) -> dict[str, float]:
    """The figures of a round of small requests."""
    return {
        RATE.key: hits.requests / hits.seconds,
        SPEED.key: hits.size / 1e6 / hits.seconds,
        CPU.key: watch.cost.cpu_s * 1e6 / hits.requests,
        P50.key: hits.p50_ms,
        P99.key: hits.p99_ms,
        RSS.key: watch.cost.rss_peak / MIB,
    }


def ask(url: str, headers: Mapping[str, str], status: int = 200) -> Reply:
    """The response to one request. :raises LoadFailed: it has another status"""
    reply = get(url, headers)
    if reply.status != status:
        raise LoadFailed(f"GET {url}: {reply.status} {reply.body[:200]!r}")
    return reply


def mirrored(arena: Arena, name: str, url: str, headers: Mapping[str, str]) -> str:
    """The URL itself; for nginx that of the bytes that it answers."""
    if name != Nginx.name:
        return url
    body = ask(url, headers).body
    return arena.nginx().mirror(hashlib.sha256(body).hexdigest(), body)


def probed(url: str, headers: Mapping[str, str], per_s: float, work: Callable[[], object]) -> list[float]:
    """The milliseconds that other requests wait while some work is done."""
    prober = Prober(url, headers, per_s)
    prober.start()
    try:
        work()
    finally:
        late_ms = prober.finish()
    return late_ms
