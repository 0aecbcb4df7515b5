"""Python packages: reads and uploads as pip, uv and twine make them, beside other servers and beside nginx."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.bench.arena import CPU, GROWTH, OURS, P50, P99, RATE, RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import (
    FILE,
    HTML,
    PIP,
    LoadFailed,
    Reply,
    download,
    get,
    post_all,
    post_file,
    write_turns,
    wrk,
)
from tests.bench.contestants.python import PythonIndex, form_fields, form_post
from tests.bench.measure import MIB, Watch
from tests.bench.packages.wheels import Wheel, wheels

from .figures import of_requests

PEERS = (OURS, "nginx", "pypiserver", "devpi", "nora")
UPLOADED = (OURS, "pypiserver", "devpi", "nora")
READ = (RATE, CPU, P50, P99, RSS)
WARM_UP_S = 1.0
GIB_FILE = (1 << 30) - (
    1 << 16
)  # bytes; devpi accepts request bodies of up to 1 GiB, including the form around the file
DOWNLOADS = 5  # in a round: one of them is short against the clock's tick of 10 ms

SPEED = Metric("mb_per_s", "MB/s")
CPU_MS = Metric("cpu_ms", "CPU ms/file", 1)
UPLOADS = Metric("rate", "uploads/s")
WRITTEN = Metric("written", "bytes written / size", 3, compared=False)

AGENTS = ("pip/26.3", "pip/24.0", "pip/23.2.1", "uv/0.13.8", "poetry/2.5.1")  # what tells caches of heads apart

Address = Callable[[PythonIndex], str]


def index(arena: Arena, name: str) -> PythonIndex:
    """Return a running contestant that serves Python packages."""
    contestant = arena.get(name)
    assert isinstance(contestant, PythonIndex)
    return contestant


def stocked(arena: Arena, name: str, stock: Sequence[Wheel]) -> PythonIndex:
    """Return a contestant that has these packages."""
    contestant = index(arena, name)
    arena.once((name, stock[0].filename), lambda: contestant.publish(stock))
    return contestant


def _reading(
    stock: Sequence[Wheel], address: Address, headers: Mapping[str, str], *, revalidate: bool = False
) -> Callable[[Arena, str], Trial]:
    """Prepare one address to be asked for again and again; C{revalidate} sends the validator of its first answer."""

    def prepare(arena: Arena, name: str) -> Trial:
        sent = dict(headers)
        if name == "nginx":
            original = address(stocked(arena, arena.first(PEERS), stock))
            body = _answer(original, sent).body
            url = arena.nginx().mirror(hashlib.sha256(body).hexdigest(), body)
        else:
            url = address(stocked(arena, name, stock))
        validator = _answer(url, sent).headers.get("etag")
        if revalidate and validator is not None:
            sent["If-None-Match"] = validator
            if get(url, sent).status != 304:
                raise LoadFailed(f"{url}: the validator it gave does not make a 304")
        return asking(arena, name, url, sent)

    return prepare


def asking(
    arena: Arena,
    name: str,
    url: str,
    headers: Mapping[str, str],
    turns: Path | None = None,
    *,
    refused: bool = False,
) -> Trial:
    """Rounds of small requests to a contestant, which is warmed up now; C{turns} and C{refused} as in L{wrk}."""
    wrk(url, headers, WARM_UP_S, turns=turns, refused=refused)

    def trial(_: int) -> Mapping[str, float]:
        with Watch(arena.get(name).tree) as watch:
            hits = wrk(url, headers, arena.seconds, turns=turns, refused=refused)
        return {
            RATE.key: hits.requests / hits.seconds,
            SPEED.key: hits.size / 1e6 / hits.seconds,
            CPU.key: watch.cost.cpu_s * 1e6 / hits.requests,
            P50.key: hits.p50_ms,
            P99.key: hits.p99_ms,
            RSS.key: watch.cost.rss_peak / MIB,
        }

    return trial


def _mixed(arena: Arena, name: str) -> Trial:
    projects = [f"bench-mixed-{number}" for number in range(200)]
    stock = [wheel for project in projects for wheel in wheels(project, 3)]
    source = stocked(arena, arena.first(PEERS) if name == "nginx" else name, stock)
    urls = [source.page_url(project) for project in projects]
    if name == "nginx":
        bodies = [_answer(url, PIP).body for url in urls]
        urls = [arena.nginx().mirror(hashlib.sha256(body).hexdigest(), body) for body in bodies]
    return asking(arena, name, urls[0], PIP, write_turns(arena.scratch / f"{name}.turns", urls, AGENTS))


def _answer(url: str, headers: Mapping[str, str]) -> Reply:
    reply = get(url, headers)
    if reply.status != 200:
        raise LoadFailed(f"GET {url}: {reply.status}")
    return reply


def _page(project: str) -> Address:
    return lambda server: server.page_url(project)


def _page_scenario(
    count: int, *, html: bool = False, goals: tuple[Goal, ...] = (), lineup: tuple[str, ...] = PEERS
) -> Scenario:
    project = f"bench-{count}"
    return Scenario(
        name=f"simple-{count}-html" if html else f"simple-{count}",
        about=f"simple page of {count:,} files, {'as HTML' if html else 'as pip asks for it'}",
        lineup=lineup,
        metrics=READ,
        prepare=_reading(wheels(project, count), _page(project), HTML if html else PIP),
        stock="twenty" if count == 20 else f"{count}",
        goals=goals,
    )


def _download(arena: Arena, name: str) -> Trial:
    wheel = Wheel("bench-gib", "1.0.0", GIB_FILE)
    if name == "nginx":
        url = arena.nginx().mirror(wheel.filename, wheel.ensure(arena.cache))
    else:
        url = stocked(arena, name, [wheel]).file_url(wheel)
    if download(url) != wheel.size:
        raise LoadFailed(f"{url}: another size than was uploaded")

    def trial(_: int) -> Mapping[str, float]:
        with Watch(arena.get(name).tree) as watch:
            size = sum(download(url) for _ in range(DOWNLOADS))
        return {
            SPEED.key: size / 1e6 / watch.cost.seconds,
            CPU_MS.key: watch.cost.cpu_s * 1e3 / DOWNLOADS,
            GROWTH.key: watch.cost.rss_growth / MIB,
        }

    return trial


def _upload_large(arena: Arena, name: str) -> Trial:
    server = stocked(arena, name, wheels("bench-20", 20))

    def trial(number: int) -> Mapping[str, float]:
        wheel = Wheel("bench-large", f"1.0.{number}", 100 * MIB)
        path = wheel.ensure(arena.scratch / "uploads")
        fields = form_fields(wheel)
        with Watch(server.tree) as watch:
            post_file(path, fields, server.upload_target)
        return {
            SPEED.key: wheel.size / 1e6 / watch.cost.seconds,
            CPU_MS.key: watch.cost.cpu_s * 1e3,
            GROWTH.key: watch.cost.rss_growth / MIB,
            WRITTEN.key: watch.cost.written / wheel.size,
        }

    return trial


def _upload_small(arena: Arena, name: str) -> Trial:
    server = stocked(arena, name, wheels("bench-20", 20))

    def trial(number: int) -> Mapping[str, float]:
        posts = [form_post(each) for each in _assorted(number, projects=20, versions=10)]
        with Watch(server.tree) as watch:
            took_ms = post_all(server.upload_target, posts, 8)
        return of_requests(watch, took_ms)

    return trial


def _assorted(number: int, *, projects: int, versions: int) -> list[Wheel]:
    """Wheels of several projects, the versions of one far apart."""
    return [
        Wheel(f"bench-small-{number}-{project}", f"1.0.{version}")
        for version in range(versions)
        for project in range(projects)
    ]


_SMALL = wheels("bench-20", 20)

SCENARIOS: tuple[Scenario, ...] = (
    _page_scenario(
        20,
        goals=(
            Goal(CPU, "at most", 4, "nginx"),
            Goal(RATE, "at least", 8, "devpi"),
            Goal(RATE, "at least", 5, "pypiserver"),
        ),
    ),
    _page_scenario(20, html=True),
    Scenario(
        name="not-modified",
        about="unchanged simple page of 20 files (pypiserver and devpi have no validator and send it again)",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, _page("bench-20"), PIP, revalidate=True),
        stock="twenty",
    ),
    Scenario(
        name="metadata",
        about="core metadata of a wheel",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, lambda server: server.file_url(_SMALL[0]) + ".metadata", FILE),
        stock="twenty",
    ),
    Scenario(
        name="small-file",
        about="wheel of 9 KB",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, lambda server: server.file_url(_SMALL[0]), FILE),
        stock="twenty",
    ),
    _page_scenario(300),
    Scenario(
        name="simple-mixed",
        about="simple pages of 200 projects in turn, for clients of five kinds",
        lineup=PEERS,
        metrics=READ,
        prepare=_mixed,
        stock="mixed",
    ),
    # Without devpi, in which an upload costs time proportional to the project's files; 5,000 take over an hour.
    _page_scenario(5000, lineup=(OURS, "nginx", "pypiserver")),
    Scenario(
        name="download-1g",
        about="wheel of 1 GiB, read by curl",
        lineup=PEERS,
        metrics=(SPEED, CPU_MS, GROWTH),
        prepare=_download,
        stock="download-1g",
        goals=(Goal(CPU_MS, "at most", 1.3, "nginx"),),
    ),
    Scenario(
        name="upload-100m",
        about="upload of a 100 MiB wheel as a form, by curl",
        lineup=UPLOADED,
        metrics=(SPEED, CPU_MS, GROWTH, WRITTEN),
        prepare=_upload_large,
        stock="upload-100m",
    ),
    Scenario(
        name="upload-small",
        about="200 uploads of 9 KB as forms, by 8 clients at once, into 20 new projects",
        lineup=UPLOADED,
        metrics=(UPLOADS, CPU_MS, P50, P99, GROWTH),
        prepare=_upload_small,
        stock="upload-small",
    ),
)
