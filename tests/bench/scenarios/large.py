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
from pathlib import Path

from tests.bench.arena import CPU, GROWTH, OURS, P50, P99, RATE, RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import PIP, STEP_LIMIT_S, get, post_all, post_file, put_file
from tests.bench.contestants.python import BIG, LITTLE, PkgrepoPython, PythonIndex, form_fields, form_post
from tests.bench.measure import MIB, Watch
from tests.bench.packages.wheels import Wheel, wheels

from .figures import QUIET_P99, READ, SPEED, UPLOADS, WRITTEN, asking, figures, probed
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


def _upload_five(send: Callable[[PkgrepoPython, Path], None]) -> Callable[[Arena, str], Trial]:
    """Prepare an upload of 5 GiB by C{send}, into an empty server each round."""

    def prepare(arena: Arena, name: str) -> Trial:
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

    return prepare


def _put(server: PkgrepoPython, path: Path) -> None:
    target = server.raw_target(LARGE)
    put_file(target.url, path, target)


def _form(server: PkgrepoPython, path: Path) -> None:
    post_file(path, form_fields(LARGE), server.upload_target)


def _many(arena: Arena, name: str) -> Trial:
    stock = [Wheel(f"bench-many-{number}", "1.0.0", 50 * MIB) for number in range(MANY)]
    posts = [form_post(wheel) for wheel in stock]

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, PkgrepoPython) as server:
            server.publish(wheels("bench-warm", 1))
            with Watch(server.tree) as watch:
                post_all(server.upload_target, posts, MANY)
        return figures(watch, count=MANY, size=sum(wheel.size for wheel in stock))

    return trial


def _beside(arena: Arena, name: str) -> Trial:
    server = stocked(arena, name, PAGE)
    url = server.page_url("bench-20")
    assert get(url, PIP).status == 200

    def trial(number: int) -> Mapping[str, float]:
        wheel = Wheel("bench-beside", f"1.0.{number}", GIB_FILE)
        path = wheel.ensure(arena.scratch / "uploads")
        fields = form_fields(wheel)
        quiet = probed(url, PIP, PROBES_PER_S, lambda: time.sleep(arena.seconds))
        with Watch(server.tree) as watch:
            beside = probed(url, PIP, PROBES_PER_S, lambda: post_file(path, fields, server.upload_target))
        path.unlink()
        return {**figures(watch, beside=beside, quiet=quiet), UPLOAD_S.key: watch.cost.seconds}

    return trial


def _index_upload(arena: Arena, name: str) -> Trial:
    server = arena.get(name, PythonIndex)

    def trial(number: int) -> Mapping[str, float]:
        new = [Wheel(f"bench-new-{number}-{each}", "1.0.0") for each in range(SMALL_PATCH)]
        posts = [form_post(wheel) for wheel in new]
        with Watch(server.tree) as watch:
            took_ms = post_all(server.upload_target, posts, 1)
        return figures(watch, took_ms)

    return trial


def _index_read(project: str | None) -> Callable[[Arena, str], Trial]:
    """Prepare the page of a project, or with None the list of all projects."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = stocked(arena, name, PAGE)
        url = server.page_url(project) if project else server.page_url("").removesuffix("/")
        return asking(arena, name, url, PIP)

    return prepare


_FIVE_METRICS = (SPEED, OF_SHA256SUM, CPU_MS, GROWTH, WRITTEN)
_FIVE_GOALS = (
    Goal(GROWTH, "at most", 48),
    Goal(WRITTEN, "at most", 1.02),
    Goal(OF_SHA256SUM, "at least", 0.6),
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="upload-5g-put",
        about="upload of a 5 GiB wheel as the body of a PUT, by curl",
        lineup=(OURS,),
        metrics=_FIVE_METRICS,
        prepare=_upload_five(_put),
        stock="none",
        goals=_FIVE_GOALS,
    ),
    Scenario(
        name="upload-5g-form",
        about="upload of a 5 GiB wheel as a form, by curl",
        lineup=(OURS,),
        metrics=_FIVE_METRICS,
        prepare=_upload_five(_form),
        stock="none",
        goals=_FIVE_GOALS,
    ),
    Scenario(
        name="upload-many",
        about="100 uploads of 50 MiB as forms, all at once",
        lineup=(OURS,),
        metrics=(SPEED, CPU_MS, GROWTH, WRITTEN),
        prepare=_many,
        stock="none",
        goals=(Goal(GROWTH, "at most", 200),),
    ),
    Scenario(
        name="page-beside",
        about="simple page of 20 files asked for 100 times a second, while a 1 GiB upload runs",
        lineup=(OURS, "pypiserver", "devpi"),
        metrics=(BESIDE_P99, BESIDE_P50, QUIET_P99, UPLOAD_S, GROWTH),
        prepare=_beside,
        stock="page-beside",
        goals=(Goal(BESIDE_P99, "at most", 100),),
    ),
    Scenario(
        name="index-upload",
        about="upload of a new project of 9 KB, one after the other, by how many projects there are",
        lineup=(BIG, LITTLE),
        metrics=(UPLOADS, CPU_MS, P50, P99, RSS),
        prepare=_index_upload,
        stock="catalog",
        goals=(Goal(P50, "at most", 1.2, LITTLE), Goal(CPU_MS, "at most", 1.2, LITTLE)),
    ),
    Scenario(
        name="index-page",
        about="simple page of 20 files, by how many projects there are",
        lineup=(BIG, LITTLE),
        metrics=READ,
        prepare=_index_read("bench-20"),
        stock="catalog",
        goals=(Goal(CPU, "at most", 1.2, LITTLE), Goal(P50, "at most", 1.2, LITTLE)),
    ),
    Scenario(
        name="index-list",
        about="the list of all projects, by how many there are",
        lineup=(BIG, LITTLE),
        metrics=(RATE, SPEED, CPU, P50, P99, RSS),
        prepare=_index_read(None),
        stock="catalog",
    ),
)
