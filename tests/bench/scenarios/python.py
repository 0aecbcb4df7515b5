"""Python packages: reads and uploads as pip, uv and twine make them, beside other servers and beside nginx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import evolve

from tests.bench.arena import CPU, GROWTH, OURS, P50, P99, RATE, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import FILE, HTML, PIP, post_all, post_file, write_turns
from tests.bench.contestants.python import PythonIndex, form_fields, form_post
from tests.bench.measure import MIB, Watch
from tests.bench.packages.wheels import Wheel, wheels

from .figures import READ, SPEED, UPLOADS, WRITTEN, asking, downloading, figures, mirrored, reading, sending

PEERS = (OURS, "nginx", "pypiserver", "devpi", "nora")
UPLOADED = (OURS, "pypiserver", "devpi", "nora")
GIB_FILE = (1 << 30) - (
    1 << 16
)  # bytes; devpi accepts request bodies of up to 1 GiB, including the form around the file

CPU_MS = Metric("cpu_ms", "CPU ms/file", 1)

AGENTS = ("pip/26.3", "pip/24.0", "pip/23.2.1", "uv/0.13.8", "poetry/2.5.1")  # what tells caches of heads apart

Address = Callable[[PythonIndex], str]


def stocked(arena: Arena, name: str, stock: Sequence[Wheel]) -> PythonIndex:
    """Return a contestant that has these packages."""
    contestant = arena.get(name, PythonIndex)
    arena.once((name, stock[0].filename), lambda: contestant.publish(stock))
    return contestant


def _reading(
    stock: Sequence[Wheel], address: Address, headers: Mapping[str, str], *, revalidate: Literal["no", "may"] = "no"
) -> Callable[[Arena, str], Trial]:
    """Prepare one address to be asked for again and again."""

    def prepare(arena: Arena, name: str) -> Trial:
        url = address(stocked(arena, arena.source(name, PEERS), stock))
        return reading(arena, name, url, headers, revalidate=revalidate)

    return prepare


def _mixed(arena: Arena, name: str) -> Trial:
    projects = [f"bench-mixed-{number}" for number in range(200)]
    stock = [wheel for project in projects for wheel in wheels(project, 3)]
    source = stocked(arena, arena.source(name, PEERS), stock)
    urls = [mirrored(arena, name, source.page_url(project), PIP) for project in projects]
    return asking(arena, name, urls[0], PIP, write_turns(arena.scratch / f"{name}.turns", urls, AGENTS))


def _page(project: str) -> Address:
    return lambda server: server.page_url(project)


def _read(
    name: str, about: str, prepare: Callable[[Arena, str], Trial], *goals: Goal, stock: str = "twenty"
) -> Scenario:
    return Scenario(name, about, PEERS, READ, prepare, stock, goals)


def _pages(
    count: int, how: str = "as pip asks for it", headers: Mapping[str, str] = PIP
) -> tuple[str, Callable[[Arena, str], Trial]]:
    """What a scenario of simple pages is about, and its preparation."""
    project = f"bench-{count}"
    return f"simple page of {count:,} files, {how}", _reading(wheels(project, count), _page(project), headers)


@measuring("download-1g", PEERS, (SPEED, CPU_MS, GROWTH), "download-1g", Goal(CPU_MS, "at most", 1.3, "nginx"))
def download(arena: Arena, name: str) -> Trial:
    """Wheel of 1 GiB, read by curl."""
    wheel = Wheel("bench-gib", "1.0.0", GIB_FILE)
    if name == "nginx":
        url = arena.nginx().mirror(wheel.filename, wheel.ensure(arena.cache))
    else:
        url = stocked(arena, name, [wheel]).file_url(wheel)
    return downloading(arena, name, url, {}, wheel.size)


@measuring("upload-100m", UPLOADED, (SPEED, CPU_MS, GROWTH, WRITTEN), "upload-100m")
def upload_large(arena: Arena, name: str) -> Trial:
    """Upload of a 100 MiB wheel as a form, by curl."""
    server = stocked(arena, name, wheels("bench-20", 20))

    def trial(number: int) -> Mapping[str, float]:
        wheel = Wheel("bench-large", f"1.0.{number}", 100 * MIB)
        path = wheel.ensure(arena.scratch / "uploads")
        fields = form_fields(wheel)
        with Watch(server.tree) as watch:
            post_file(path, fields, server.target("python"))
        return figures(watch, size=wheel.size)

    return trial


@measuring("upload-small", UPLOADED, (UPLOADS, CPU_MS, P50, P99, GROWTH), "upload-small")
def upload_small(arena: Arena, name: str) -> Trial:
    """200 uploads of 9 KB as forms, by 8 clients at once, into 20 new projects."""
    server = stocked(arena, name, wheels("bench-20", 20))
    return sending(
        server,
        lambda number: [form_post(each) for each in _assorted(number, projects=20, versions=10)],
        lambda posts: post_all(server.target("python"), posts, 8),
    )


def _assorted(number: int, *, projects: int, versions: int) -> list[Wheel]:
    """Wheels of several projects, the versions of one far apart."""
    return [
        Wheel(f"bench-small-{number}-{project}", f"1.0.{version}")
        for version in range(versions)
        for project in range(projects)
    ]


_SMALL = wheels("bench-20", 20)

_UNCHANGED = "unchanged simple page of 20 files (pypiserver and devpi have no validator and send it again)"
_MIXED = "simple pages of 200 projects in turn, for clients of five kinds"
_GOALS = (Goal(CPU, "at most", 4, "nginx"), Goal(RATE, "at least", 8, "devpi"), Goal(RATE, "at least", 5, "pypiserver"))

SCENARIOS: tuple[Scenario, ...] = (
    _read("simple-20", *_pages(20), *_GOALS),
    _read("simple-20-html", *_pages(20, "as HTML", HTML)),
    _read("not-modified", _UNCHANGED, _reading(_SMALL, _page("bench-20"), PIP, revalidate="may")),
    _read(
        "metadata",
        "core metadata of a wheel",
        _reading(_SMALL, lambda server: server.file_url(_SMALL[0]) + ".metadata", FILE),
    ),
    _read("small-file", "wheel of 9 KB", _reading(_SMALL, lambda server: server.file_url(_SMALL[0]), FILE)),
    _read("simple-300", *_pages(300), stock="300"),
    _read("simple-mixed", _MIXED, _mixed, stock="mixed"),
    # Without devpi, in which an upload costs time proportional to the project's files; 5,000 take over an hour.
    evolve(_read("simple-5000", *_pages(5000), stock="5000"), lineup=(OURS, "nginx", "pypiserver")),
    *(download, upload_large, upload_small),
)
