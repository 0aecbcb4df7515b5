"""
Figures that pkgrepo must keep whatever its peers do.

They are the memory and disk that big uploads take, the latency of a page beside one, and the price of a large catalog.
Each measurement of memory begins with a server that has just started and has taken one small upload, so that growth is
what the load itself costs.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.bench.arena import CPU, GROWTH, OURS, P50, P99, RATE, RSS, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import PIP, STEP_LIMIT_S, get, post_all, post_file, put_file
from tests.bench.contestants.python import BIG, LITTLE, PkgrepoPython, PythonIndex, form_fields, form_post
from tests.bench.measure import MIB, Watch
from tests.bench.packages.wheels import Wheel, wheels

from .figures import QUIET_P99, READ, SECONDS, SPEED, UPLOADS, WRITTEN, asking, disturbed, figures, probed, sending
from .python import CPU_MS, GIB_FILE, stocked

OF_SHA256SUM = Metric("of_sha256sum", "of sha256sum's MB/s", 2)
BESIDE_P50 = Metric("beside_p50_ms", "p50 ms beside upload", 2)
BESIDE_P99 = Metric("beside_p99_ms", "p99 ms beside upload", 2)
UPLOAD_S = Metric("upload_s", "upload s", 1)
PROBES_PER_S = 100.0  # well below what any contestant can answer, so that a queue comes from the upload alone
MANY = 100
SMALL_PATCH = 400  # uploads in a round of the index cost; the clock of processor time ticks every 10 ms

LARGE = Wheel("bench-five", "1.0.0", 5 << 30)
PAGE = wheels("bench-20", 20)


def _sha256sum_s(path: Path) -> float:
    started = time.perf_counter()
    subprocess.run(["sha256sum", str(path)], stdout=subprocess.DEVNULL, timeout=STEP_LIMIT_S, check=True)
    return time.perf_counter() - started


def _upload_five(arena: Arena, name: str, send: Callable[[PkgrepoPython, Path], None]) -> Trial:
    """Uploads of 5 GiB by ``send``, into an empty server each round."""
    path = LARGE.ensure(arena.cache)
    assert LARGE.sha256  # computed here, since a round's clock would run

    def trial(_: int) -> Mapping[str, float]:
        before_s = _sha256sum_s(path)
        with arena.fresh(name, PkgrepoPython) as server:
            server.publish(wheels("bench-warm", 1))
            with Watch(server.tree) as watch:
                send(server, path)
        # The better of two: one that had to read from the disk would flatter the upload.
        reference_s = min(before_s, _sha256sum_s(path))
        return {**figures(watch, size=LARGE.size), OF_SHA256SUM.key: reference_s / watch.cost.seconds}

    return trial


_FIVE = ((OURS,), (SPEED, OF_SHA256SUM, CPU_MS, GROWTH, WRITTEN), "none")
_GOALS = (Goal(GROWTH, "at most", 48), Goal(WRITTEN, "at most", 1.02), Goal(OF_SHA256SUM, "at least", 0.6))


@measuring("upload-5g-put", *_FIVE, *_GOALS)
def five_by_put(arena: Arena, name: str) -> Trial:
    """Upload of a 5 GiB wheel as the body of a PUT, by curl."""

    def send(server: PkgrepoPython, path: Path) -> None:
        target = server.raw_target(LARGE.project, LARGE.version, LARGE.filename)
        put_file(target.url, path, target)

    return _upload_five(arena, name, send)


@measuring("upload-5g-form", *_FIVE, *_GOALS)
def five_by_form(arena: Arena, name: str) -> Trial:
    """Upload of a 5 GiB wheel as a form, by curl."""
    return _upload_five(arena, name, lambda server, path: post_file(path, form_fields(LARGE), server.target("python")))


@measuring("upload-many", (OURS,), (SPEED, CPU_MS, GROWTH, WRITTEN), "none", Goal(GROWTH, "at most", 200))
def many(arena: Arena, name: str) -> Trial:
    """100 uploads of 50 MiB as forms, all at once."""
    stock = [Wheel(f"bench-many-{number}", "1.0.0", 50 * MIB) for number in range(MANY)]
    posts = [form_post(wheel) for wheel in stock]

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, PkgrepoPython) as server:
            server.publish(wheels("bench-warm", 1))
            with Watch(server.tree) as watch:
                post_all(server.target("python"), posts, MANY)
        return figures(watch, count=MANY, size=sum(wheel.size for wheel in stock))

    return trial


@measuring(
    *("page-beside", (OURS, "pypiserver", "devpi"), (BESIDE_P99, BESIDE_P50, QUIET_P99, UPLOAD_S, GROWTH)),
    *("page-beside", Goal(BESIDE_P99, "at most", 100)),
)
def beside(arena: Arena, name: str) -> Trial:
    """Simple page of 20 files asked for 100 times a second, while a 1 GiB upload runs."""
    server = stocked(arena, name, PAGE)
    url = server.page_url("bench-20")
    assert get(url, PIP).status == 200

    def trial(number: int) -> Mapping[str, float]:
        wheel = Wheel("bench-beside", f"1.0.{number}", GIB_FILE)
        path = wheel.ensure(arena.scratch / "uploads")
        fields = form_fields(wheel)
        probe = partial(probed, url, PIP, PROBES_PER_S)
        found = disturbed(server, probe, arena.seconds, lambda: post_file(path, fields, server.target("python")))
        path.unlink()
        return {**found, UPLOAD_S.key: found[SECONDS.key]}

    return trial


def _same(*metrics: Metric) -> tuple[Goal, ...]:
    return tuple(Goal(metric, "at most", 1.2, LITTLE) for metric in metrics)


@measuring("index-upload", (BIG, LITTLE), (UPLOADS, CPU_MS, P50, P99, RSS), "catalog", *_same(P50, CPU_MS))
def index_upload(arena: Arena, name: str) -> Trial:
    """Upload of a new project of 9 KB, one after the other, by how many projects there are."""
    server = arena.get(name, PythonIndex)
    return sending(
        server,
        lambda number: [form_post(Wheel(f"bench-new-{number}-{each}", "1.0.0")) for each in range(SMALL_PATCH)],
        lambda posts: post_all(server.target("python"), posts, 1),
    )


@measuring("index-page", (BIG, LITTLE), READ, "catalog", *_same(CPU, P50))
def index_page(arena: Arena, name: str) -> Trial:
    """Simple page of 20 files, by how many projects there are."""
    return asking(arena, name, stocked(arena, name, PAGE).page_url("bench-20"), PIP)


@measuring("index-list", (BIG, LITTLE), (RATE, SPEED, CPU, P50, P99, RSS), "catalog")
def index_list(arena: Arena, name: str) -> Trial:
    """The list of all projects, by how many there are."""
    return asking(arena, name, stocked(arena, name, PAGE).page_url("").removesuffix("/"), PIP)


SCENARIOS: tuple[Scenario, ...] = (
    *(five_by_put, five_by_form, many, beside),
    *(index_upload, index_page, index_list),
)
